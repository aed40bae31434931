"""The body that an endpoint answers with, after redirects on its own server, or what was wrong in words."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from urllib.parse import urljoin, urlsplit

from external_providers.base import MalformedError, ProviderError, UnreachableError
from external_providers.bounded_http import (
    Answer,
    Deadline,
    LateError,
    NoHttpError,
    Question,
    TooLongError,
    ask,
    check_status,
    origin,
)

MAX_BODY = 32 * 1024 * 1024
MAX_REDIRECTS = 3
_REDIRECTS = {301, 302, 303, 307, 308}


@dataclass(frozen=True, slots=True)
class Endpoint:
    """Where to ask, and how."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    connect_seconds: float = 2.0
    verify: bool = True
    ca_file: str | None = None
    """Certificates that are trusted instead of the machine's."""

    def __str__(self) -> str:
        """For errors: the query may hold a secret, and is left out."""
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{parts.netloc}{parts.path}"


def fetch(endpoint: Endpoint, timeout_seconds: float) -> bytes:
    """The body of a 200 answer.

    Follows redirects on the same server only, because headers may hold credentials. Raises UnreachableError,
    DeniedError for 401 and 403, MalformedError for what is no answer to use; none repeats what came.
    """
    deadline = Deadline(timeout_seconds)
    url = endpoint.url
    for _ in range(MAX_REDIRECTS + 1):
        answer = _answer(endpoint, url, deadline)
        if answer.status not in _REDIRECTS:
            check_status(answer.status, str(endpoint))
            return answer.body
        url = _same_server(endpoint, url, answer.headers.get("location", ""))
    raise MalformedError(f"{endpoint} redirects more than {MAX_REDIRECTS} times")


def _answer(endpoint: Endpoint, url: str, deadline: Deadline) -> Answer:
    question = Question(
        url, endpoint.headers, connect_seconds=endpoint.connect_seconds, tls=partial(_context, endpoint)
    )
    try:
        return ask(question, deadline, MAX_BODY)
    except ProviderError as error:
        raise _named(endpoint, error, deadline) from None


def _named(endpoint: Endpoint, error: ProviderError, deadline: Deadline) -> ProviderError:
    """The same, with the endpoint's name."""
    match error:
        case LateError():
            return UnreachableError(f"{endpoint} gave no whole answer within {deadline.seconds:g} s")
        case TooLongError():
            return MalformedError(f"{endpoint} answers more than {MAX_BODY} bytes")
        case NoHttpError():
            return MalformedError(f"{endpoint} does not answer as HTTP: {error.fault}")
    return UnreachableError(f"{endpoint}: {error}")


def _context(endpoint: Endpoint) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=endpoint.ca_file)
    except OSError as error:
        raise UnreachableError(f"{endpoint.ca_file} cannot be used: {error.strerror}") from None
    if not endpoint.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _same_server(endpoint: Endpoint, url: str, target: str) -> str:
    try:
        there = urljoin(url, target)
    except ValueError:
        raise MalformedError(f"{endpoint} redirects to what is no address") from None
    if origin(there) != origin(url):
        raise MalformedError(f"{endpoint} redirects to another server, which is not followed")
    return there
