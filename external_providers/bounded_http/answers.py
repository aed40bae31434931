"""An answer, and what keeps one from being used. No error repeats anything that came."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from http.client import responses

from external_providers.base import DeniedError, MalformedError, UnreachableError

CHUNK = 64 * 1024
"""Bytes that are read at a time."""


class LateError(UnreachableError):
    """The time was over before the answer was whole."""

    def __init__(self) -> None:
        super().__init__("no whole answer in time")


class TooLongError(MalformedError):
    """The answer has more bytes than it may have; the rest is not read."""

    def __init__(self, most_bytes: int) -> None:
        super().__init__(f"the answer is longer than {most_bytes} bytes")


class NoHttpError(MalformedError):
    """What came is no HTTP. `fault` is the name of what was found wrong."""

    def __init__(self, fault: str) -> None:
        self.fault = fault
        super().__init__(f"it does not answer as HTTP: {fault}")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that has come whole."""

    status: int
    headers: Mapping[str, str]
    """By their names in lower case."""
    body: bytes


def gathered(chunks: Iterable[bytes], most_bytes: int) -> bytes:
    """All of them as one. Raises TooLongError as soon as they are longer."""
    body = bytearray()
    for chunk in chunks:
        body += chunk
        if len(body) > most_bytes:
            raise TooLongError(most_bytes)
    return bytes(body)


def check_status(status: int, who: str = "it") -> None:
    """Raises DeniedError, UnreachableError or MalformedError for any status but 200; `who` answered it."""
    if status == 200:
        return
    said = f"{who} answered {status} {responses.get(status, '')}".rstrip()
    if status in {401, 403}:
        raise DeniedError(said)
    if status >= 500 or status == 429:
        raise UnreachableError(said)
    raise MalformedError(said)
