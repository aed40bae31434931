"""Queues within queues by the default rules: what Linkis asks for, what counts where, how many run."""

from collections.abc import Mapping

import pytest

from external_providers.base import ExternalApplication, Place
from rm_service.domain import operations as op
from rm_service.domain.application import State
from rm_service.domain.outcomes import Done, Outcome
from rm_service.domain.resource_shapes import read_amounts
from rm_service.ledger.audit import audit
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.external import used_places
from rm_service.ledger.queries.labels import read_label
from rm_service.services.applications import Request
from rm_service.services.external.snapshots import Snapshot
from tests.ledger.asking import reading
from tests.services.external.test_observing import World, here, refusal

GIB = 2**30
MEMORY, VCORE, APPS = "yarn.memory", "yarn.vcore", "yarn.apps"
LINKIS = {
    "loadInstanceResource": {"memory": GIB, "cores": 1, "instances": 1},
    "yarnResource": {"queueName": "root.a", "queueMemory": 2 * GIB, "queueCores": 2, "queueInstances": 1},
}


class Queues(World):
    """A cluster of root, root.a and root.b, each of which may have all of it."""

    def see(
        self, used: Mapping[str, int], *listed: ExternalApplication, apps: int = 100, running: int = 0
    ) -> None:
        """A look at their GiB."""
        self.followed.time += 10
        total = {MEMORY: 100 * GIB, VCORE: 100_000, APPS: apps}
        places = {
            name: Place(name, total, {MEMORY: used.get(name, 0) * GIB, VCORE: 0, APPS: running})
            for name in ("root", "root.a", "root.b")
        }
        snapshot = Snapshot(places, listed, 0, self.followed.time, 0.0)
        self.followed.snapshots.put(("yarn", "c1"), snapshot)
        self.observing.refreshed(self.followed.sources[0], snapshot)

    def want(self, gib: int, queue: str = "root.a", **also: int) -> Outcome:
        """`also`: of other dimensions of YARN."""
        more = {f"yarn.{name}": amount for name, amount in also.items()}
        return self.applications.apply(Request(tags=here(queue), resource={MEMORY: gib * GIB, **more}))

    def promised(self, gib: int, queue: str = "root.a") -> str:
        outcome = self.want(gib, queue)
        assert isinstance(outcome, Done), outcome
        assert outcome.application is not None
        return outcome.application.id

    def left_gib(self, queue: str) -> int:
        account = reading(self.ledger, read_label, self.ledger.book(), here(queue))
        return int(account.left()[MEMORY]) // GIB


@pytest.fixture
def queues(ledger: Ledger) -> Queues:
    queues = Queues(ledger)
    queues.see({})
    return queues


def running(id_: str, gib: int, place: str = "root.a") -> ExternalApplication:
    held = {MEMORY: gib * GIB, VCORE: 0, APPS: 1}
    return ExternalApplication(f"x-{id_}", place, held, tags=frozenset({f"rm-{id_}"}))


class TestWhatLinkisAsksFor:
    def test_a_driver_and_its_executors_are_granted(self, queues: Queues) -> None:
        resource, named = read_amounts(LINKIS)
        outcome = queues.applications.apply(Request(tags={**named, "yarnCluster": "c1"}, resource=resource))
        assert isinstance(outcome, Done), outcome
        assert outcome.application is not None
        assert outcome.application.requested["yarn.instances"] == 1  # kept, and counted for the user

    def test_a_dimension_that_no_queue_has_is_refused_by_name(self, queues: Queues) -> None:
        [short, *_] = refusal(queues.want(1, gpu=1)).shortfalls
        assert (short.dimension, short.left) == ("yarn.gpu", 0)


class TestHowManyApplications:
    def test_each_is_one_of_those_that_the_queue_takes(self, queues: Queues) -> None:
        queues.see({}, apps=2)
        assert isinstance(queues.want(1), Done)
        assert isinstance(queues.want(1, "root.b"), Done)
        [short] = refusal(queues.want(1)).shortfalls
        assert (short.label["yarnQueue"], short.dimension, short.left) == ("root", APPS, 0)

    def test_those_of_others_count_and_ours_once(self, queues: Queues) -> None:
        queues.see({}, apps=3)
        ours = queues.promised(1)
        queues.see({"root": 1, "root.a": 1}, running(ours, 1), apps=3, running=2)
        assert isinstance(queues.want(1), Done)
        assert refusal(queues.want(1)).shortfalls[0].dimension == APPS

    def test_one_may_say_that_it_is_several_or_none(self, queues: Queues) -> None:
        queues.see({}, apps=2)
        assert refusal(queues.want(1, apps=3)).shortfalls[0].requested == 3
        queues.see({}, apps=0)
        assert isinstance(queues.want(1, apps=0), Done)

    def test_a_queue_that_does_not_say_how_many_takes_any_number(self, queues: Queues) -> None:
        places = {name: Place(name, {MEMORY: GIB}, {}) for name in ("root", "root.a")}
        queues.followed.time += 10
        snapshot = Snapshot(places, (), 0, queues.followed.time, 0.0)
        queues.followed.snapshots.put(("yarn", "c1"), snapshot)
        assert isinstance(queues.want(1), Done)

    def test_it_stays_one_when_its_engine_says_what_it_uses(self, queues: Queues) -> None:
        ours = queues.promised(5)
        used = queues.applications.use(ours, {MEMORY: GIB})
        assert isinstance(used, Done)
        assert used.application is not None
        assert used.application.used == {MEMORY: GIB, APPS: 1}


class TestQueuesWithinQueues:
    def test_siblings_share_what_is_above_them(self, queues: Queues) -> None:
        queues.promised(80)
        [short] = refusal(queues.want(30, "root.b")).shortfalls
        assert (short.label["yarnQueue"], short.left) == ("root", 20 * GIB)

    def test_look_after_look_says_the_same(self, queues: Queues) -> None:
        ours = queues.promised(60)
        for _ in range(3):
            queues.see({"root": 70, "root.a": 60, "root.b": 10}, running(ours, 60))
            assert [queues.left_gib(name) for name in ("root", "root.a")] == [30, 40]
            assert audit(queues.ledger.readers).consistent

    def test_what_others_use_anywhere_is_missing_above(self, queues: Queues) -> None:
        queues.promised(10)
        queues.see({"root": 95, "root.a": 0, "root.b": 95})
        assert refusal(queues.want(1)).shortfalls[0].label["yarnQueue"] == "root"

    def test_room_above_lets_in_who_waits_for_it(self, queues: Queues) -> None:
        ours = queues.promised(60)
        wish = Request(tags=here("root.b"), resource={MEMORY: 50 * GIB}, wait_seconds=60)
        waiting = queues.applications.apply(wish)
        assert isinstance(waiting, Done)
        assert waiting.application is not None
        assert waiting.application.state is State.WAITING
        queues.applications.release(ours)
        queues.ledger.submit([op.Renew(waiting.application.id)])  # behind the wake
        found = queues.applications.read(waiting.application.id)
        assert found is not None
        assert found.state is State.LOCKED

    def test_an_application_is_shown_by_its_own_queue_alone(self, queues: Queues) -> None:
        first, second = queues.promised(1), queues.promised(1, "root.b")
        with queues.ledger.readers.connect() as connection:
            found = used_places(connection, queues.ledger.book().rules, "yarn", "yarnCluster")
        tenants = {each.tags["yarnQueue"]: [tenant.id for tenant in each.tenants] for each in found}
        assert tenants == {"root": [], "root.a": [first], "root.b": [second]}

    def test_a_large_look_is_told_in_chunks(self, queues: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("rm_service.services.external.observing.CHUNK", 1)
        ours = queues.promised(60)
        for amount in (60, 10, 40):
            queues.see({"root": amount, "root.a": amount}, running(ours, amount))
            assert [queues.left_gib(name) for name in ("root", "root.a")] == [40, 40]
            assert audit(queues.ledger.readers).consistent
