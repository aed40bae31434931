"""The provider of a file: what it reads, what it refuses, and when it reads anew."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from external_providers.base import (
    ExternalApplication,
    ExternalResourceRequest,
    MalformedError,
    Place,
    ProviderConfigError,
    ProviderRecord,
    UnreachableError,
)
from external_providers.static import MAX_BYTES, StaticProvider
from external_providers.testkit import Config, ProviderContract, Subject, Trouble

GOOD = """
places:
  - name: gpu.train
    total: {gpu.count: 16, gpu.memory: 640Gi, gpu.vcore: "2"}
    used: {gpu.count: 2}
    details: {rack: r1, nodes: 2}
  - name: gpu.test
    total: {gpu.count: 4}
    guaranteed: {gpu.count: 1}
    pending: {gpu.count: 3}
    open: false
applications:
  - {id: job-7, place: gpu.train, allocated: {gpu.count: 2}, user: alice, tags: [rm-7]}
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[[str], str]:
    """Writes the file and gives its path; each time it is another file under the same name."""

    def write(text: str, name: str = "places.yaml") -> str:
        fresh = tmp_path / "fresh"
        fresh.write_text(text)
        fresh.replace(tmp_path / name)
        return str(tmp_path / name)

    return write


def request_for(path: str, provider: StaticProvider) -> ExternalResourceRequest:
    record = ProviderRecord("static", "c1", {"path": path})
    return ExternalResourceRequest(provider.parser.parse(record), 10)


def places_of(path: str) -> dict[str, Place]:
    provider = StaticProvider()
    return {place.name: place for place in provider.places(request_for(path, provider))}


def refusal_of(path: str) -> str:
    with pytest.raises(MalformedError) as caught:
        places_of(path)
    return str(caught.value).removeprefix(f"{path}: ")


class TestItsContract(ProviderContract):
    @pytest.fixture
    def subject(self, write: Callable[[str], str], tmp_path: Path) -> Subject:
        def at(path: Path) -> Trouble:
            @contextmanager
            def way() -> Iterator[Config]:
                yield {"path": str(path)}

            return Trouble(way)

        os.mkfifo(tmp_path / "pipe")
        (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
        return Subject(
            StaticProvider(),
            {"path": write(GOOD), "cluster": "lab"},
            troubles={
                "is not there": at(tmp_path / "nothing"),
                "is a folder": at(tmp_path),
                "is a pipe that nobody writes to": at(tmp_path / "pipe"),
                "is no text": at(tmp_path / "binary"),
            },
        )


@pytest.mark.parametrize("amount", [-1, 2**63])
def test_an_amount_that_cannot_be_is_told_as_it_is_so_that_its_place_alone_is_quarantined(
    write: Callable[[str], str], amount: int
) -> None:
    text = f"places: [{{name: a, total: {{x: {amount}}}}}, {{name: b, total: {{x: 1}}}}]"
    assert [place.total for place in places_of(write(text)).values()] == [{"x": amount}, {"x": 1}]


def test_places_are_read_with_amounts_as_quantities(write: Callable[[str], str]) -> None:
    places = places_of(write(GOOD))
    assert places == {
        "gpu.train": Place(
            "gpu.train",
            total={"gpu.count": 16, "gpu.memory": 640 * 2**30, "gpu.vcore": 2000},
            used={"gpu.count": 2},
            details={"rack": "r1", "nodes": 2},
        ),
        "gpu.test": Place(
            "gpu.test",
            total={"gpu.count": 4},
            used={},
            guaranteed={"gpu.count": 1},
            pending={"gpu.count": 3},
            open=False,
        ),
    }


def test_applications_are_read(write: Callable[[str], str]) -> None:
    provider = StaticProvider()
    assert provider.applications(request_for(write(GOOD), provider)) == (
        ExternalApplication("job-7", "gpu.train", {"gpu.count": 2}, user="alice", tags=frozenset({"rm-7"})),
    )


def test_a_json_file_says_the_same(write: Callable[..., str]) -> None:
    path = write('{"places": [{"name": "a", "total": {"x": "2k"}}]}', "places.json")
    assert places_of(path) == {"a": Place("a", total={"x": 2000}, used={})}


def test_the_file_is_read_anew_when_it_has_changed_and_only_then(
    write: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = StaticProvider()
    request = request_for(write(GOOD), provider)
    before = provider.places(request)
    assert provider.places(request) is before, "it was read again"
    write(GOOD.replace("16", "32"))
    assert [place.total["gpu.count"] for place in provider.places(request)] == [32, 4]


def test_a_file_that_was_repaired_is_read(write: Callable[[str], str]) -> None:
    provider = StaticProvider()
    request = request_for(write("places: 7"), provider)
    with pytest.raises(MalformedError, match="must be a list"):
        provider.places(request)
    write(GOOD)
    assert len(provider.places(request)) == 2


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("", "the file: must be an object"),
        ("places: {a: 1}", "places: must be a list"),
        ("places: [7]", "places[0]: must be an object"),
        ("places: [{total: {}}]", "places[0].name: is missing"),
        ("places: [{name: 7, total: {}}]", "places[0].name: the value is not a text"),
        ("places: [{name: a}]", "places.a.total: is missing"),
        ("places: [{name: a, total: [1]}]", "places.a.total: must be an object of amounts"),
        ("places: [{name: a, total: {x: '-1'}}]", "places.a.total.x: "),
        ("places: [{name: a, total: {x: 1.5}}]", "places.a.total.x: must be an integer or a text, not float"),
        ("places: [{name: a, total: {x: yes}}]", "places.a.total.x: must be an integer or a text, not bool"),
        ("places: [{name: a, total: {x: 8Gb}}]", "places.a.total.x: unknown suffix"),
        ("places: [{name: a, total: {7: 1}}]", "places.a.total: '7' is no dimension: the key is not a text"),
        ("places: [{name: a, total: {}, open: 1}]", "places.a.open: must be true or false"),
        ("places: [{name: a, total: {}, details: {x: .nan}}]", "places.a.details: must be an object of"),
        ("places: [{name: a, total: {}, size: 1}]", "places.a.size: is unknown; there are name, total,"),
        ("places: [{name: a, total: {}}, {name: a, total: {}}]", "places[1].name: is there twice"),
        ("places: [{name: a, total: {x: 1, x: 2}}]", "the key 'x' is there twice in one object"),
        ("applications: [{id: j, place: a}]", "applications.j.place: is none of the places"),
        ("applications: [{id: j}]", "applications.j.place: is missing"),
        ("a: &a {x: 1}\nplaces: [{<<: *a}]", "has a merge (<<), which is not read"),
        ("places: [}", "is no YAML at line 1, column 10"),
        ("places: 2024-99-99", "holds a value that YAML cannot read"),
        ("[" * 5000, "is nested too deeply"),
        ("#" * (MAX_BYTES + 1), f"is longer than {MAX_BYTES} bytes"),
    ],
)
def test_what_is_wrong_is_named_with_its_place_and_field(
    write: Callable[[str], str], text: str, refusal: str
) -> None:
    assert refusal_of(write(text)).startswith(refusal)


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ('{"places": [}', "is no JSON at line 1, column 13"),
        ('{"places": [], "places": []}', "the key 'places' is there twice in one object"),
        ('{"places": [{"name": "a", "total": {"x": ' + "9" * 5000 + "}}]}", "holds a number with too many"),
        ('{"places": [{"name": "\\ud800", "total": {}}]}', "places[0].name: the value holds a control"),
        ("[" * 100_000, "is nested too deeply"),
    ],
)
def test_what_is_wrong_with_json_is_named(write: Callable[..., str], text: str, refusal: str) -> None:
    assert refusal_of(write(text, "places.json")).startswith(refusal)


def test_no_value_of_a_file_is_repeated_that_is_not_meant_for_us(write: Callable[[str], str]) -> None:
    stranger = "places:\n  - {name: a, total: {key: 5s3cret-value}}\n"
    assert "s3cret" not in refusal_of(write(stranger))
    assert "s3cret" not in refusal_of(write("root:s3cret:0:0\nadm:*:"))


def test_a_file_that_is_not_there_is_unreachable(tmp_path: Path) -> None:
    with pytest.raises(UnreachableError, match="No such file"):
        places_of(str(tmp_path / "nothing"))


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"path": "places.yaml"}, "path"),
        ({"path": "/a\0b"}, "path"),
        ({"path": "/a\ud800"}, "path"),
        ({"path": "/a", "cluster": ""}, "cluster"),
        ({"path": "/a", "cluster": "a\nb"}, "cluster"),
    ],
)
def test_a_configuration_that_cannot_be_right_is_refused(config: dict[str, Any], field: str) -> None:
    with pytest.raises(ProviderConfigError) as caught:
        StaticProvider.parser.parse(ProviderRecord("static", "c1", config))
    assert list(caught.value.faults) == [field]


def test_the_cluster_is_the_configured_one_else_the_name() -> None:
    parse = StaticProvider.parser.parse
    assert parse(ProviderRecord("static", "c1", {"path": "/a"})).labels == {"externalCluster": "c1"}
    named = parse(ProviderRecord("static", "c1", {"path": "/a", "cluster": "lab"}))
    assert named.labels == {"externalCluster": "lab"}
