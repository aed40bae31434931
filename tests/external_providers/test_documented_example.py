"""The provider that docs/external-providers.md shows: installed as its own distribution, found, and tried."""

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from external_providers.base import (
    ENTRY_POINTS,
    ExternalApplication,
    ExternalResourceProvider,
    ExternalResourceRequest,
    Place,
    ProviderRecord,
)
from rm_service.services.external.plugins import Plugins
from tests.external_providers.page import ROOT, listing
from tests.services.external.distributions import importable, install

COMMANDS = {
    "sinfo": "batch 12/20/4/36\nlong 8/0/0/8",
    "squeue": "101 batch 8 alice rm-7 nightly\n102_3 batch 4 bob (null)\n103 long 8 alice ",
}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Where the example is installed, by what the page says of its distribution."""
    project = tomllib.loads(listing("pyproject.toml"))["project"]
    modules = {"slurm_provider": listing("slurm_provider.py")}
    install(tmp_path, project["name"], project["entry-points"][ENTRY_POINTS], modules, project["version"])
    return tmp_path


@pytest.fixture
def plugins(site: Path) -> Iterator[Plugins]:
    """All that is installed once the example is."""
    with importable(site):
        yield Plugins.discover()


@pytest.fixture
def request_(plugins: Plugins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ExternalResourceRequest:
    """To a Slurm whose commands answer only those who have its token."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for command, answer in COMMANDS.items():
        script = f"#!/bin/sh\n[ $SLURM_JWT = letmein ] && cat <<'END'\n{answer}\nEND\n"
        (folder / command).write_text(script)
        (folder / command).chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    record = ProviderRecord("slurm", "lab", {"token": "letmein"})
    return ExternalResourceRequest(plugins.of("slurm").parser.parse(record), 10)


@pytest.fixture
def slurm(plugins: Plugins) -> ExternalResourceProvider:
    return plugins.of("slurm")


def test_it_is_found_beside_those_that_come_with_the_service(plugins: Plugins) -> None:
    assert {"slurm", "static", "http-json"} <= plugins.by_type.keys()
    assert plugins.faults == ()


def test_it_says_what_slurm_says(slurm: ExternalResourceProvider, request_: ExternalResourceRequest) -> None:
    assert slurm.places(request_) == [
        Place("batch", {"slurm.vcore": 32_000}, {"slurm.vcore": 12_000}),
        Place("long", {"slurm.vcore": 8_000}, {"slurm.vcore": 8_000}),
    ]
    first, second, third = slurm.applications(request_)
    assert first == ExternalApplication(
        "101", "batch", {"slurm.vcore": 8_000}, user="alice", tags=frozenset({"rm-7", "nightly"})
    )
    assert (second.id, second.user) == ("102_3", "bob")
    assert (third.place, third.tags) == ("long", frozenset())


def test_it_passes_the_test_kit_as_the_page_runs_it(site: Path) -> None:
    (site / "test_slurm_provider.py").write_text(listing("test_slurm_provider.py"))
    (site / "pytest.ini").write_text("[pytest]\n")
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_slurm_provider.py"],
        cwd=site,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(site), str(ROOT)])},
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "12 passed" in ran.stdout
