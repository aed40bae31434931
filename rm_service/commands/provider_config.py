"""The configuration of a provider as `providers set --config` takes it: files, and single values."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import click
import yaml

from rm_service.api_client import Document, ProblemError

NULLS = frozenset({"", "~", "null", "Null", "NULL"})
QUOTED = ("'", '"', "|", ">")
"""How a text begins that YAML has to unwrap."""


def read_config(texts: Iterable[str]) -> dict[str, Any]:
    """The configuration that files and single keys make up, later ones over earlier ones.

    `headers.Authorization` is the key `Authorization` of the object `headers`.
    """
    config: dict[str, Any] = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or Path(text).is_file():
            config.update(_read_file(text))
        else:
            _put(config, key, _read_text(value[1:]).strip() if value.startswith("@") else read_value(value))
    return config


def read_value(text: str) -> Any:  # noqa: ANN401 - any document
    """What YAML makes of a value: a number, true or false, null, a list, an object, a text in quotes.

    Everything else is a text as it stands: `***`, `2026-01-01`, `a #b`.
    """
    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        return text
    is_text = isinstance(value, str | date) and not text.startswith(QUOTED)
    return text if is_text or (value is None and text not in NULLS) else value


def hinted(error: ProblemError, config: Mapping[str, Any]) -> ProblemError:
    """A refusal of this configuration; where a text is wanted it says what was sent instead."""
    errors: Document = dict(error.document.get("errors") or {})
    for key, value in _numbers(config):
        kind = "true or false" if isinstance(value, bool) else "a number"
        hint = f"It was read as {kind}; if it is a text write it in quotes: --config '{key}=\"...\"'."
        for path in (f"config.{key}", f"config.{key}.value"):
            if path in errors:
                errors[path] = [*errors[path], hint]
    return ProblemError({**error.document, "errors": errors} if errors else error.document)


def _put(config: dict[str, Any], key: str, value: object) -> None:
    outer, dot, inner = key.partition(".")
    if not dot:
        config[key] = value
        return
    within = config.setdefault(outer, {})
    if not isinstance(within, dict):
        raise click.BadParameter(f"{key}: {outer} is no object", param_hint="--config")
    config[outer] = {**within, inner: value}


def _numbers(config: Mapping[str, Any]) -> Iterator[tuple[str, int | float]]:
    """What is no text, at the top or one level below."""
    for key, value in config.items():
        if isinstance(value, int | float):
            yield key, value
        elif isinstance(value, Mapping):
            yield from (
                (f"{key}.{inner}", one) for inner, one in value.items() if isinstance(one, int | float)
            )


def _read_file(name: str) -> Mapping[str, Any]:
    try:
        document = yaml.safe_load(_read_text(name))
    except (yaml.YAMLError, ValueError):
        raise click.BadParameter(f"{name}: is no YAML", param_hint="--config") from None
    if not isinstance(document, dict):
        raise click.BadParameter(f"{name}: must hold an object", param_hint="--config")
    return document


def _read_text(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text"
        raise click.BadParameter(f"{name}: {reason}", param_hint="--config") from error
