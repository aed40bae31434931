"""What is tested: a provider, how it is configured, and how its manager can be made to fail."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

from marshmallow import Schema, fields

from external_providers.base import (
    ExternalApplication,
    ExternalResourceProvider,
    ExternalResourceRequest,
    Health,
    Place,
    ProviderError,
    ProviderRecord,
)

Config = Mapping[str, Any]
Way = Callable[[], AbstractContextManager[Config]]
"""Enter it, and the configuration that it gives leads to a manager that fails."""


class Violation(AssertionError):  # noqa: N818 - it is shown as what it is: a test that failed
    """A provider does not keep to its contract; the text says how."""


@dataclass(frozen=True, slots=True)
class Trouble:
    """A way in which the manager fails, and what the provider has to raise then."""

    way: Way
    error: type[ProviderError] = ProviderError


@dataclass(frozen=True, slots=True)
class Subject:
    """A provider and what is needed to try it."""

    provider: ExternalResourceProvider
    config: Config
    """Leads to a manager that answers."""
    troubles: Mapping[str, Trouble] = field(default_factory=dict)
    """By name. `http_troubles` gives those of a manager that is asked by HTTP."""
    hangs: Mapping[str, Way] = field(default_factory=dict)
    """Ways in which it never finishes its answer. `http_hangs` likewise; empty if it cannot hang."""
    name: str = "c1"
    timeout_seconds: float = 10.0
    """For a question to the manager that answers."""

    def record(self, config: Config | None = None) -> ProviderRecord:
        return ProviderRecord(
            self.provider.identity.type, self.name, self.config if config is None else config
        )

    def request(self, config: Config | None = None, seconds: float | None = None) -> ExternalResourceRequest:
        matched = self.provider.parser.parse(self.record(config))
        return ExternalResourceRequest(matched, seconds or self.timeout_seconds)

    def places(self) -> Sequence[Place]:
        return self.provider.places(self.request())

    def applications(self) -> Sequence[ExternalApplication]:
        return self.provider.applications(self.request())

    def health(self) -> Health:
        return self.provider.health(self.request())

    def secrets(self, config: Config | None = None) -> list[str]:
        """The values in the configuration of what the schema marks as secret."""
        schema = self.provider.parser.schema()
        return list(_secrets(schema, self.config if config is None else config))


def require(condition: object, text: str) -> None:
    """Raise Violation unless the condition holds."""
    if not condition:
        raise Violation(text)


def nested_schema(each: fields.Field[Any]) -> Schema | None:
    """The schema of a field that holds an object."""
    if not isinstance(each, fields.Nested):
        return None
    schema: Schema = each.schema
    return schema


def all_fields(schema: Schema, path: str = "") -> Iterator[tuple[str, fields.Field[Any]]]:
    """Every field of a configuration by its path, those of objects within it too."""
    for name, each in schema.fields.items():
        here = f"{path}{each.data_key or name}"
        yield here, each
        if (inner := nested_schema(each)) is not None:
            yield from all_fields(inner, f"{here}.")


def is_secret(each: fields.Field[Any]) -> bool:
    """Whether the field, or what it holds, is marked."""
    inner = getattr(each, "value_field", None) or getattr(each, "inner", None)
    return bool(each.metadata.get("secret")) or (inner is not None and is_secret(inner))


def _secrets(schema: Schema, config: object) -> Iterator[str]:
    for document in config if isinstance(config, list) else [config]:
        if not isinstance(document, Mapping):
            continue
        for name, each in schema.fields.items():
            value = document.get(each.data_key or name)
            if is_secret(each):
                yield from _texts(value)
            elif (inner := nested_schema(each)) is not None:
                yield from _secrets(inner, value)


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for each in value.values() if isinstance(value, Mapping) else value:
            yield from _texts(each)
