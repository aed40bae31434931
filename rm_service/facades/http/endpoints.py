"""Endpoints: one table row for each path and method, from which both the routes and the OpenAPI document come."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from marshmallow import Schema

API = "/api/v1"


@dataclass(frozen=True, slots=True)
class Call:
    """One request, read and checked."""

    path: Mapping[str, str]
    query: Mapping[str, Any]
    body: Mapping[str, Any]
    caller: str
    """The name of the token that it came with; empty if none is needed."""
    idempotency_key: str | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer; without a document it has no body."""

    status: int
    document: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One path and method, its handler, and what is said about it."""

    method: str
    path: str
    """With `{name}` for what varies, below API."""
    handler: Callable[[Call], Reply]
    summary: str
    group: str
    answers: Mapping[int, Schema | None]
    """The body of each good answer; None: no body."""
    body: Schema | None = None
    body_needed: bool = True
    query: Schema | None = None
    problems: tuple[str, ...] = ()
    """The codes that are special to it."""
    example: Mapping[str, Any] | None = None
    """A body that would do."""
    idempotency_key: bool = False
