"""What is secret in a provider's configuration: found by the plugin's schema, taken out, and put back.

A place in a configuration is a path of keys and indexes. Where a secret was, a mark stands instead: in the
database, in answers, and in what comes back with them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
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


def hosts_of(config: object) -> set[str]:
    """Whom the configuration speaks to, as far as its addresses tell: `https://host:port`."""
    if isinstance(config, str):
        scheme, separator, rest = config.partition("://")
        return {f"{scheme.lower()}://{_host(rest)}"} if separator else set()
    if isinstance(config, Mapping):
        config = list(config.values())
    if isinstance(config, Sequence):
        return set().union(*(hosts_of(each) for each in config))
    return set()


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


def _host(rest: str) -> str:
    for end in "/?#":
        rest = rest.partition(end)[0]
    return rest.rpartition("@")[2].lower()


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
