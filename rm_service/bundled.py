"""Where the folders that travel with the package are.

`config/` and `migrations/` stand at the top of the repository. In an installed wheel they are inside the
package (`package_dir` in setup.cfg); in a checkout, also one installed as editable, they are beside it.
"""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent


class NotBundledError(LookupError):
    """The folder came neither with the wheel nor with a checkout: the installation is damaged."""

    def __init__(self, name: str, places: tuple[Path, ...]) -> None:
        super().__init__(f"{name!r} is in none of {', '.join(map(str, places))}")
        self.name = name
        self.places = places


def bundled(name: str) -> Path:
    """The folder (or file below one) of that name: `bundled("migrations")`, `bundled("config/default.yaml")`.

    Raises NotBundledError when it is not there.
    """
    places = (PACKAGE / name, PACKAGE.parent / name)
    for place in places:
        if place.exists():
            return place
    raise NotBundledError(name, places)
