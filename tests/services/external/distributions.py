"""Throw-away distributions: a folder that pip could have made, without pip."""

import importlib
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from external_providers.base import ENTRY_POINTS


def install(
    folder: Path, name: str, entries: Mapping[str, str], modules: Mapping[str, str], version: str = "1.0"
) -> None:
    """Put modules and the metadata that names entry points into a folder, which may hold others already."""
    about = folder / f"{name.replace('-', '_')}-{version}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
    lines = [f"{entry} = {value}" for entry, value in entries.items()]
    (about / "entry_points.txt").write_text("\n".join([f"[{ENTRY_POINTS}]", *lines, ""]))
    for module, text in modules.items():
        (folder / f"{module}.py").write_text(text)


@contextmanager
def importable(folder: Path) -> Iterator[None]:
    """What stands in the folder can be imported and found, and is forgotten afterwards."""
    before = set(sys.modules)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        for name in {path.stem for path in folder.glob("*.py")} - before:
            sys.modules.pop(name, None)
        importlib.invalidate_caches()
