"""A replay over the Scheduler Interface: messages of several steps, the same grants, nothing left."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rm_service.commands.embedded_service import EmbeddedService
from rm_service.commands.replay import replay
from rm_service.commands.replay_drivers import DriveError
from rm_service.commands.replay_messages import Carried, MessageReplay
from rm_service.commands.replay_run import Record, steps_of
from rm_service.commands.replay_si import RM_ID, SiDriver
from rm_service.commands.si_streams import SiStreams
from rm_service.commands.trace import TraceNode, TraceTask, read_nodes, read_tasks
from tests.commands.conftest import Run


def task(name: str, created: int, deleted: int | None) -> TraceTask:
    return TraceTask(name, {"vcore": 1}, 0, (), "LS", created, deleted)


def nothing(*_: object) -> None:
    pass


@dataclass
class Heard:
    """A carrier that grants everything but tasks called `no`; each message takes a second."""

    messages: list[str] = field(default_factory=list)

    def register(self, nodes: Sequence[TraceNode], trace: str) -> None:
        self.messages.append(f"register {len(nodes)} {trace}")

    def carry(self, asks: Sequence[TraceTask], releases: Sequence[TraceTask], trace: str) -> Carried:
        if any(task.name == "broken" for task in asks):
            raise ConnectionError
        self.messages.append(
            " ".join([f"+{one.name}" for one in asks] + [f"-{one.name}" for one in releases])
        )
        nodes = {one.name: "n1" for one in asks if one.name != "no"}
        released = {one.name: 1.0 for one in releases if one.name != "no"}
        return Carried(nodes, {one.name: 1.0 for one in asks}, released)

    def audit(self) -> Mapping[str, Any]:
        return {"consistent": True, "labels_checked": 0, "applications_checked": 0, "differences": []}

    def close(self) -> None:
        self.messages.append("close")


def walked(together: int, *tasks: TraceTask, **pace: Any) -> tuple[list[str], Record]:
    carrier = Heard()
    run = MessageReplay(carrier, "t", together, **pace)
    run.walk(steps_of(tasks), nothing)
    return carrier.messages, run.record


def test_a_message_holds_so_many_steps_and_what_has_no_end_is_given_back_at_last() -> None:
    tasks = [task("a", 0, 2), task("b", 1, None), task("c", 3, 9), task("d", 4, None)]
    messages, record = walked(3, *tasks)
    assert messages == ["+a +b -a", "+c +d -c", "-b -d"]
    assert record.granted == 4
    assert {name: len(durations) for name, durations in record.latencies.items()} == {"ask": 4, "release": 4}


def test_one_step_a_message_is_the_order_of_the_trace() -> None:
    messages, record = walked(1, task("a", 0, 5), task("b", 5, 6))
    assert messages == ["+a", "-a", "+b", "-b"]
    assert record.peak == {"vcore": 1}


def test_what_had_to_wait_is_counted_and_not_released() -> None:
    messages, record = walked(1, task("no", 0, 5), task("a", 1, 6))
    assert messages == ["+no", "+a", "-a"]
    assert record.refused == {"had to wait": 1}


def test_what_has_to_wait_and_ends_within_one_message_was_never_held() -> None:
    messages, record = walked(9, task("no", 0, 5), task("a", 1, 6))
    assert messages == ["+no +a -no -a"]
    assert record.operations == 3
    assert record.peak == {"vcore": 1}


def test_a_failure_in_the_middle_leaves_nothing_held() -> None:
    carrier = Heard()
    with pytest.raises(ConnectionError):
        MessageReplay(carrier, "t", 1).walk(steps_of([task("a", 0, None), task("broken", 1, None)]), nothing)
    assert carrier.messages == ["+a", "-a"]


def test_with_a_speed_a_message_holds_what_is_due() -> None:
    now = [100.0]

    def pause(seconds: float) -> None:
        now[0] += seconds

    tasks = [task("a", 0, None), task("b", 0, None), task("c", 10, None), task("d", 50, None)]
    messages, record = walked(9, *tasks, speed=10, clock=lambda: now[0], pause=pause)
    assert messages == ["+a +b", "+c", "+d", "-a -b -c -d"]
    assert record.seconds == 5.0


# ---- the command ----


def test_the_command_replays_through_a_service_of_its_own(run: Run, trace: Path) -> None:
    result = run(replay, str(trace), "--via", "si", "--embedded", "--together", "1", "--json")
    assert result.exit_code == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["granted"] == 5
    assert document["refused_by"] == {"had to wait": 3}
    assert document["operations"] == 8 + 5
    assert set(document["latency_ms"]) == {"ask", "release", "all"}
    assert document["peak_used"] == {"memory": 3 * 2**30, "vcore": 17_000, "gpu_milli": 2_000}
    assert document["audit"]["consistent"] is True


def test_within_a_message_asks_come_before_releases(run: Run, trace: Path) -> None:
    # Task f comes in the second in which a goes; in one message it finds a's node still taken.
    result = run(replay, str(trace), "--via", "si", "--embedded", "--json")
    assert json.loads(result.stdout)["granted"] == 4


def test_a_service_that_is_not_there_is_told_apart_by_its_exit_code(run: Run, trace: Path) -> None:
    result = run(replay, str(trace), "--via", "si", "--grpc", "127.0.0.1:1")
    assert result.exit_code == 3
    assert "the service at 127.0.0.1:1 cannot be reached: " in result.stderr


@pytest.mark.parametrize("option", ["--grpc=127.0.0.1:1", "--together=5"])
def test_what_is_of_the_scheduler_interface_needs_it(run: Run, trace: Path, option: str) -> None:
    result = run(replay, str(trace), "--embedded", option)
    assert result.exit_code == 2
    assert "--via si" in result.stderr


def test_a_node_that_is_rejected_ends_the_replay_with_the_reason(run: Run, trace: Path) -> None:
    file = trace / "node_list.csv"
    file.write_text(file.read_text().replace("n-plain", "n/plain"))
    result = run(replay, str(trace), "--via", "si", "--embedded")
    assert result.exit_code == 1
    assert "node n/plain: a node's ID holds no '/' (rejected_node)" in result.stderr


# ---- what a replay leaves behind ----


@pytest.fixture(scope="module")
def service() -> Iterator[EmbeddedService]:
    service = EmbeddedService()
    yield service
    service.close()


def driver_on(service: EmbeddedService) -> SiDriver:
    driver = SiDriver(SiStreams(service.grpc_address, RM_ID), service.audit, nothing)
    driver.start()
    return driver


def replayed(driver: SiDriver, folder: Path) -> Record:
    run = MessageReplay(driver, "small", 1)
    run.register(read_nodes(folder / "node_list.csv"), nothing)
    run.walk(steps_of(read_tasks(folder / "pod_list.csv")), nothing)
    run.audit()
    return run.record


def test_the_same_trace_gives_the_same_grants_every_time(service: EmbeddedService, trace: Path) -> None:
    digests = []
    for _ in range(2):
        driver = driver_on(service)
        digests.append(replayed(driver, trace).digest)
        driver.close()
        assert service.audit()["applications_checked"] == 0, "its applications are gone, too"
    assert digests[0] == digests[1]


def test_what_an_interrupted_replay_left_is_given_up_by_the_next(
    service: EmbeddedService, trace: Path
) -> None:
    first = driver_on(service)
    first.register(read_nodes(trace / "node_list.csv"), "small")
    assert first.carry(read_tasks(trace / "pod_list.csv")[:2], [], "small").nodes == {
        "a": "n-plain",
        "b": "n-t4",
    }
    second = driver_on(service)
    with pytest.raises(DriveError, match="has registered again") as ended:
        first.carry(read_tasks(trace / "pod_list.csv")[2:3], [], "small")
    assert ended.value.code == "aborted"
    first.close()
    assert replayed(second, trace).granted == 5
    second.close()
    assert service.audit()["consistent"]
