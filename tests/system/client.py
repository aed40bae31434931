"""A plain HTTP client that hides nothing: no retries, no pools, and it says when no answer came."""

import http.client
import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Self, TypeVar

API = "/api/v1"
Json = dict[str, Any]
Found = TypeVar("Found")


class NoAnswerError(Exception):
    """The connection was refused, or broke before the answer was there."""

    def __init__(self, reason: Exception, *, sent: bool) -> None:
        self.sent = sent
        """Whether the service can have received the request."""
        super().__init__(f"no answer: {reason!r}")


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer; header names in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def document(self) -> Json:
        document: Json = json.loads(self.body)
        return document


class Client:
    """One connection at a time to 127.0.0.1; not to be shared by threads."""

    def __init__(self, port: int, *, token: str | None = None, timeout: float = 30) -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def send(self, method: str, path: str, body: object = None) -> Answer:
        """Any path of the service. Raises NoAnswerError."""
        headers = dict(self._headers)
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = "application/json"
        sent = False
        try:
            if self._connection.sock is None:
                self._connection.connect()
            sent = True
            self._connection.request(method, path, data, headers)
            response = self._connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._connection.close()
            raise NoAnswerError(error, sent=sent) from error
        return Answer(
            response.status, {name.lower(): value for name, value in response.getheaders()}, content
        )

    def call(self, method: str, path: str, body: object = None, *, status: int = 200) -> Json:
        """The document of an answer of the API that must have this status."""
        answer = self.send(method, API + path, body)
        assert answer.status == status, (method, path, answer.status, answer.body.decode())
        return answer.document if answer.body else {}

    def get(self, path: str, *, status: int = 200) -> Json:
        return self.call("GET", path, status=status)

    def post(self, path: str, body: object = None, *, status: int = 200) -> Json:
        return self.call("POST", path, body, status=status)

    def put(self, path: str, body: object, *, status: int = 200) -> Json:
        return self.call("PUT", path, body, status=status)

    def pages(self, path: str) -> Iterator[Json]:
        """Every item of a list, page after page."""
        cursor = None
        joint = "&" if "?" in path else "?"
        while True:
            page = self.get(f"{path}{joint}limit=1000" + (f"&cursor={cursor}" if cursor else ""))
            yield from page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def close(self) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@contextmanager
def event_stream(port: int, after: int = 0, *, timeout: float = 30) -> Iterator[Iterator[Json]]:
    """The live stream of events behind `after`; it fails when nothing comes for `timeout` seconds."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request("GET", f"{API}/events?after={after}", headers={"Accept": "text/event-stream"})
        response = connection.getresponse()
        assert response.status == 200, response.read()
        assert response.headers["Content-Type"].startswith("text/event-stream")
        yield _events(response)
        response.close()
    finally:
        connection.close()


def _events(response: http.client.HTTPResponse) -> Iterator[Json]:
    for line in response:
        if line.startswith(b"data:"):
            event: Json = json.loads(line[5:])
            yield event


def until(look: Callable[[], Found | None], what: str, *, seconds: float = 20) -> Found:
    """The first truthy result of looking again and again: for what the service does by itself."""
    deadline = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, f"after {seconds} s still not so: {what}"
        time.sleep(0.05)
