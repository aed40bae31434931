"""The strict grammars under a fuzzer: they read or refuse whatever comes, quickly and in little memory."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.grammars import one_input

CORPUS = Path(__file__).parent / "corpus"
ROOT = Path(__file__).parents[2]
RUNS = 30_000
SECONDS = 280
SECONDS_AN_INPUT = 5
MEGABYTES = 1024
MAX_INPUT = 8192


@pytest.mark.parametrize("path", sorted(CORPUS.iterdir()), ids=lambda path: path.name)
def test_the_inputs_that_the_fuzzer_begins_with(path: Path) -> None:
    one_input(path.read_bytes())


@pytest.mark.parametrize("data", [b"", b"\xff\xfe", b"\xed\xa0\x80", b'{"\\ud800":1}', b"[" * 100_000])
def test_inputs_that_are_hardly_texts(data: bytes) -> None:
    one_input(data)


@pytest.mark.system
@pytest.mark.timeout(300)
def test_the_fuzzer_finds_nothing(tmp_path: Path) -> None:
    _require_atheris()
    found = tmp_path / "found"
    found.mkdir()
    command = [
        *(sys.executable, "-m", "tests.fuzz.run"),
        *(f"-runs={RUNS}", "-seed=1", f"-max_len={MAX_INPUT}", "-print_final_stats=1"),
        *(f"-timeout={SECONDS_AN_INPUT}", f"-rss_limit_mb={MEGABYTES}", f"-artifact_prefix={tmp_path}/"),
        *(str(found), str(CORPUS)),
    ]
    run = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, errors="replace", timeout=SECONDS, check=False
    )
    findings = [path.read_bytes() for path in tmp_path.iterdir() if path.is_file()]
    assert run.returncode == 0, f"{findings}\n{run.stderr[-4000:]}"
    assert f"stat::number_of_executed_units: {RUNS}" in run.stderr
    assert any(found.iterdir()), "no input led to new code: the grammars are not instrumented"


def _require_atheris() -> None:
    """Skip the test, with the reason, where atheris is not installed; with CI=true fail instead."""
    if importlib.util.find_spec("atheris") is not None:
        return
    reason = "atheris is not installed (it has wheels for Linux on x86-64 only)"
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(f"{reason}, and is never left out in CI")
    pytest.skip(reason)
