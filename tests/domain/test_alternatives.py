"""An application may go to several clusters: the first with room; one that is nearly full comes last."""

import pytest

from rm_service.domain import operations as op
from rm_service.domain.application import Application, State
from rm_service.domain.declared_rules import read_rule, write_rule
from rm_service.domain.outcomes import Code, Outcome
from rm_service.domain.rule_documents import RuleError
from tests.domain.pure_ledger import PureLedger, application_of, refusal

MEMORY = "yarn.memory"


def queue(cluster: str) -> dict[str, str]:
    return {"yarnCluster": cluster, "yarnQueue": "root.a", "user": "alice"}


@pytest.fixture
def ledger() -> PureLedger:
    """Two clusters, each with a queue of 100, of which 80 are given before the other one is asked."""
    ledger = PureLedger()
    for cluster in ("c1", "c2"):
        looking(ledger, cluster, 0)
    return ledger


def looking(ledger: PureLedger, cluster: str, observed: int) -> None:
    tags = {name: value for name, value in queue(cluster).items() if name != "user"}
    ledger.do(op.Observe(tags, f"yarn/{cluster}", {MEMORY: 100}, {MEMORY: observed}))


def ask(ledger: PureLedger, amount: int, *clusters: str, wait: int = 0) -> Outcome:
    first, *others = clusters or ("c1", "c2")
    name = f"app-{len(ledger.view.applications)}"
    return ledger.do(
        op.Apply(
            name,
            queue(first),
            {MEMORY: amount},
            wait_seconds=wait,
            alternatives=tuple(queue(each) for each in others),
        )
    )


def cluster_of(outcome: Outcome | Application) -> str:
    application = outcome if isinstance(outcome, Application) else application_of(outcome)
    return application.tags["yarnCluster"]


def test_the_first_with_room_is_taken(ledger: PureLedger) -> None:
    assert cluster_of(ask(ledger, 50)) == "c1"
    assert cluster_of(ask(ledger, 60)) == "c2"
    assert ledger.account(**{k: v for k, v in queue("c2").items() if k != "user"}).balance.locked == {
        MEMORY: 60
    }


def test_one_that_would_pass_its_threshold_comes_after_the_others(ledger: PureLedger) -> None:
    assert [cluster_of(ask(ledger, 40)) for _ in range(4)] == ["c1", "c1", "c2", "c2"]
    assert [cluster_of(ask(ledger, 20)) for _ in range(2)] == ["c1", "c2"], "beyond, both have room"


def test_what_others_use_counts_towards_the_threshold(ledger: PureLedger) -> None:
    looking(ledger, "c1", 75)
    assert cluster_of(ask(ledger, 10)) == "c2"


def test_without_a_choice_there_is_no_threshold(ledger: PureLedger) -> None:
    assert cluster_of(ask(ledger, 100, "c1")) == "c1"


def test_one_that_is_not_registered_is_no_obstacle(ledger: PureLedger) -> None:
    assert cluster_of(ask(ledger, 10, "nowhere", "c2")) == "c2"
    assert refusal(ask(ledger, 10, "nowhere", "neither")).code is Code.UNKNOWN_NODE


def test_a_refusal_names_what_is_short_everywhere(ledger: PureLedger) -> None:
    looking(ledger, "c1", 95)
    looking(ledger, "c2", 90)
    refused = refusal(ask(ledger, 20))
    assert [(short.label["yarnCluster"], short.left) for short in refused.shortfalls] == [
        ("c1", 5),
        ("c2", 10),
    ]


@pytest.mark.parametrize("freed", ["c1", "c2"])
def test_who_waits_is_let_in_wherever_there_is_room_first(ledger: PureLedger, freed: str) -> None:
    for cluster in ("c1", "c2"):
        looking(ledger, cluster, 95)
    waiting = application_of(ask(ledger, 20, wait=60))
    assert (waiting.state, cluster_of(waiting)) == (State.WAITING, "c1")
    looking(ledger, freed, 10)
    granted = ledger.application(waiting.id)
    assert (granted.state, cluster_of(granted), granted.alternatives) == (State.LOCKED, freed, ())
    labels = [label.tags for label in (ledger.view.accounts[each].label for each in granted.label_ids)]
    assert {"yarnCluster": freed, "yarnQueue": "root.a"} in labels


def test_thresholds_are_percentages_of_dimensions() -> None:
    document = {"name": "q", "keys": ["q"], "kind": "quota", "thresholds": {"memory": 80}}
    assert write_rule(read_rule(document, "rules[0]")) == document


@pytest.mark.parametrize(
    ("thresholds", "kind", "where"),
    [
        ({"memory": 0}, "quota", "thresholds.memory"),
        ({"memory": 101}, "quota", "thresholds.memory"),
        ({"memory": 0.8}, "quota", "thresholds.memory"),
        ({"memory": True}, "quota", "thresholds.memory"),
        ({}, "quota", "thresholds"),
        (80, "quota", "thresholds"),
        ({"memory": 80}, "rollup", "thresholds"),
    ],
)
def test_a_threshold_that_cannot_be_is_refused_with_its_place(
    thresholds: object, kind: str, where: str
) -> None:
    with pytest.raises(RuleError) as error:
        read_rule({"name": "q", "keys": ["q"], "kind": kind, "thresholds": thresholds}, "rules[0]")
    assert error.value.path == f"rules[0].{where}"
