"""Queues and their limits, from the configuration that an RM registers with."""

import pytest

from tests.si.answers import (
    ACCEPTED_APPLICATION,
    ACCEPTED_NODE,
    NEW,
    REJECTED_APPLICATION,
    RELEASED,
    Allocation,
)
from tests.si.scenes import APP, NODE, POD, WITH_CONFIG, add_application, grant, pods, scene
from tests.si.served import Served
from tests.si.shim import Shim
from tests.si.transports import RefusedError

pytestmark = pytest.mark.system

EACH = pytest.mark.parametrize("dialect", WITH_CONFIG)

CONFIG = """
partitions:
  - name: default
    placementrules:
      - name: provided
        create: false
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: wide
            limits:
              - limit: alice has half of it
                users: [alice]
                maxresources: {memory: 4000}
          - name: small
            resources:
              max: {memory: 4000}
          - name: single
            maxapplications: 1
"""


def configured(si: Served, dialect: str) -> Shim:
    """An RM with the configuration and one node."""
    shim = si.shim(dialect, "rm").start(CONFIG)
    shim.add_node("node-1", NODE)
    shim.expect(ACCEPTED_NODE)
    return shim


@EACH
def test_an_ask_beyond_its_queue_waits_until_a_release_lets_it_in(si: Served, dialect: str) -> None:
    shim = configured(si, dialect)
    add_application(shim, queue="root.small")
    add_application(shim, "app-2", queue="root.wide", user="bob")
    grant(shim, *pods(2))
    shim.ask(*pods(1, name="more"))
    shim.settle()
    assert si.waiting(shim.rm_id) == {"more-0"}
    grant(shim, *pods(3, app="app-2"))  # another queue is not held up
    si.check_books(shim)
    [first] = [held for held in shim.held if (held.app, held.key) == (APP, "pod-0")]
    shim.release(first)
    shim.expect(NEW, key="more-0")
    shim.settle()
    si.check_books(shim)


@EACH
def test_a_user_has_a_limit_in_a_queue_and_others_do_not(si: Served, dialect: str) -> None:
    shim = configured(si, dialect)
    add_application(shim, queue="root.wide", user="alice")
    add_application(shim, "app-2", queue="root.wide", user="bob")
    grant(shim, *pods(2))
    shim.ask(*pods(1, name="more"))
    grant(shim, *pods(4, app="app-2"))
    shim.settle()
    assert si.waiting(shim.rm_id) == {"more-0"}
    si.check_books(shim)


@EACH
def test_an_application_beyond_a_queues_number_is_known_and_its_asks_wait(si: Served, dialect: str) -> None:
    shim = configured(si, dialect)
    add_application(shim, queue="root.single")
    grant(shim, *pods(1))
    add_application(shim, "app-2", queue="root.single")
    shim.ask(*pods(1, name="second", app="app-2"))
    shim.settle()
    assert shim.untaken(NEW) == []
    si.check_books(shim)
    shim.remove_application(APP)
    shim.expect(RELEASED, app=APP)
    shim.expect(NEW, key="second-0", app="app-2")
    si.check_books(shim)


@EACH
def test_what_already_runs_is_booked_beyond_the_quota_and_flagged(si: Served, dialect: str) -> None:
    shim = si.shim(dialect, "rm").start(CONFIG)
    add_application(shim, queue="root.small")
    running = [
        Allocation(app=APP, key=f"old-{n}", node="node-1", resource=POD, id=_uuid(dialect, n))
        for n in range(3)
    ]
    shim.held.extend(running)
    shim.add_known_node("node-1", NODE)
    shim.settle()
    assert len(shim.held) == 3
    si.check_books(shim)
    queue = {"partition": f"[{shim.rm_id}]default", "queue": "root.small"}
    [over] = [each for each in si.client.get("/audit")["over_limit"] if each["label"] == queue]
    assert over["excess"] == {"memory": 2_000}
    shim.ask(*pods(1))
    shim.settle()
    assert si.waiting(shim.rm_id) == {"pod-0"}
    shim.release(running[0])
    shim.settle()
    assert si.waiting(shim.rm_id) == {"pod-0"}  # not over any more, and still full
    shim.release(running[1])
    shim.expect(NEW, key="pod-0")
    si.check_books(shim)


@EACH
def test_an_application_of_an_unknown_queue_is_rejected(si: Served, dialect: str) -> None:
    shim = configured(si, dialect)
    shim.add_application(APP, queue="root.nowhere")
    rejected = shim.expect(REJECTED_APPLICATION, app=APP)
    assert (
        rejected.text == f"failed to place application {APP}: application rejected: no placement rule matched"
    )
    assert shim.untaken(ACCEPTED_APPLICATION) == []
    si.check_books(shim)


@EACH
@pytest.mark.parametrize(
    "config",
    [
        "partitions: [",
        "partitions: [{name: default, colour: secret-colour}]",
        "partitions: [{name: default, queues: [{name: a, resources: {max: {memory: secret-colour}}}]}]",
    ],
    ids=["no yaml", "unknown field", "bad quantity"],
)
def test_a_bad_configuration_is_refused_whole_with_a_reason_that_tells_no_secret(
    si: Served, dialect: str, config: str
) -> None:
    shim = si.shim(dialect, "rm")
    with pytest.raises(RefusedError) as refused:
        shim.register(config)
    assert refused.value.status == "INVALID_ARGUMENT"
    assert refused.value.detail
    assert "secret-colour" not in refused.value.detail
    assert "secret-colour" not in si.process.log_text()
    scene(shim)  # nothing was kept of it
    si.check_books(shim)
    si.no_traceback()


def test_an_old_rm_finds_its_queues_in_the_default_policy(si: Served) -> None:
    shim = scene(si.shim("old", "rm"))
    add_application(shim, "app-2", queue="root.team.alice")
    grant(shim, *pods(1), *pods(1, app="app-2"))
    si.check_books(shim)


def _uuid(dialect: str, number: int) -> str:
    return f"01890000-0000-7000-8000-{number:012d}" if dialect == "seed" else ""
