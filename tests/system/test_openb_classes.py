"""The openb trace with GPU classes: after every hundredth event each class says what a recomputation says."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.system.test_replay import NODES, OPENB, TASKS, needs_openb

pytestmark = pytest.mark.system

SECONDS = 480.0
MODELS = ("T4", "P100", "V100M16", "V100M32", "A10", "G2", "G3")


def replayed(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "rm_service", "replay", "--embedded", "--classes", "--json", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    report: dict[str, Any] = json.loads(done.stdout)
    assert report["audit"]["consistent"]
    assert report["audit"]["applications_checked"] == 0, "all was given back"
    return report


def rows(name: str) -> list[dict[str, str]]:
    with (OPENB / name).open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def written(file: Path, lines: list[dict[str, str]]) -> str:
    with file.open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    return str(file)


@needs_openb
@pytest.mark.timeout(SECONDS + 60)
def test_the_whole_trace_keeps_every_class_exact() -> None:
    report = replayed(str(OPENB))
    assert report["nodes"] == NODES
    assert report["granted"] + report["refused"] == TASKS
    assert report["granted"] > report["refused"]
    assert report["class_checks"] == -(-2 * TASKS // 100) + 1


@needs_openb
@pytest.mark.timeout(SECONDS + 60)
def test_a_crowded_part_of_it_whose_tasks_name_models_keeps_every_class_exact(tmp_path: Path) -> None:
    """Two machines of each model; every third task that needs a card names one or two models, in turn."""
    machines = rows("openb_node_list_all_node.csv")
    few = [one for model in MODELS for one in [each for each in machines if each["model"] == model][:2]]
    tasks = [each for each in rows("openb_pod_list_default.csv") if each["num_gpu"] != "0"][:3000]
    for number, each in enumerate(tasks[::3]):
        each["gpu_spec"] = "|".join(MODELS[number % 7 :][: 1 + number % 2])
        each["creation_time"] = str(int(each["creation_time"]) // 400)
        each["deletion_time"] = str(int(each["deletion_time"]) // 40)
    nodes, pods = written(tmp_path / "nodes.csv", few), written(tmp_path / "pods.csv", tasks)
    report = replayed("--nodes", nodes, "--applications", pods)
    assert report["nodes"] == 14
    assert report["granted"] > 1000
    named = {reason for reason in report["refused_by"] if "class/gpu.model." in reason}
    assert len(named) > 3, "cards of named models were short at times"
    assert report["class_checks"] >= 60
