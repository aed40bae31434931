"""The programs of a real API server: built once a machine from `server/go.mod`, with Go.

They are kept in the user's cache, by what they are made of. A cold build takes minutes and asks the module
proxy for some 90 MB.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

import pytest

SERVER = Path(__file__).parent / "server"
PACKAGES = {"kube-apiserver": "k8s.io/kubernetes/cmd/kube-apiserver", "etcd": "go.etcd.io/etcd/server/v3"}
BUILD_SECONDS = 1800
LOG_TAIL = 4000


class BuildError(RuntimeError):
    """Go did not make the programs; the message holds what it said."""


@dataclass(frozen=True, slots=True)
class Programs:
    """Where the programs are."""

    apiserver: Path
    etcd: Path


def find_programs() -> Programs:
    """The programs, built if they are not there yet. Skips the test without Go, but not in CI."""
    if shutil.which("go") is None:
        reason = "a real API server is built with Go, which is not installed"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    folder = _cache() / f"kubernetes-{_key()}"
    programs = Programs(folder / "kube-apiserver", folder / "etcd")
    if not folder.exists():
        _build(folder)
    return programs


def version() -> str:
    """That of Kubernetes, e.g. `v1.34.4`."""
    found = re.search(r"k8s\.io/kubernetes (v\S+)", (SERVER / "go.mod").read_text())
    if found is None:
        raise BuildError("go.mod names no version of k8s.io/kubernetes")
    return found[1]


def _build(folder: Path) -> None:
    """Two who build at a time do not meet: each has a folder of its own until it is complete."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="building-", dir=folder.parent) as made:
        for name, package in PACKAGES.items():
            _go_build(package, Path(made, "done", name))
        try:
            Path(made, "done").rename(folder)
        except OSError:
            if not folder.exists():
                raise


def _go_build(package: str, target: Path) -> None:
    major, minor = version().removeprefix("v").split(".")[:2]
    where = "k8s.io/component-base/version"
    said = f"-X {where}.gitVersion={version()} -X {where}.gitMajor={major} -X {where}.gitMinor={minor}"
    command = [
        "go",
        "build",
        "-mod=readonly",
        "-trimpath",
        f"-ldflags=-s -w {said}",
        "-o",
        str(target),
        package,
    ]
    environment = {"GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}
    done = subprocess.run(
        command,
        cwd=SERVER,
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise BuildError(f"{' '.join(command)}:\n{done.stderr[-LOG_TAIL:]}")


def _cache() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rm-service-tests"


def _key() -> str:
    """Of what the programs are made of, and by which Go."""
    go = subprocess.run(["go", "version"], capture_output=True, check=True).stdout
    parts = [go, (SERVER / "go.mod").read_bytes(), (SERVER / "go.sum").read_bytes()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
