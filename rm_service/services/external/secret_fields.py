"""What is secret in a provider's configuration: found by the plugin's schema, taken out, and put back.

A place in a configuration is a path of keys and indexes. Where a secret was, a mark stands instead: in the
database, in answers, and in what comes back with them.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from marshmallow import Schema
from marshmallow import fields as kinds
from marshmallow.fields import Field

HIDDEN = "***"
"""Stands where a secret is; who sends it back keeps the secret that is there."""

Config = Mapping[str, Any]
Path = tuple[str | int, ...]
Recipients = Mapping[str, set[str]]
"""Who may be sent secrets, by the key that says so."""
_ADDRESS = re.compile(r"([a-zA-Z][\w+.-]*)://(?:[^/?#\\@\s]*@)?([\w.:%\[\]-]+)(?:[/?#][^\\\s,;|]*)?")
"""One address and nothing beside it: scheme, host and port, and a rest that does not say whom to ask."""
SHORTEST = 4
"""Shorter texts are not looked for in messages: they would be found in any."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """What is secret in one configuration."""

    values: tuple[tuple[Path, Any], ...] = field(default=(), repr=False)

    def __bool__(self) -> bool:
        return bool(self.values)

    def put_into(self, config: Config) -> dict[str, Any]:
        """The configuration with the secrets in their places."""
        whole = deepcopy(dict(config))
        for path, value in self.values:
            _set(whole, path, value)
        return whole

    def scrubbed(self, text: str) -> str:
        """A text of somebody else's, without any secret that stands in it."""
        for secret in sorted(_texts(value for _, value in self.values), key=len, reverse=True):
            text = text.replace(secret, HIDDEN)
        return text


def take_out(schema: Schema, config: Config) -> tuple[dict[str, Any], Secrets]:
    """The configuration with marks instead of its secrets, and these."""
    marked = deepcopy(dict(config))
    found = tuple((path, _get(config, path)) for path in secret_places(schema, config))
    for path, _ in found:
        _set(marked, path, HIDDEN)
    return marked, Secrets(found)


def secret_places(schema: Schema, config: object) -> Iterator[Path]:
    """Where the configuration has something that the schema calls secret."""
    if isinstance(config, Mapping):
        for name, each in schema.fields.items():
            key = each.data_key or name
            if config.get(key) is not None:
                yield from _in_field(each, config[key], (key,))


def _in_field(here: Field[Any], value: object, path: Path) -> Iterator[Path]:
    if value is None:
        return
    if here.metadata.get("secret"):
        yield path
    elif isinstance(here, kinds.Nested):
        documents = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, document in documents:
            for below in secret_places(_schema_of(here), document):
                yield (*path, *(() if index is None else (index,)), *below)
    elif isinstance(here, kinds.List) and isinstance(value, list):
        for index, each in enumerate(value):
            yield from _in_field(here.inner, each, (*path, index))
    elif isinstance(here, kinds.Mapping) and isinstance(value, Mapping) and here.value_field is not None:
        for key, each in value.items():
            yield from _in_field(here.value_field, each, (*path, key))


def _schema_of(nested: kinds.Nested) -> Schema:
    schema: Schema = nested.schema
    return schema


def elsewhere(before: Recipients, after: Recipients) -> list[str]:
    """Whom the secrets of one configuration would be sent to by the other and were not before."""
    known = set().union(*before.values())
    others = {each for found in after.values() for each in found - known}
    return sorted(others | {f"a missing {key}" for key in before.keys() - after.keys()})


def recipients_of(config: Config, secrets: Collection[Path], keys: Collection[str] | None) -> Recipients:
    """Who may be sent the secrets of this configuration, by what stands under these keys; None: under any.

    Of an address it is `https://host:port`, of anything else the key and the whole of its value. `secrets`
    are the places that are left out.
    """
    found: dict[str, set[str]] = defaultdict(set)
    for path, value in _leaves(config):
        where = path_text(tuple(step for step in path if isinstance(step, str)))
        decides = keys is None or any(f"{where}.".startswith(f"{key}.") for key in keys)
        if decides and path not in secrets:
            found[where].add(_recipient(where, value))
    return found


def _leaves(config: object, path: Path = ()) -> Iterator[tuple[Path, object]]:
    if isinstance(config, Mapping):
        for key, each in config.items():
            yield from _leaves(each, (*path, key))
    elif isinstance(config, list):
        for index, each in enumerate(config):
            yield from _leaves(each, (*path, index))
    elif config is not None:
        yield path, config


def _recipient(where: str, value: object) -> str:
    address = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    return f"{address[1]}://{address[2]}".lower() if address else f"{where}={value}"


def open_passwords(config: object, path: Path = ()) -> Iterator[Path]:
    """Where an address has a password in it: it would be shown."""
    if isinstance(config, str):
        authority = config.partition("://")[2].partition("/")[0]
        if ":" in authority.rpartition("@")[0]:
            yield path
    elif isinstance(config, Mapping):
        for key, each in config.items():
            yield from open_passwords(each, (*path, key))
    elif isinstance(config, list):
        for index, each in enumerate(config):
            yield from open_passwords(each, (*path, index))


def path_text(path: Path) -> str:
    """`kerberos.keytab`, `users.0.token`."""
    return ".".join(map(str, path))


def _get(config: Any, path: Path) -> Any:  # noqa: ANN401 - any JSON
    for step in path:
        config = config[step]
    return config


def _set(config: Any, path: Path, value: object) -> None:  # noqa: ANN401 - any JSON
    _get(config, path[:-1])[path[-1]] = value


def _texts(values: Iterable[object]) -> set[str]:
    """Every text within the values that is long enough to be known again."""
    found: set[str] = set()
    for value in values:
        if isinstance(value, Mapping):
            found |= _texts(value.values())
        elif isinstance(value, list):
            found |= _texts(value)
        elif len(str(value)) >= SHORTEST:
            found.add(str(value))
    return found
