"""The mini cluster's programs: Hadoop's jars by Maven, our classes by javac; once for each set of sources.

They lie in `.cache/yarn` at the top of the repository. A folder there is complete or absent, so that two
builds at the same time do no harm.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent
CACHE = ROOT / ".cache" / "yarn"
TOOLS = ("java", "javac", "mvn")
BUILD_SECONDS = 280.0


class BuildError(RuntimeError):
    """The programs could not be made; the message holds what the tool said."""


def require_tools() -> None:
    """Skip the test, with the reason, where Java or Maven are missing; with CI=true fail instead."""
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if not missing:
        return
    reason = f"a real YARN needs {', '.join(missing)}"
    if os.environ.get("CI", "").lower() == "true":
        pytest.fail(f"{reason}, and is never left out in CI")
    pytest.skip(reason)


def built() -> Path:
    """The folder with `lib/*.jar` and `classes`, made if need be. Raises BuildError."""
    target = CACHE / _key()
    if not target.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        (CACHE.parent / ".gitignore").write_text("*\n")
        with tempfile.TemporaryDirectory(dir=CACHE, prefix="making-") as making:
            folder = Path(making) / "made"
            _make(folder)
            try:
                folder.rename(target)
            except OSError:
                if not target.is_dir():  # else somebody else made the same meanwhile
                    raise
    return target


def _key() -> str:
    """A name for the state of the sources."""
    digest = hashlib.sha256()
    for path in _sources():
        digest.update(path.name.encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()[:16]


def _sources() -> list[Path]:
    return [HERE / "pom.xml", *sorted((HERE / "src").iterdir())]


def _make(folder: Path) -> None:
    (folder / "classes").mkdir(parents=True)
    shutil.copy(HERE / "pom.xml", folder)
    _run(["mvn", "-B", "-q", "dependency:copy-dependencies", "-DoutputDirectory=lib"], folder)
    for path in (HERE / "src").glob("*.properties"):
        shutil.copy(path, folder / "classes")
    java = sorted(str(path) for path in (HERE / "src").glob("*.java"))
    _run(["javac", "-d", "classes", "-cp", "lib/*", *java], folder)


def _run(command: list[str], folder: Path) -> None:
    done = subprocess.run(
        command,
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    if done.returncode != 0:
        raise BuildError(
            f"{command[0]} ended with {done.returncode}:\n{done.stdout[-4000:]}{done.stderr[-4000:]}"
        )
