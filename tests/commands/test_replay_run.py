"""A replay walks in the trace's order, one operation at a time, and gives everything back."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from rm_service.commands.replay_drivers import EmbeddedDriver, Granted, NotGranted, selector_for
from rm_service.commands.replay_report import percentile, report
from rm_service.commands.replay_run import Record, Replay, first_created, steps_of
from rm_service.commands.trace import TraceNode, TraceTask, read_nodes, read_tasks


def task(name: str, created: int, deleted: int | None, **more: Any) -> TraceTask:
    known = {"resource": {"vcore": 1}, "gpus": 0, "models": (), "qos": "LS", **more}
    return TraceTask(name, created=created, deleted=deleted, **known)


def walked(tasks: Sequence[TraceTask]) -> list[str]:
    return [f"{step.time}{'-' if step.is_deletion else '+'}{step.task.name}" for step in steps_of(tasks)]


@dataclass
class Heard:
    """A driver with one node that takes everything but tasks called `no`."""

    calls: list[str] = field(default_factory=list)

    def register(self, nodes: Sequence[TraceNode], trace: str) -> None:
        self.calls.append(f"register {len(nodes)} {trace}")

    def apply(self, task: TraceTask, trace: str) -> Granted | NotGranted:
        self.calls.append(f"apply {task.name}")
        return NotGranted(("memory", "vcore")) if task.name == "no" else Granted(f"id-{task.name}", "n1")

    def use(self, application_id: str) -> None:
        self.calls.append(f"use {application_id}")
        if application_id == "id-broken":
            raise ConnectionError

    def release(self, application_id: str) -> None:
        self.calls.append(f"release {application_id}")

    def audit(self) -> Mapping[str, Any]:
        return {"consistent": True, "labels_checked": 0, "applications_checked": 0, "differences": []}

    def close(self) -> None:
        self.calls.append("close")


def test_at_equal_times_deletions_come_first_then_names() -> None:
    tasks = [task("b", 5, 9), task("a", 5, 9), task("z", 0, 5), task("y", 0, 5)]
    assert walked(tasks) == ["0+y", "0+z", "5-y", "5-z", "5+a", "5+b", "9-a", "9-b"]


def test_a_task_that_ends_in_its_first_second_ends_behind_its_beginning() -> None:
    assert walked([task("b", 5, 5), task("c", 5, None), task("a", 1, 5)]) == [
        "1+a",
        "5-a",
        "5+b",
        "5-b",
        "5+c",
    ]


def test_a_limit_takes_the_tasks_that_are_created_first() -> None:
    tasks = [task("c", 2, None), task("b", 1, None), task("a", 2, None)]
    assert [one.name for one in first_created(tasks, 2)] == ["b", "a"]
    assert len(first_created(tasks, None)) == 3


def test_what_is_granted_is_used_at_once_and_released_at_its_deletion() -> None:
    driver = Heard()
    Replay(driver, "t").walk(
        steps_of([task("a", 0, 5), task("no", 1, 6), task("b", 2, None)]), lambda _: None
    )
    assert driver.calls == [
        *("apply a", "use id-a", "apply no", "apply b", "use id-b", "release id-a"),
        "release id-b",  # what has no end is given back with the trace's
    ]


def test_refused_tasks_are_counted_by_what_was_short() -> None:
    replay = Replay(Heard(), "t")
    replay.walk(steps_of([task("no", 0, None), task("a", 0, None)]), lambda _: None)
    assert replay.record.refused == {"memory + vcore": 1}
    assert replay.record.granted == 1


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (NotGranted(("gpu_milli",)), "gpu_milli"),
        (NotGranted(()), "no single node has all of it"),
        (NotGranted(("gpu_milli",), no_node_matches=True), "no node matches"),
    ],
)
def test_a_reason_says_what_was_in_the_way(answer: NotGranted, reason: str) -> None:
    assert answer.reason == reason


def test_the_peak_is_the_most_in_use_at_one_time() -> None:
    replay = Replay(Heard(), "t")
    tasks = [
        task("a", 0, 5, resource={"vcore": 3}),
        task("b", 1, 5, resource={"vcore": 4, "memory": 1}),
        task("c", 5, 6, resource={"vcore": 5}),
    ]
    replay.walk(steps_of(tasks), lambda _: None)
    assert replay.record.peak == {"vcore": 7, "memory": 1}


def test_a_failure_in_the_middle_leaves_nothing_held() -> None:
    driver = Heard()
    with pytest.raises(ConnectionError):
        Replay(driver, "t").walk(steps_of([task("a", 0, None), task("broken", 1, None)]), lambda _: None)
    assert driver.calls[-2:] == ["release id-a", "release id-broken"]


def test_with_a_speed_the_walk_waits_for_the_traces_time() -> None:
    now = [100.0]
    pauses: list[float] = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        now[0] += seconds

    replay = Replay(Heard(), "t", speed=10, clock=lambda: now[0], pause=pause)
    replay.walk(steps_of([task("a", 1000, 1040), task("b", 1005, None)]), lambda _: None)
    assert pauses == [0.5, 3.5]
    assert replay.record.seconds == 4.0


def test_progress_is_told_for_every_node_and_step() -> None:
    heard: list[int] = []
    replay = Replay(Heard(), "t")
    replay.register([TraceNode(f"n{number}", {"vcore": 1}, 0, None) for number in range(250)], heard.append)
    assert sum(heard) == replay.record.nodes == replay.record.total["vcore"] == 250
    heard.clear()
    replay.walk(steps_of([task("a", 0, 5), task("b", 0, None)]), heard.append)
    assert sum(heard) == 3


def test_a_selector_asks_for_the_traces_nodes_with_enough_cards_of_a_model() -> None:
    assert selector_for(task("a", 0, None), "t") == "trace=t"
    wanted = task("a", 0, None, gpus=2, models=("A10", "V 100"))
    assert selector_for(wanted, "t") == 'gpu>=2,model in (A10,"V 100"),trace=t'


def test_percentiles_are_durations_that_were_measured() -> None:
    durations = [float(number) for number in range(1, 201)]
    assert [percentile(durations, percent) for percent in (50, 95, 99, 100)] == [100, 190, 198, 200]
    assert percentile([7.0], 50) == percentile([7.0], 99) == 7.0


def test_a_replay_of_nothing_has_a_report() -> None:
    assert report(Record("t"))["operations_per_second"] == 0


@pytest.fixture
def embedded() -> Iterator[EmbeddedDriver]:
    driver = EmbeddedDriver()
    yield driver
    driver.close()


def replayed(driver: EmbeddedDriver, folder: Path) -> Record:
    replay = Replay(driver, "small")
    replay.register(read_nodes(folder / "node_list.csv"), lambda _: None)
    replay.walk(steps_of(read_tasks(folder / "pod_list.csv")), lambda _: None)
    replay.audit()
    return replay.record


def test_an_embedded_replay_grants_what_fits_and_balances(embedded: EmbeddedDriver, trace: Path) -> None:
    record = replayed(embedded, trace)
    assert record.granted == 5
    assert record.refused == {"no node matches": 2, "vcore": 1}
    assert record.peak == {"memory": 3 * 2**30, "vcore": 17_000, "gpu_milli": 2_000}
    grants = "a n-plain\nb n-t4\nc n-v100\nf n-plain\nh n-t4\n"
    assert record.digest == hashlib.sha256(grants.encode()).hexdigest()
    assert record.audit["consistent"]
    assert record.audit["applications_checked"] == 0


def test_the_same_trace_gives_the_same_grants_every_time(embedded: EmbeddedDriver, trace: Path) -> None:
    assert replayed(embedded, trace).digest == replayed(embedded, trace).digest
