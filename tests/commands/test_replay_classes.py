"""A replay with resource classes: cards are devices, and what the classes say is checked on the way."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from rm_service.commands.replay import replay
from rm_service.commands.replay_classes import ClassDriver, ClassReplay, classes_of, devices_of
from rm_service.commands.replay_drivers import DriveError
from rm_service.commands.replay_run import steps_of
from rm_service.commands.trace import TraceNode, TraceTask, read_nodes, read_tasks
from tests.commands.conftest import Run


def task(share: int, gpus: int, *models: str) -> TraceTask:
    resource = {"vcore": 1, "gpu_milli": share * gpus} if gpus and share else {"vcore": 1}
    return TraceTask("t", resource, gpus, models, "LS", 0, None)


@pytest.fixture
def driver() -> Iterator[ClassDriver]:
    opened = ClassDriver()
    yield opened
    opened.close()


@pytest.mark.parametrize(
    ("asked", "classes"),
    [
        (task(1000, 2), {"gpu.16g": 2000}),
        (task(460, 1), {"gpu.shared": 460}),
        (task(1000, 1, "T4"), {"gpu.model.t4": 1000}),
        (task(250, 1, "A10", "V100 32"), {"gpu.model.a10.v100-32": 250}),
        (task(0, 1), {}),
        (task(0, 0), {}),
    ],
)
def test_a_task_asks_for_the_class_that_its_cards_are_of(asked: TraceTask, classes: dict[str, int]) -> None:
    assert classes_of(asked) == classes


def test_a_share_of_each_of_several_cards_has_no_class() -> None:
    with pytest.raises(DriveError, match="a share of each of several cards"):
        classes_of(task(250, 2))


def test_a_node_has_its_cards_as_one_device_with_the_memory_of_their_model() -> None:
    (device,) = devices_of(TraceNode("n", {"vcore": 1}, 4, "V100M32"))
    assert device == {
        "name": "gpu",
        "count": 4,
        "attributes": {"Kind": "gpu", "model": "V100M32", "memory": "32G"},
    }
    assert devices_of(TraceNode("n", {"vcore": 1}, 0, None)) == []


def test_the_trace_is_replayed_with_classes(run: Run, trace: Path) -> None:
    result = run(replay, str(trace), "--embedded", "--classes", "--json")
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["granted"] == 5
    assert document["refused_by"] == {"class/gpu.16g": 1, "class/gpu.model.a10": 1, "vcore": 1}
    assert document["class_checks"] == 2, "once on the way, and at the end"
    assert document["audit"]["consistent"] is True
    shown = run(replay, str(trace), "--embedded", "--classes").stdout.splitlines()
    assert ["class", "checks", "2"] in [line.split() for line in shown]


@pytest.mark.parametrize("way", [["--url", "http://127.0.0.1:9"], ["--embedded", "--via", "si"]])
def test_classes_are_for_a_ledger_of_its_own(run: Run, trace: Path, way: list[str]) -> None:
    result = run(replay, str(trace), "--classes", *way)
    assert result.exit_code == 2
    assert "--classes" in result.stderr


def test_a_class_that_says_something_else_ends_the_replay(
    driver: ClassDriver, trace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replayed = ClassReplay(driver, "small")
    replayed.register(read_nodes(trace / "node_list.csv"), lambda _: None)
    assert driver.stands() == driver.recomputed()
    assert driver.stands()["gpu.16g"] == (6000, 0)
    said = {**driver.stands(), "gpu.model.t4": (2000, 1)}
    monkeypatch.setattr(driver, "stands", lambda: said)
    with pytest.raises(DriveError, match=r"class gpu\.model\.t4: says \(2000, 1\), a recomputation"):
        replayed.walk(steps_of(read_tasks(trace / "pod_list.csv")), lambda _: None)
    assert driver.audit()["consistent"]
