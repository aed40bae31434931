"""Places within places: neither one nor any that holds it is ever promised twice."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from external_providers.base import ExternalApplication, Place
from rm_service.domain import operations as op
from rm_service.domain.application import External
from rm_service.domain.label_rules import LabelRules
from rm_service.domain.outcomes import Done, Outcome
from rm_service.ledger.queries.external import Tenant, UsedPlace
from rm_service.services.external.observing import in_order, observation
from rm_service.services.external.snapshots import Snapshot
from tests.domain import pure_ledger
from tests.domain.pure_ledger import PureLedger, application_of, refusal
from tests.services.external.test_observing import MEMORY, YARN, here, source

TREE = LabelRules.from_document(
    [
        {
            "name": "yarn-queue",
            "keys": ["yarnCluster", "yarnQueue"],
            "kind": "capacity",
            "hierarchical": {"yarnQueue": "."},
            "external": "yarn",
            "thresholds": {MEMORY: 80},
        }
    ]
)
TOTALS = {"root": 100, "root.a": 100, "root.b": 70, "root.b.x": 70, "root.b.y": 40}
LEAVES = ("root.a", "root.b.x", "root.b.y")


def holds(place: str, other: str) -> bool:
    return other == place or other.startswith(f"{place}.")


@dataclass
class Cluster:
    """A manager whose queues lie within each other, and the ledger that is told of it."""

    others: Mapping[str, int]
    ledger: PureLedger = field(default_factory=PureLedger)
    queue_of: dict[str, str] = field(default_factory=dict)
    promised: dict[str, int] = field(default_factory=dict)
    running: dict[str, int] = field(default_factory=dict)
    """Also of what has ended here and not yet there."""
    listed: list[ExternalApplication] = field(default_factory=list)

    def use(self, place: str) -> int:
        ours = sum(amount for id_, amount in self.running.items() if holds(place, self.queue_of[id_]))
        return ours + sum(amount for name, amount in self.others.items() if holds(place, name))

    def promises(self, place: str) -> int:
        return sum(amount for id_, amount in self.promised.items() if holds(place, self.queue_of[id_]))

    def ask(self, queue: str, amount: int) -> Outcome:
        outcome = self.ledger.apply({MEMORY: amount}, 0, 0, **here(queue))
        if isinstance(outcome, Done):
            id_ = application_of(outcome).id
            self.queue_of[id_], self.promised[id_], self.running[id_] = queue, amount, 0
        return outcome

    def list_all(self) -> None:
        ours = [
            ExternalApplication(
                f"x-{id_}", self.queue_of[id_], {MEMORY: amount}, tags=frozenset({f"rm-{id_}"})
            )
            for id_, amount in self.running.items()
        ]
        others = [ExternalApplication(name, name, {MEMORY: held}) for name, held in self.others.items()]
        self.listed = [*ours, *others]

    def look(self) -> list[op.Observe]:
        """What is told of a look, one by one."""
        places = {
            name: Place(name, {MEMORY: total}, {MEMORY: self.use(name)}) for name, total in TOTALS.items()
        }
        snapshot = Snapshot(places, tuple(self.listed), 0, 0.0, 0.0)
        self.listed = []
        used = [UsedPlace(here(name), self.tenants(name)) for name in TOTALS]
        seen = [(each, observation(source().stored, YARN, each, snapshot, 0, ".")) for each in used]
        return in_order(seen, chunk=1)

    def look_and_tell(self) -> None:
        self.list_all()
        for each in self.look():
            self.ledger.do(each)

    def tenants(self, place: str) -> tuple[Tenant, ...]:
        known = [self.ledger.application(id_) for id_ in self.promised if self.queue_of[id_] == place]
        return tuple(Tenant(each.id, (), (each.external or External()).shown) for each in known)

    def left(self, place: str) -> int:
        return self.ledger.account(**here(place)).left()[MEMORY]


@contextmanager
def cluster(**others: int) -> Iterator[Cluster]:
    with patch.object(pure_ledger, "RULES", TREE):
        found = Cluster({name.replace("_", "."): amount for name, amount in others.items()})
        found.look_and_tell()
        yield found


def test_what_is_promised_in_one_place_is_not_promised_in_its_sibling() -> None:
    with cluster() as there:
        assert isinstance(there.ask("root.a", 80), Done)
        refused = refusal(there.ask("root.b.x", 30))
        [short] = refused.shortfalls
        assert (short.label, short.left) == (here("root"), 20)
        assert isinstance(there.ask("root.b.x", 20), Done)


def test_what_runs_counts_once_in_its_place_and_once_in_each_around_it() -> None:
    with cluster(root_b_y=10) as there:
        there.ask("root.b.x", 30)
        for _ in range(3):
            assert {name: there.left(name) for name in TOTALS} == {
                "root": 60,
                "root.a": 100,
                "root.b": 30,
                "root.b.x": 40,
                "root.b.y": 30,
            }
            there.running = dict(there.promised)
            there.look_and_tell()


def test_an_application_of_a_parent_runs_in_any_place_beneath() -> None:
    with cluster() as there:
        assert isinstance(there.ask("root.b", 30), Done)
        [id_] = there.running
        there.running[id_], there.queue_of[id_] = 30, "root.b.x"
        there.list_all()
        there.queue_of[id_] = "root.b"
        places = {name: Place(name, {MEMORY: 100}, {MEMORY: 30}) for name in ("root", "root.b", "root.b.x")}
        snapshot = Snapshot(places, tuple(there.listed), 0, 0.0, 0.0)
        used = UsedPlace(here("root.b"), there.tenants("root.b"))
        assert observation(source().stored, YARN, used, snapshot, 0, ".").shown == {id_: {MEMORY: 30}}
        assert observation(source().stored, YARN, used, snapshot, 0).shown == {}


@pytest.mark.parametrize(("before", "after"), [(60, 10), (10, 60), (60, 0), (0, 60)])
def test_between_two_chunks_of_a_look_nothing_is_promised_that_is_not_there(before: int, after: int) -> None:
    with cluster(root_b_y=30) as there:
        assert isinstance(there.ask("root.a", 60), Done)
        [id_] = there.promised
        there.running[id_] = before
        there.look_and_tell()
        there.running[id_] = after
        there.list_all()
        for told in there.look():
            there.ledger.do(told)
            assert there.left("root") <= 10
        assert there.left("root") == 10


@pytest.mark.parametrize(("used", "taken"), [(70, "c1"), (81, "c2")])
def test_a_cluster_that_is_nearly_full_as_a_whole_is_passed_by_for_another(used: int, taken: str) -> None:
    """A threshold holds for the root, too, though the queue itself is empty."""
    with patch.object(pure_ledger, "RULES", TREE):
        ledger = PureLedger()
        for name, use in (("c1", used), ("c2", 0)):
            for queue in ("root", "root.a"):
                tags = {"yarnCluster": name, "yarnQueue": queue}
                observed = {MEMORY: use if queue == "root" else 0}
                ledger.do(op.Observe(tags, f"yarn/{name}", {MEMORY: 100}, observed))
        first, second = ({"yarnCluster": name, "yarnQueue": "root.a"} for name in ("c1", "c2"))
        outcome = ledger.do(op.Apply("a", first, {MEMORY: 10}, alternatives=(second,)))
        assert application_of(outcome).tags["yarnCluster"] == taken


ACTIONS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "run", "end", "list", "look", "breathe"]),
        st.integers(0, 40),
        st.integers(0, 9),
        st.sampled_from(LEAVES),
    ),
    max_size=40,
)


@given(ACTIONS, st.integers(0, 20), st.integers(0, 20))
def test_no_place_and_none_around_it_is_ever_overbooked(
    actions: list[tuple[str, int, int, str]], in_a: int, in_y: int
) -> None:
    """Ours take bit by bit what they were promised, and give it back; it is seen late and told bit by bit."""
    with cluster(root_a=in_a, root_b_y=in_y) as there:
        for action, amount, which, queue in actions:
            names = list(there.running)
            name = names[which % len(names)] if names else ""
            if action == "ask":
                ask_and_check(there, queue, amount + 1)
            elif action == "list":
                there.list_all()
            elif action == "look":
                for at, told in enumerate(there.look()):
                    there.ledger.do(told)
                    ask_and_check(there, LEAVES[(which + at) % len(LEAVES)], amount + 1)
            elif name:
                move(there, action, name, amount)


def ask_and_check(there: Cluster, queue: str, amount: int) -> None:
    if isinstance(there.ask(queue, amount), Done):
        for place, total in TOTALS.items():
            if holds(place, queue):
                others = sum(used for name, used in there.others.items() if holds(place, name))
                assert others + there.promises(place) <= total, place


def move(there: Cluster, action: str, name: str, amount: int) -> None:
    """What becomes of an application."""
    live = name in there.promised
    if action == "run" and live:
        there.running[name] = min(there.promised[name], there.running[name] + amount)
    elif action == "breathe" and live:
        there.running[name] = min(there.promised[name], amount)
    elif action == "end" and live:
        del there.promised[name]
        there.ledger.do(op.Release(name))
    elif action == "end":
        del there.running[name]
