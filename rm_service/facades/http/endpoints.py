"""Endpoints: a table row for each path and method; routes and the OpenAPI document both come from it."""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from marshmallow import Schema

from rm_service.domain.outcomes import Code, Refused
from rm_service.facades.http.problems import refusal_document

API = "/api/v1"
RETRY_SECONDS = 5
"""After so long somebody who answered nothing is asked again."""


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


def refusal(refused: Refused, *, asked_for: bool = False) -> Reply:
    """The ledger's refusal as a problem document. `asked_for`: it answers an apply."""
    document = refusal_document(refused, asked_for=asked_for)
    headers = {"Retry-After": str(RETRY_SECONDS)} if refused.code is Code.LIMITS_UNKNOWN else {}
    return Reply(int(str(document["status"])), document, headers)


@dataclass(frozen=True, slots=True)
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
    _: KW_ONLY
    body: Schema | None = None
    body_needed: bool = True
    query: Schema | None = None
    problems: tuple[str, ...] = ()
    """The codes that are special to it."""
    example: Mapping[str, Any] | None = None
    """A body that would do."""
    idempotency_key: bool = False
