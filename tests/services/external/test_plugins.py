"""Plug-ins are found by their entry points; one that cannot be used is told and leaves the others alone."""

from collections.abc import Callable, Iterator
from importlib.metadata import distributions
from pathlib import Path

import pytest
import structlog
from structlog.typing import EventDict

from rm_service.services.external.plugins import OUR_DISTRIBUTION, Plugins, UnknownProviderTypeError
from tests.services.external.distributions import importable, install

PLUGIN = """
from marshmallow import Schema
from external_providers.base import *

IDENTITY = Identity({type!r}, "{type}Cluster", "{type}Place", frozenset({{"{type}.fish"}}))

class Provider(ExternalResourceProvider):
    identity = IDENTITY
    parser = ExternalResourceProviderParser(IDENTITY, Schema)
    closed = 0
    def applications(self, request): return []
    def places(self, request): return []
    def health(self, request): return Health(True)
    def close(self): self.closed += 1
"""

Bring = Callable[..., None]


@pytest.fixture
def bring(tmp_path: Path) -> Iterator[Bring]:
    """Installs a distribution whose one plug-in is a module's `Provider`."""

    def bring(type_: str, text: str = PLUGIN, *, by: str = "ponds", entry: str | None = None) -> None:
        module = f"plugin_{by.replace('-', '_')}_{type_}"
        source = text.format(type=type_) if text.startswith(PLUGIN) else text
        install(
            tmp_path,
            by,
            {entry or type_: f"{module}:Provider"},
            {module: source},
            f"1.{len(list(tmp_path.iterdir()))}",
        )

    with importable(tmp_path):
        yield bring


@pytest.fixture
def log() -> Iterator[list[EventDict]]:
    with structlog.testing.capture_logs() as events:
        yield events


def found_in(folder: Path) -> Plugins:
    return Plugins(entry for each in distributions(path=[str(folder)]) for entry in each.entry_points)


def module_of(plugins: Plugins, type_: str) -> str:
    return type(plugins.of(type_)).__module__


def test_each_type_has_one_instance(bring: Bring, tmp_path: Path) -> None:
    bring("pond")
    bring("lake", by="lakes")
    plugins = found_in(tmp_path)
    assert sorted(plugins.by_type) == ["lake", "pond"]
    assert plugins.of("pond") is plugins.of("pond")
    assert plugins.of("pond").identify().type == "pond"
    assert plugins.faults == ()


def test_an_unknown_type_is_told_with_those_that_are_known(bring: Bring, tmp_path: Path) -> None:
    bring("pond")
    with pytest.raises(UnknownProviderTypeError) as caught:
        found_in(tmp_path).of("sea")
    assert str(caught.value) == "no external resource manager of type 'sea' is known: there are pond"
    assert caught.value.known == ("pond",)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("import no_such_module", "cannot be loaded: ModuleNotFoundError: No module named 'no_such_module'"),
        ("def", "cannot be loaded: SyntaxError: "),
        ("raise SystemExit(1)", "cannot be loaded: SystemExit: 1"),
        ("Provider = 7", "cannot be loaded: TypeError: 'int' object is not callable"),
        ("Other = 7", "cannot be loaded: AttributeError: "),
        ("Provider = dict", "makes no ExternalResourceProvider"),
        (PLUGIN + "    def __init__(self): 1 / 0\n", "cannot be loaded: ZeroDivisionError: division by zero"),
        (PLUGIN + "    def identify(self): 1 / 0\n", "does not say what it is: ZeroDivisionError"),
        (PLUGIN + "    identity = 7\n", "does not say what it is: 7 is no Identity"),
        (
            PLUGIN + "    identity = Identity('bad', 'a', 'b', frozenset())\n",
            "its parser has another identity",
        ),
        (PLUGIN.replace("{type}Cluster", "a b"), "'a b' cannot be the key of a tag"),
        (
            PLUGIN.replace("{type}Cluster", "{type}Place"),
            "'badPlace' cannot name both the cluster and the place",
        ),
    ],
)
def test_one_that_cannot_be_used_is_told_by_name_and_disturbs_no_other(
    bring: Bring, tmp_path: Path, log: list[EventDict], text: str, reason: str
) -> None:
    bring("pond")
    bring(
        "bad",
        text.replace("{type}", "bad").replace("{{", "{").replace("}}", "}").replace("{type!r}", "'bad'"),
        by="broken",
    )
    plugins = found_in(tmp_path)
    assert list(plugins.by_type) == ["pond"]
    (fault,) = plugins.faults
    assert (fault.type, len(fault.distributions)) == ("bad", 1)
    assert fault.distributions[0].startswith("broken 1.")
    assert reason in fault.reason
    assert [(event["event"], event["type"]) for event in log] == [("provider_plugin_unusable", "bad")]
    with pytest.raises(UnknownProviderTypeError) as caught:
        plugins.of("bad")
    assert caught.value.fault == fault.reason, "who asks for it learns why"


def test_its_identity_has_the_name_of_the_entry_point(bring: Bring, tmp_path: Path) -> None:
    bring("pond", entry="lake")
    (fault,) = found_in(tmp_path).faults
    assert fault.type == "lake"
    assert fault.reason == "it says that its type is 'pond', not the entry point's name"


def test_another_distribution_takes_the_place_of_ours(
    bring: Bring, tmp_path: Path, log: list[EventDict]
) -> None:
    bring("pond", by=OUR_DISTRIBUTION)
    bring("pond", by="ponds")
    plugins = found_in(tmp_path)
    assert module_of(plugins, "pond") == "plugin_ponds_pond"
    assert plugins.faults == ()
    assert [event["event"] for event in log] == ["provider_plugin_replaced"]


def test_two_other_distributions_of_one_type_are_both_left_out(bring: Bring, tmp_path: Path) -> None:
    for by in (OUR_DISTRIBUTION, "ponds", "puddles"):
        bring("pond", by=by)
    (fault,) = (plugins := found_in(tmp_path)).faults
    assert not plugins.by_type
    assert fault.reason.startswith("several distributions bring it: ponds 1.")
    assert "puddles" in fault.reason


def test_ours_does_not_return_unasked_when_its_replacement_is_broken(bring: Bring, tmp_path: Path) -> None:
    bring("pond", by=OUR_DISTRIBUTION)
    bring("pond", "import no_such_module", by="ponds")
    plugins = found_in(tmp_path)
    assert not plugins.by_type
    assert len(plugins.faults) == 1


def test_no_two_types_count_in_one_dimension_and_ours_stays(bring: Bring, tmp_path: Path) -> None:
    bring("pond", by=OUR_DISTRIBUTION)
    text = PLUGIN.format(type="aaa").replace("aaa.fish", "pond.fish")
    bring("aaa", text, by="aaa")
    plugins = found_in(tmp_path)
    assert list(plugins.by_type) == ["pond"]
    assert plugins.faults[0].reason == "the type 'pond' counts pond.fish already"


def test_closing_closes_all_even_if_one_fails(bring: Bring, tmp_path: Path, log: list[EventDict]) -> None:
    bring("pond")
    bring("lake", PLUGIN.format(type="lake").replace("+= 1", "+= 1; raise OSError('busy')"), by="lakes")
    plugins = found_in(tmp_path)
    plugins.close()
    assert [vars(plugins.of(type_))["closed"] for type_ in ("lake", "pond")] == [1, 1]
    assert [(event["event"], event["reason"]) for event in log] == [
        ("provider_plugin_not_closed", "OSError: busy")
    ]


def test_what_comes_with_the_service_is_found() -> None:
    plugins = Plugins.discover()
    assert {"static", "http-json"} <= plugins.by_type.keys()
    assert plugins.faults == ()
