from contextlib import suppress
from pathlib import Path
from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rm_service.domain.queue_config import QueueConfigError
from rm_service.domain.queue_documents import read_configuration
from rm_service.services.si.policies import (
    MAX_CONFIG_BYTES,
    Effective,
    default_policy,
    effective_text,
    parse_config,
    policy,
)

ONE_QUEUE = "partitions:\n  - queues:\n      - name: {name}\n"


def refused(text: str) -> QueueConfigError:
    with pytest.raises(QueueConfigError) as caught:
        parse_config(text)
    return caught.value


def one_queue(name: str) -> list[str]:
    return sorted(parse_config(ONE_QUEUE.format(name=name)).partitions[0].queues)


def test_a_text_of_the_reference_is_read() -> None:
    config = parse_config(
        """
        partitions:
          - name: default
            placementrules:
              - {name: tag, value: namespace, create: true}
            nodesortpolicy: {type: binpacking, resourceweights: {memory: 2.5}}
            queues:
              - name: root
                submitacl: '*'
                queues:
                  - name: prod
                    resources:
                      guaranteed: {memory: 10G, vcore: 10}
                      max: {memory: 20G, vcore: "12"}
                    limits:
                      - limit: everyone
                        users: ["*"]
                        maxapplications: 3
        """
    )
    queue = config.partitions[0].queues["root.prod"]
    assert queue.max == {"memory": 20 * 10**9, "vcore": 12_000}
    assert queue.guaranteed == {"memory": 10 * 10**9, "vcore": 10_000}
    assert config.partitions[0].placement_rules[0].create
    assert config.partitions[0].node_sort.weights == {"memory": 2.5}


@pytest.mark.parametrize("text", ["", "  \n", "# nothing\n", "---\n", "{}"])
def test_an_empty_text_is_the_built_in_default(text: str) -> None:
    assert parse_config(text) == read_configuration(None)


@pytest.mark.parametrize("name", ["007", "1_0", "on", "1e3", '"true"', "|-\n          null"])
def test_a_name_stays_the_text_that_was_written(name: str) -> None:
    written = name.strip('"').removeprefix("|-").strip()
    assert one_queue(name) == ["root", f"root.{written}"]


@pytest.mark.parametrize(
    ("text", "place", "reason"),
    [
        ("partitions: ]", "line 1", "no YAML"),
        ("a: 1\nb: 'hunter2", "line 2", "no YAML"),
        ("a: &x 1\nb: *x\n", "line 2", "alias"),
        ("a: 1\nb: 2\na: 3\n", "line 3", "repeats"),
        ("partitions: !!python/object:os.system {}\n", "line 1", "tag"),
        ("? [a]\n: 1\n", "line 1", "a list or a map where the name of a field"),
        ("{[", "line 1", "a list or a map where the name of a field"),
        ("---\na: 1\n---\nb: 1\n", "line 3", "second document"),
        ("[" * 1000, "line 1", "nested"),
        ("- " * 1000, "line 1", "nested"),
        ("just a text", "config", "object"),
        ("a: \x00", "config", "character"),
        ("a: \ud800", "config", "no text"),
    ],
)
def test_a_text_that_is_no_plain_document_is_refused(text: str, place: str, reason: str) -> None:
    error = refused(text)
    assert error.path == place
    assert reason in error.reason


def test_a_text_that_is_too_long_is_refused_before_it_is_parsed() -> None:
    assert "longer" in refused("#" * (MAX_CONFIG_BYTES + 1)).reason
    assert "longer" in refused("#" + "ä" * (MAX_CONFIG_BYTES // 2)).reason


def test_a_text_of_the_greatest_length_takes_seconds_at_most() -> None:
    line = "      - name: aaaaaaaaaaaaaaaa\n"
    text = "partitions:\n  - queues:\n" + line * ((MAX_CONFIG_BYTES - 100) // len(line))
    before = process_time()
    refused(text)
    assert process_time() - before < 60


@pytest.mark.parametrize(
    "text",
    ["a: hunter2: b", "hunter2: 'x", "%hunter2", "*hunter2", '"\\hunter2"', "@hunter2", "a: !hunter2 b"],
)
def test_a_refusal_repeats_nothing_of_the_text(text: str) -> None:
    error = refused(text)
    assert "hunter2" not in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None or error.__suppress_context__


@given(st.text(alphabet="ab:-[]{}\"'&*!|>%@\n ,?#", max_size=40))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(QueueConfigError):
        assert parse_config(text).partitions


# ---- policy groups


def test_the_default_policy_comes_with_the_service_and_is_the_built_in_default() -> None:
    assert policy("default") == read_configuration(None)
    assert default_policy() == read_configuration(None)


def test_a_policy_group_is_its_file(tmp_path: Path) -> None:
    (tmp_path / "team-1.yaml").write_text(ONE_QUEUE.format(name="batch"))
    config = policy("team-1", tmp_path)
    assert config is not None
    assert "root.batch" in config.partitions[0].queues
    assert policy("team-2", tmp_path) is None


def test_the_operators_default_policy_is_taken_and_its_absence_is_the_built_in_one(tmp_path: Path) -> None:
    assert default_policy(tmp_path) == read_configuration(None)
    (tmp_path / "default.yaml").write_text(ONE_QUEUE.format(name="batch"))
    assert "root.batch" in default_policy(tmp_path).partitions[0].queues


def test_what_an_rm_brings_goes_before_its_group_and_that_before_the_default(tmp_path: Path) -> None:
    (tmp_path / "lab.yaml").write_text("lab")
    (tmp_path / "default.yaml").write_text("default")
    assert effective_text("own", "nobody-has-this", tmp_path) == Effective("own")
    assert effective_text(" \n", "lab", tmp_path) == Effective("lab")
    assert effective_text("", "", tmp_path) == Effective("default")


def test_of_an_unknown_group_there_is_a_warning_that_stays_short(tmp_path: Path) -> None:
    found = effective_text("", "lab", tmp_path)
    assert found == Effective("", 'there is no policy group "lab": default is used')
    assert len(effective_text("", "x" * 10_000, tmp_path).warning) < 120


@pytest.mark.parametrize(
    "group", ["../secret", "/etc/secret", "..", "", ".hidden", "a/b", "a\x00b", "secret\n"]
)
def test_a_group_never_leads_out_of_the_folder(group: str, tmp_path: Path) -> None:
    folder = tmp_path / "policies"
    folder.mkdir()
    (tmp_path / "secret.yaml").write_text(ONE_QUEUE.format(name="batch"))
    (folder / ".hidden.yaml").write_text(ONE_QUEUE.format(name="batch"))
    assert policy(group, folder) is None


def test_a_bad_policy_file_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("partitions: []")
    (tmp_path / "binary.yaml").write_bytes(b"\xff\xfe\xff")
    (tmp_path / "folder.yaml").mkdir()
    for group, place in (
        ("bad", "bad.yaml: partitions"),
        ("binary", "binary.yaml"),
        ("folder", "folder.yaml"),
    ):
        with pytest.raises(QueueConfigError) as caught:
            policy(group, tmp_path)
        assert caught.value.path == place
