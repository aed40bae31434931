from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rm_service.domain.queue_config import RECOVERY_QUEUE, PartitionConfig
from rm_service.domain.queue_documents import MAX_DEPTH, read_configuration
from rm_service.domain.queue_fields import is_queue_name
from rm_service.domain.queue_placement import Owner, Placed, Refusal, owner_of, place_application
from tests.domain.queue_strategies import NAMES, Document, partitions

FORCED = {"application.create.force": "true"}
NO_RULE = "failed to place application app-1: application rejected: no placement rule matched"
TREE: list[Document] = [
    {
        "name": "root",
        "submitacl": "*",
        "queues": [{"name": "team", "queues": [{"name": "batch"}]}, {"name": "leaf"}],
    }
]


def partition_of(*rules: Document, queues: Sequence[Document] = TREE) -> PartitionConfig:
    """A partition with these rules."""
    document = {"partitions": [{"queues": list(queues), "placementrules": list(rules)}]}
    return read_configuration(document).partitions[0]


def place(
    config: PartitionConfig,
    queue: str = "",
    *,
    user: str = "alice",
    groups: Sequence[str] = (),
    tags: Mapping[str, str] | None = None,
) -> Placed | Refusal:
    return place_application(
        config, application="app-1", queue=queue, user=user, groups=groups, tags=tags or {}
    )


def queue_of(config: PartitionConfig, queue: str = "", **asked: Any) -> str:
    """The queue, or why there is none."""
    outcome = place(config, queue, **asked)
    return outcome.queue if isinstance(outcome, Placed) else outcome.reason


# ---- without rules


@pytest.mark.parametrize("queue", ["root.team.batch", "team.batch", "ROOT.Team.BATCH", "Team.batch"])
def test_without_rules_the_queue_asked_for_is_taken_in_full_or_below_root(queue: str) -> None:
    assert place(partition_of(), queue) == Placed("root.team.batch")


def test_without_rules_an_unknown_queue_is_refused() -> None:
    assert place(partition_of(), "root.nowhere") == Refusal(NO_RULE)
    assert place(partition_of(), "") == Refusal(NO_RULE)


def test_what_no_rule_places_goes_to_the_default_queue_where_there_is_one() -> None:
    config = partition_of(queues=[{"name": "root", "submitacl": "*", "queues": [{"name": "default"}]}])
    assert queue_of(config, "root.nowhere") == "root.default"


@pytest.mark.parametrize("queue", ["root.team", "root"])
def test_a_queue_that_is_no_leaf_is_refused(queue: str) -> None:
    assert place(partition_of(), queue) == Refusal(f"failed to find queue {queue} for application app-1")


@pytest.mark.parametrize("queue", ["root.", "root..a", "a b", "root.a\nb", "root." + "x" * 65, "ros\u212a"])
def test_a_name_that_can_be_no_queue_is_refused(queue: str) -> None:
    outcome = place(partition_of({"name": "provided", "create": True}), queue)
    assert isinstance(outcome, Refusal)
    assert outcome.reason.startswith("failed to place application app-1: invalid queue name ")
    assert "\n" not in outcome.reason


def test_a_path_that_is_too_deep_is_refused() -> None:
    config = partition_of({"name": "provided", "create": True})
    assert queue_of(config, "root" + ".a" * (MAX_DEPTH - 1)) == "root" + ".a" * (MAX_DEPTH - 1)
    assert "invalid queue name" in queue_of(config, "root" + ".a" * MAX_DEPTH)


# ---- the built-in default


def test_the_default_takes_the_namespace_then_the_queue_asked_for_then_root_default() -> None:
    config = read_configuration(None).partitions[0]
    assert queue_of(config, "root.mine", tags={"namespace": "Dev"}) == "root.dev"
    assert queue_of(config, "root.mine") == "root.mine"
    assert queue_of(config) == "root.default"


# ---- rules


def test_the_first_rule_that_fits_places() -> None:
    config = partition_of({"name": "tag", "value": "NameSpace"}, {"name": "fixed", "value": "leaf"})
    assert queue_of(config, tags={"Namespace": "root.team.batch"}) == "root.team.batch"
    assert queue_of(config, tags={"namespace": "unknown"}) == "root.leaf"


def test_only_a_rule_that_creates_finds_a_queue_that_is_not_configured() -> None:
    assert place(partition_of({"name": "user", "create": True})) == Placed("root.alice", created=True)
    assert place(partition_of({"name": "user"})) == Refusal(NO_RULE)


def test_a_dot_in_a_name_makes_no_level() -> None:
    assert queue_of(partition_of({"name": "user", "create": True}), user="a.b") == "root.a_dot_b"
    assert queue_of(partition_of({"name": "user", "create": True}), user="root.team") == "root.root_dot_team"
    assert queue_of(partition_of({"name": "provided", "create": True}), "x.y") == "root.x_dot_y"


def test_a_user_or_a_namespace_called_root_is_not_the_root() -> None:
    assert queue_of(partition_of({"name": "user", "create": True}), user="root") == "root.root"
    tag = {"name": "tag", "value": "namespace", "create": True}
    assert queue_of(partition_of(tag), tags={"namespace": "root"}) == "root.root"


def test_a_parent_rule_names_what_the_queue_is_below() -> None:
    by_team = {"name": "fixed", "value": "team"}
    tag = {"name": "tag", "value": "namespace", "create": True, "parent": by_team}
    config = partition_of({"name": "user", "create": True, "parent": tag})
    assert queue_of(config, tags={"namespace": "dev"}) == "root.team.dev.alice"
    assert queue_of(config) == NO_RULE


def test_a_queue_in_full_needs_no_parent() -> None:
    config = partition_of({"name": "provided", "create": True, "parent": {"name": "user", "create": True}})
    assert queue_of(config, "root.leaf") == "root.leaf"
    assert queue_of(config, "leaf") == "root.alice.leaf"


def test_a_parent_that_is_a_leaf_rejects_the_application() -> None:
    config = partition_of(
        {"name": "user", "create": True, "parent": {"name": "fixed", "value": "leaf"}},
        {"name": "fixed", "value": "root.team.batch"},
    )
    assert (
        queue_of(config) == "failed to place application app-1: parent rule returned a leaf queue: root.leaf"
    )


def test_nothing_is_created_below_a_leaf() -> None:
    assert queue_of(partition_of({"name": "provided", "create": True}), "root.leaf.more") == (
        "failed to create rule based queue root.leaf.more for application app-1\n"
        "parent queue is a leaf: root.leaf"
    )


@pytest.mark.parametrize(
    ("filter_", "user", "groups", "fits"),
    [
        ({}, "anyone", [], True),
        ({"type": "deny"}, "anyone", [], False),
        ({"users": ["alice", "bob"]}, "bob", [], True),
        ({"users": ["alice", "bob"]}, "eve", [], False),
        ({"type": "Deny", "users": ["alice"]}, "alice", [], False),
        ({"type": "deny", "users": ["alice"]}, "eve", [], True),
        ({"users": ["alice"], "groups": ["dev"]}, "eve", ["ops", "dev"], True),
        ({"type": "deny", "groups": ["dev"]}, "eve", ["dev"], False),
        ({"users": ["^dev-[0-9]+$"]}, "dev-12", [], True),
        ({"users": ["^dev-[0-9]+$"]}, "my-dev-12", [], False),
        ({"groups": ["(ops|dev)"]}, "eve", ["devs"], True),
    ],
)
def test_a_filter_chooses_whom_a_rule_is_for(
    filter_: Document, user: str, groups: list[str], fits: bool
) -> None:
    config = partition_of({"name": "fixed", "value": "leaf", "filter": filter_})
    assert (queue_of(config, user=user, groups=groups) == "root.leaf") is fits


# ---- who may submit


ACLS: list[Document] = [
    {
        "name": "root",
        "adminacl": "ada",
        "queues": [
            {
                "name": "team",
                "submitacl": " dev",
                "queues": [{"name": "a", "submitacl": "bob"}, {"name": "b"}],
            },
            {"name": "open", "submitacl": "*"},
        ],
    }
]


@pytest.mark.parametrize(
    ("user", "groups", "queue", "allowed"),
    [
        ("bob", [], "root.team.a", True),
        ("bob", [], "root.team.b", False),
        ("eve", ["dev"], "root.team.a", True),
        ("ada", [], "root.team.b", True),
        ("eve", [], "root.open", True),
        ("eve", ["ops"], "root.team.b", False),
    ],
)
def test_a_queue_or_one_above_it_lets_the_user_submit(
    user: str, groups: list[str], queue: str, allowed: bool
) -> None:
    assert (queue_of(partition_of(queues=ACLS), queue, user=user, groups=groups) == queue) is allowed


def test_a_rule_whose_queue_does_not_let_the_user_in_is_passed_over() -> None:
    config = partition_of(
        {"name": "provided", "create": True}, {"name": "fixed", "value": "open"}, queues=ACLS
    )
    assert queue_of(config, "root.team.new", user="eve") == "root.open"
    assert queue_of(config, "root.team.new", user="eve", groups=["dev"]) == "root.team.new"


def test_the_default_queue_lets_in_only_whom_it_lets_in() -> None:
    config = partition_of(queues=[{"name": "default", "submitacl": "bob"}, {"name": "other"}])
    assert queue_of(config, user="bob") == "root.default"
    assert queue_of(config, user="eve") == NO_RULE


# ---- who it belongs to


def test_an_application_belongs_to_a_user_with_a_name() -> None:
    assert owner_of("alice", ["dev"], {}) == Owner("alice", ("dev",))
    assert owner_of("", [], {}) == Refusal("empty user cannot resolve")
    for name in ("a b", "1a", "a\n", "x" * 257):
        assert owner_of(name, [], {}) == Refusal("invalid username, it contains invalid characters")


def test_a_forced_application_without_a_user_belongs_to_nobody() -> None:
    assert owner_of("", [], FORCED) == Owner("nobody", ("nogroup",))
    assert owner_of("a b", ["dev"], FORCED) == Owner("nobody", ("nogroup",))
    assert owner_of("bob", [], FORCED) == Owner("bob")


# ---- forced


@pytest.mark.parametrize("queue", ["", "root.team", "root.nowhere", "root.leaf.more", "a b", RECOVERY_QUEUE])
def test_a_forced_application_is_never_refused(queue: str) -> None:
    config = partition_of({"name": "provided"})
    assert place(config, queue, user="", tags=FORCED) == Placed(RECOVERY_QUEUE, created=True)


def test_a_forced_application_goes_where_the_rules_say_if_they_can() -> None:
    assert queue_of(partition_of(), "root.leaf", tags=FORCED) == "root.leaf"


def test_the_recovery_queue_has_no_quota_and_is_for_nobody_else() -> None:
    config = partition_of({"name": "provided", "create": True})
    quota = {"namespace.resourcemaxapps": "1"}
    assert place(config, "a b", tags={**FORCED, **quota}) == Placed(RECOVERY_QUEUE, created=True)
    assert queue_of(config, RECOVERY_QUEUE) == NO_RULE
    assert queue_of(config, f"{RECOVERY_QUEUE}.mine") == NO_RULE


# ---- quotas of created queues


TEMPLATED: list[Document] = [
    {
        "name": "root",
        "submitacl": "*",
        "childtemplate": {
            "maxapplications": 3,
            "resources": {"max": {"memory": "1Gi"}, "guaranteed": {"memory": "1Mi"}},
        },
        "queues": [{"name": "leaf"}],
    }
]
CREATING = partition_of({"name": "provided", "create": True}, queues=TEMPLATED)


def test_a_created_queue_has_what_the_template_says() -> None:
    expected = Placed("root.a.b", True, {"memory": 2**30}, 3, {"memory": 2**20})
    assert place(CREATING, "root.a.b") == expected
    assert place(CREATING, "root.leaf") == Placed("root.leaf")


def test_the_tags_of_a_namespace_win_over_the_template() -> None:
    tags = {
        "namespace.resourcequota": '{"resources": {"memory": {"value": 5}, "vcore": {"value": "7"}}}',
        "namespace.resourceguaranteed": '{"resources": {"memory": {"value": 2}}}',
        "namespace.resourcemaxapps": "9",
    }
    assert place(CREATING, "new", tags=tags) == Placed(
        "root.new", True, {"memory": 5, "vcore": 7}, 9, {"memory": 2}
    )
    assert place(CREATING, "root.leaf", tags=tags) == Placed("root.leaf")


@pytest.mark.parametrize(
    "text",
    ["", "{", "5", "[]", '{"resources": 5}', '{"resources": {"memory": 5}}', "[" * 10_000]
    + [f'{{"resources": {{"memory": {{"value": {value}}}}}}}' for value in ("-1", "1.5", "0", "true", 2**63)]
    + ['{"resources": {"apps": {"value": 1}}}', '{"resources": {"a b": {"value": 1}}}'],
)
def test_a_quota_that_cannot_be_read_says_nothing(text: str) -> None:
    tags = {"namespace.resourcequota": text, "namespace.resourcemaxapps": "-1"}
    outcome = place(CREATING, "new", tags=tags)
    assert isinstance(outcome, Placed)
    assert (outcome.max, outcome.max_applications) == ({"memory": 2**30}, 3)


# ---- all configurations


paths = st.lists(st.sampled_from([*NAMES, "root", "x y", ""]), max_size=4).map(".".join)


@given(
    partitions(),
    paths | paths.map(lambda path: f"root.{path}") | st.text(max_size=5),
    st.sampled_from(["alice", "bob", "eve", "root", "a.b", "x$", "", "a b"]),
    st.lists(st.sampled_from(["dev", "ops"]), unique=True),
    st.fixed_dictionaries({}, optional={"namespace": paths, "application.create.force": st.just("true")}),
)
@settings(max_examples=300, suppress_health_check=[HealthCheck.too_slow])
def test_an_application_ends_in_a_leaf_or_is_refused_with_a_reason(
    document: Document, queue: str, user: str, groups: list[str], tags: dict[str, str]
) -> None:
    config = read_configuration({"partitions": [document]}).partitions[0]
    outcome = place(config, queue, user=user, groups=groups, tags=tags)
    if isinstance(outcome, Refusal):
        assert outcome.reason
        assert "application.create.force" not in tags
        return
    assert outcome.created is (outcome.queue not in config.queues)
    assert all(map(is_queue_name, outcome.queue.split(".")))
    if outcome.queue == RECOVERY_QUEUE:
        assert "application.create.force" in tags
        return
    nearest = next(config.upwards(outcome.queue))
    assert nearest.is_leaf is not outcome.created
    assert config.may_submit(outcome.queue, user, groups)
