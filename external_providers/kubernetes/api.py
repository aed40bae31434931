"""Questions to an API server: lists in pages, with one deadline for all of them."""

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self, TypeVar
from urllib.parse import urlsplit

import orjson
import requests

from external_providers.base import DeniedError, MalformedError, ProviderError, UnreachableError
from external_providers.bounded_http import Answer, BoundedSession, Deadline, LateError, TooLongError
from external_providers.kubernetes.access import Access
from external_providers.kubernetes.documents import Document, mapping, objects, text

T = TypeVar("T")

MAX_PAGE = 64 * 1024 * 1024
PAGE_ITEMS = 500
CONNECT_SECONDS = 3.0
MAX_MESSAGE = 200
MAX_STARTS = 3
"""How often a list is begun: the server forgets a list that takes minutes, and then says Gone."""


class GoneError(Exception):
    """The server does not know any more where the list was continued."""


class Api:
    """An API server for the time of one fetch. Not thread-safe: each fetch has its own."""

    def __init__(self, access: Access, timeout_seconds: float) -> None:
        """Raises AccessError."""
        self._server = access.server
        self._where = urlsplit(access.server).netloc
        self._deadline = Deadline(timeout_seconds)
        # Whom the cluster's configuration names is trusted, and nobody else.
        self._session = BoundedSession(access.tls() if access.server.startswith("https://") else None)
        headers = self._session.session.headers
        headers["Accept-Encoding"] = "gzip"
        headers["User-Agent"] = "rm-service"
        if access.token:
            headers["Authorization"] = f"Bearer {access.token}"

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._session.close()

    def version(self) -> str:
        """What the server says it is, e.g. `v1.34.4`. Raises ProviderError."""
        return text(self._get("/version", {}, "get the version"), "gitVersion", "version")

    def each(self, resource: str, kind: str, pick: Callable[[Document], T | None], **query: str) -> list[T]:
        """What `pick` keeps of every object of a resource in all namespaces. Raises ProviderError.

        An object that it keeps nothing of is left out. Objects are let go of page by page.
        """
        for _ in range(MAX_STARTS):
            try:
                return self._pages(resource, kind, pick, query)
            except GoneError:
                continue
        raise UnreachableError(f"{self._where} forgets the list of {resource} while it is read")

    def _pages(
        self, resource: str, kind: str, pick: Callable[[Document], T | None], query: Mapping[str, str]
    ) -> list[T]:
        found: list[T] = []
        parameters = {**query, "limit": str(PAGE_ITEMS)}
        while True:
            page = self._get(f"/api/v1/{resource}", parameters, f"list {resource}")
            if page.get("kind") != kind:
                raise MalformedError(f"{self._where} answers no {kind} when asked for {resource}")
            found += [kept for item in objects(page, "items", kind) if (kept := pick(item)) is not None]
            parameters["continue"] = text(mapping(page, "metadata", kind), "continue", f"{kind}.metadata")
            if not parameters["continue"]:
                return found

    def _get(self, path: str, parameters: Mapping[str, str], what: str) -> Document:
        answer = self._answer(path, parameters)
        if answer.status != 200:
            raise self._refusal(answer.status, answer.body, what)
        return self._parsed(answer.body)

    def _answer(self, path: str, parameters: Mapping[str, str]) -> Answer:
        try:
            return self._session.get(
                self._server + path,
                self._deadline,
                most_bytes=MAX_PAGE,
                connect_seconds=CONNECT_SECONDS,
                query=parameters,
            )
        except TooLongError as error:
            reason = f"{self._where} answers with more than {MAX_PAGE >> 20} MiB in one page"
            raise MalformedError(reason) from error
        except LateError as error:
            raise UnreachableError(f"{self._where} took too long to answer") from error
        except requests.exceptions.ContentDecodingError as error:
            raise MalformedError(f"{self._where} answers with a body that cannot be unpacked") from error
        except (requests.RequestException, OSError) as error:
            raise UnreachableError(f"{self._where}: {_trouble(error)}") from error

    def _parsed(self, body: bytes) -> Document:
        try:
            document = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise MalformedError(f"{self._where} answers no JSON") from error
        if not isinstance(document, dict):
            raise MalformedError(f"{self._where} answers no object")
        return document

    def _refusal(self, status: int, body: bytes, what: str) -> ProviderError | GoneError:
        said = f"{self._where}: may not {what}" if status == 403 else f"{self._where}: cannot {what}"
        said = f"{said} ({status}){_message(body)}"
        if status == 410:
            return GoneError(said)
        if status == 401:
            return DeniedError(f"{self._where} does not accept the credentials (401)")
        if status == 403:
            return DeniedError(said)
        if status == 429 or status >= 500:
            return UnreachableError(said)
        return MalformedError(said)


def _trouble(error: Exception) -> str:
    """What went wrong, without addresses and numbers of objects in memory."""
    if isinstance(error, requests.exceptions.SSLError):
        return "the connection is not secure: " + _innermost(error)
    if isinstance(error, requests.Timeout):
        return "took too long to answer"
    return _innermost(error)


def _innermost(error: BaseException) -> str:
    """The first cause's text: what wraps it repeats it."""
    seen = 0
    while (inner := error.__cause__ or error.__context__) is not None and seen < 10:
        error, seen = inner, seen + 1
    strerror = getattr(error, "strerror", None)
    return str(strerror or error)[:MAX_MESSAGE] or type(error).__name__


def _message(body: bytes) -> str:
    """The message of a Status, as the API gives it; of any other answer nothing is repeated."""
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError:
        return ""
    message = (
        document.get("message") if isinstance(document, dict) and document.get("kind") == "Status" else None
    )
    return f": {message[:MAX_MESSAGE]!r}" if isinstance(message, str) else ""
