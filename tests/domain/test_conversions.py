import pytest

from rm_service.domain.conversions import Conversions
from rm_service.domain.rule_documents import RuleError
from rm_service.domain.tags import TagError

USER_CREATOR = {"tag": "userCreator", "split": "(?P<user>.+)-(?P<creator>[^-]+)"}


def convert(*steps: object, drop: tuple[str, ...] = ()) -> Conversions:
    return Conversions.from_document({"filter": list(drop), "convert": list(steps)})


@pytest.mark.parametrize("document", [None, {}, {"filter": [], "convert": []}])
def test_without_conversions_tags_stay_as_they_are(document: object) -> None:
    assert Conversions.from_document(document).apply({"user": "alice"}) == {"user": "alice"}


def test_filter_drops_tags_by_key_and_by_beginning() -> None:
    tags = {"debug": "1", "debugger": "1", "trace.id": "7", "trace.": "7", "user": "alice"}
    assert convert(drop=("debug", "trace.*")).apply(tags) == {"debugger": "1", "user": "alice"}


def test_filter_comes_before_the_steps() -> None:
    assert convert(USER_CREATOR, drop=("userCreator",)).apply({"userCreator": "nonsense"}) == {}


@pytest.mark.parametrize(
    ("value", "user", "creator"), [("alice-IDE", "alice", "IDE"), ("svc-etl-IDE", "svc-etl", "IDE")]
)
def test_split_takes_the_named_groups_and_divides_at_the_last_dash(
    value: str, user: str, creator: str
) -> None:
    assert convert(USER_CREATOR).apply({"userCreator": value}) == {"user": user, "creator": creator}


@pytest.mark.parametrize("value", ["alice", "-IDE", "alice-", ""])
def test_a_split_that_does_not_match_is_an_error_that_names_the_tag(value: str) -> None:
    with pytest.raises(TagError) as caught:
        convert(USER_CREATOR).apply({"userCreator": value})
    assert caught.value.key == "userCreator"


def test_a_group_that_took_no_part_makes_no_tag() -> None:
    step = {"tag": "engine", "split": "(?P<name>[a-z]+)(-(?P<version>.+))?"}
    assert convert(step).apply({"engine": "spark"}) == {"name": "spark"}


def test_rename_gives_another_key() -> None:
    assert convert({"tag": "emInstance", "rename": "node"}).apply({"emInstance": "h:1"}) == {"node": "h:1"}


def test_map_changes_listed_values_only() -> None:
    conversions = convert({"tag": "engineType", "map": {"spark": "spark-3.3"}})
    assert conversions.apply({"engineType": "spark"}) == {"engineType": "spark-3.3"}
    assert conversions.apply({"engineType": "hive"}) == {"engineType": "hive"}
    assert conversions.apply({}) == {}


def test_combine_writes_a_tag_from_others_if_all_are_there() -> None:
    conversions = convert({"tag": "owner", "combine": "{user}@{tenant}"})
    assert conversions.apply({"user": "a", "tenant": "t"}) == {"user": "a", "tenant": "t", "owner": "a@t"}
    assert conversions.apply({"user": "a"}) == {"user": "a"}


def test_combine_takes_values_literally() -> None:
    conversions = convert({"tag": "owner", "combine": "{user}"})
    assert conversions.apply({"user": r"{tenant}\1"})["owner"] == r"{tenant}\1"


@pytest.mark.parametrize(
    ("step", "tags", "expected"),
    [
        (USER_CREATOR, {"userCreator": "alice-IDE", "user": "bob"}, {"user": "bob", "creator": "IDE"}),
        ({"tag": "em", "rename": "node"}, {"em": "a", "node": "b"}, {"node": "b"}),
        ({"tag": "owner", "combine": "{user}"}, {"user": "a", "owner": "b"}, {"user": "a", "owner": "b"}),
    ],
)
def test_explicit_tags_win(step: object, tags: dict[str, str], expected: dict[str, str]) -> None:
    assert convert(step).apply(tags) == expected


def test_steps_run_in_order() -> None:
    conversions = convert(
        {"tag": "label", "rename": "userCreator"}, USER_CREATOR, {"tag": "user", "map": {"a": "b"}}
    )
    assert conversions.apply({"label": "a-IDE"}) == {"user": "b", "creator": "IDE"}


def test_the_result_must_be_good_tags() -> None:
    step = {"tag": "owner", "combine": "{user}{user}"}
    with pytest.raises(TagError) as caught:
        convert(step).apply({"user": "x" * 200})
    assert caught.value.key == "owner"


def test_the_callers_tags_are_not_changed() -> None:
    tags = {"userCreator": "alice-IDE"}
    convert(USER_CREATOR).apply(tags)
    assert tags == {"userCreator": "alice-IDE"}


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ([], "conversions"),
        ({"filters": []}, "conversions.filters"),
        ({"filter": "debug"}, "conversions.filter"),
        ({"filter": ["ok", "*"]}, "conversions.filter[1]"),
        ({"filter": ["a*b"]}, "conversions.filter[0]"),
        ({"filter": [7]}, "conversions.filter[0]"),
        ({"convert": [{"split": "(?P<a>.)"}]}, "conversions.convert[0].tag"),
        ({"convert": [{"tag": "a b", "rename": "c"}]}, "conversions.convert[0].tag"),
        ({"convert": [{"tag": "a"}]}, "conversions.convert[0]"),
        ({"convert": [{"tag": "a", "rename": "b", "map": {"x": "y"}}]}, "conversions.convert[0]"),
        ({"convert": [{"tag": "a", "rename": "b", "why": 1}]}, "conversions.convert[0].why"),
        (
            {"convert": [{"tag": "a", "rename": "b"}, {"tag": "a", "split": "("}]},
            "conversions.convert[1].split",
        ),
        ({"convert": [{"tag": "a", "split": ".+"}]}, "conversions.convert[0].split"),
        ({"convert": [{"tag": "a", "split": "(?P<_b>.+)"}]}, "conversions.convert[0].split"),
        ({"convert": [{"tag": "a", "rename": ""}]}, "conversions.convert[0].rename"),
        ({"convert": [{"tag": "a", "map": {}}]}, "conversions.convert[0].map"),
        ({"convert": [{"tag": "a", "map": {"on": True}}]}, "conversions.convert[0].map.on"),
        ({"convert": [{"tag": "a", "combine": "fixed"}]}, "conversions.convert[0].combine"),
        ({"convert": [{"tag": "a", "combine": "{b} {"}]}, "conversions.convert[0].combine"),
        ({"convert": [{"tag": "a", "combine": "{b.__class__!r}"}]}, "conversions.convert[0].combine"),
        ({"convert": [{"tag": "a", "rename": "b"}] * 65}, "conversions.convert"),
    ],
)
def test_a_mistake_in_the_configuration_is_named(document: object, path: str) -> None:
    with pytest.raises(RuleError) as caught:
        Conversions.from_document(document)
    assert caught.value.path == path
