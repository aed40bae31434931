"""Two services on one PostgreSQL: what is freed through one lets in what waits through the other."""

import time

import pytest

from tests.si.answers import ACCEPTED_NODE, NEW, REJECTED_ASK
from tests.si.dialects import Ask
from tests.si.scenes import ALL, APP, NODE, POD, grant, pods, scene
from tests.si.served import StartSi

pytestmark = pytest.mark.system

ROUNDS = 5
PROMPT = 1.0  # seconds


@pytest.mark.parametrize("dialect", ALL)
def test_an_ask_that_waits_through_one_is_granted_by_a_release_through_the_other(
    durable_url: str, start_si: StartSi, dialect: str
) -> None:
    here, there = (start_si(durable_url) for _ in range(2))
    # One person's total spans all RMs: two pods, whoever runs them.
    here.client.put("/limits", {"tags": {"user": "alice"}, "total": {"memory": 4_000}}, status=201)
    holder = scene(here.shim(dialect, "rm-here"))
    waiter = scene(there.shim(dialect, "rm-there"))
    grant(holder, *pods(2))
    for number in range(ROUNDS):
        key = f"waits-{number}"
        waiter.ask(Ask(key=key, app=APP, resource=POD))
        waiter.settle()
        assert here.waiting("rm-there") == {key}
        begin = time.monotonic()
        holder.release(holder.held[0])
        waiter.expect(NEW, key=key)
        assert time.monotonic() - begin < PROMPT
        waiter.release(waiter.held[0])
        waiter.settle()
        grant(holder, Ask(key=f"again-{number}", app=APP, resource=POD))
    here.check_books(holder, waiter)
    there.check_books(holder, waiter)


def test_room_on_a_node_that_appears_through_one_serves_who_waits_through_the_other(
    durable_url: str, start_si: StartSi
) -> None:
    here, there = (start_si(durable_url) for _ in range(2))
    shim = scene(here.shim("newest", "rm"))
    grant(shim, *pods(8))
    shim.ask(*pods(1, name="more"))
    shim.settle()
    begin = time.monotonic()
    there.twin("newest", "rm").send(
        "UpdateNode", {"nodes": [{"nodeID": "node-2", "action": "CREATE", **_schedulable()}]}
    )
    assert shim.expect(NEW, key="more-0").node == "node-2"
    assert time.monotonic() - begin < PROMPT
    shim.expect(ACCEPTED_NODE, node="node-2")  # an answer goes to the RM, wherever it listens
    there.check_books(shim)


@pytest.mark.parametrize("dialect", ALL)
def test_an_rm_goes_on_at_the_other_service_when_its_own_dies(
    durable_url: str, start_si: StartSi, dialect: str
) -> None:
    here, there = (start_si(durable_url) for _ in range(2))
    first = scene(here.shim(dialect, "rm"))
    grant(first, *pods(2))
    first.ask(Ask(key="nobody", app="nobody", resource=POD))
    rejected = first.expect(first.dialect.rejected_ask)
    here.process.kill()
    second = there.shim(dialect, "rm")
    second.held = list(first.held)
    second.listen(after=rejected.row)  # it is registered: nothing has to be told again
    grant(second, *pods(1, name="later"))
    second.settle()
    assert second.untaken(NEW, REJECTED_ASK) == []
    there.check_books(second)


def _schedulable() -> dict[str, object]:
    return {"schedulableResource": {"resources": {name: {"value": amount} for name, amount in NODE.items()}}}
