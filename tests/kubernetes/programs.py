"""The programs of a real API server, and kubectl: built once a machine from their `go.mod`, with Go.

They are kept in the user's cache, by what they are made of. A cold build takes minutes and asks the module
proxy for some 90 MB.
"""

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SERVER = HERE / "server"
CLIENT = HERE / "client"
KUBERNETES = "k8s.io/kubernetes/cmd"
SERVER_PACKAGES = {"kube-apiserver": f"{KUBERNETES}/kube-apiserver", "etcd": "go.etcd.io/etcd/server/v3"}
CLIENT_PACKAGES = {"kubectl": f"{KUBERNETES}/kubectl"}
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
    """The programs of the server, built if they are not there yet. Skips without Go, but not in CI."""
    folder = _find("kubernetes", SERVER, SERVER_PACKAGES)
    return Programs(folder / "kube-apiserver", folder / "etcd")


def find_kubectl() -> Path:
    """As `find_programs`, the client."""
    return _find("kubectl", CLIENT, CLIENT_PACKAGES) / "kubectl"


def version(source: Path = SERVER) -> str:
    """That of Kubernetes, e.g. `v1.34.4`."""
    found = re.search(r"k8s\.io/kubernetes (v\S+)", (source / "go.mod").read_text())
    if found is None:
        raise BuildError("go.mod names no version of k8s.io/kubernetes")
    return found[1]


def _find(name: str, source: Path, packages: Mapping[str, str]) -> Path:
    """The folder of these programs."""
    if shutil.which("go") is None:
        reason = f"{' and '.join(packages)}: built with Go, which is not installed"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    folder = _cache() / f"{name}-{_key(source)}"
    if not folder.exists():
        _build(folder, source, packages)
    return folder


def _build(folder: Path, source: Path, packages: Mapping[str, str]) -> None:
    """Two who build at a time do not meet: each has a folder of its own until it is complete."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="building-", dir=folder.parent) as made:
        for name, package in packages.items():
            _go_build(source, package, Path(made, "done", name))
        try:
            Path(made, "done").rename(folder)
        except OSError:
            if not folder.exists():
                raise


def _go_build(source: Path, package: str, target: Path) -> None:
    major, minor = version(source).removeprefix("v").split(".")[:2]
    where = "k8s.io/component-base/version"
    said = f"-X {where}.gitVersion={version(source)} -X {where}.gitMajor={major} -X {where}.gitMinor={minor}"
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
        cwd=source,
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


def _key(source: Path) -> str:
    """Of what the programs are made of, and by which Go."""
    go = subprocess.run(["go", "version"], capture_output=True, check=True).stdout
    parts = [go, (source / "go.mod").read_bytes(), (source / "go.sum").read_bytes()]
    return hashlib.sha256(b"\0".join(parts)).hexdigest()[:16]
