"""What a user installs is what the repository holds, wherever it is installed."""

import os
import subprocess
import sys
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path

import pytest

import rm_service
from rm_service.bundled import NotBundledError, bundled

ROOT = Path(__file__).resolve().parent.parent
# Where the folders of the repository are inside the wheel.
MAPPED = {
    "rm_service": "rm_service",
    "external_providers": "external_providers",
    "config": "rm_service/config",
    "migrations": "rm_service/migrations",
}
BUILD = """
import sys
from setuptools import build_meta
print(build_meta.build_wheel(sys.argv[1]))
"""
SAY_WHERE = """
from rm_service.bundled import bundled
for name in ("migrations/env.py", "config/default.yaml"):
    print(bundled(name))
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel, built in a folder of its own: a build leaves files behind that the next one would pack."""
    source = tmp_path_factory.mktemp("source")
    for name in (*MAPPED, "setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        if (ROOT / name).exists():
            (source / name).symlink_to(ROOT / name)
    target = tmp_path_factory.mktemp("wheel")
    built = subprocess.run(
        [sys.executable, "-c", BUILD, str(target)], cwd=source, capture_output=True, text=True, check=False
    )
    assert built.returncode == 0, built.stdout + built.stderr
    return zipfile.ZipFile(target / built.stdout.splitlines()[-1])


@pytest.fixture(scope="module")
def metadata(wheel: zipfile.ZipFile) -> Message:
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/METADATA"))
    return Parser().parsestr(wheel.read(name).decode())


@pytest.fixture(scope="module")
def installed(wheel: zipfile.ZipFile, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that holds what the wheel installs, and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    wheel.extractall(folder)
    return folder


def test_the_wheel_holds_every_source_file(wheel: zipfile.ZipFile) -> None:
    expected = {
        f"{inside}/{path.relative_to(ROOT / outside).as_posix()}"
        for outside, inside in MAPPED.items()
        for path in (ROOT / outside).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert expected <= set(wheel.namelist()), "add the package or its data to setup.cfg"


@pytest.mark.parametrize("name", ["migrations/env.py", "config/default.yaml", "py.typed"])
def test_the_wheel_holds_what_the_service_starts_with(wheel: zipfile.ZipFile, name: str) -> None:
    assert f"rm_service/{name}" in wheel.namelist()


def test_the_wheel_holds_the_migrations_themselves(wheel: zipfile.ZipFile) -> None:
    versions = [name for name in wheel.namelist() if name.startswith("rm_service/migrations/versions/")]
    assert any(name.endswith(".py") for name in versions)


def test_the_wheel_holds_nothing_but_the_service(wheel: zipfile.ZipFile) -> None:
    tops = {name.split("/")[0] for name in wheel.namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"rm_service", "external_providers"}


def test_an_installed_package_finds_its_own_folders_from_anywhere(installed: Path, tmp_path: Path) -> None:
    said = subprocess.run(
        # -P keeps the current folder out of the path.
        [sys.executable, "-P", "-c", SAY_WHERE],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=True,
    )
    package = installed / "rm_service"
    assert said.stdout.split() == [str(package / "migrations/env.py"), str(package / "config/default.yaml")]


def test_a_checkout_finds_its_own_folders() -> None:
    assert bundled("migrations") == ROOT / "migrations"
    assert bundled("config/default.yaml").is_file()


def test_a_missing_folder_is_named_with_the_places_that_were_searched() -> None:
    with pytest.raises(NotBundledError, match="no-such-folder") as caught:
        bundled("no-such-folder")
    assert ROOT / "no-such-folder" in caught.value.places


def test_the_metadata_says_name_version_licence_and_python(metadata: Message) -> None:
    assert metadata["Name"] == "rm-service"
    assert metadata["Version"] == rm_service.__version__
    assert metadata["License-Expression"] == "Apache-2.0"
    assert metadata["Requires-Python"] == ">=3.11"


def test_the_command_is_installed(wheel: zipfile.ZipFile) -> None:
    name = next(name for name in wheel.namelist() if name.endswith(".dist-info/entry_points.txt"))
    assert "rm-service = rm_service.cli:main" in wheel.read(name).decode()
