"""A client of the HTTP API: one method a verb, JSON in and out, three errors."""

import re
import time
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import urlsplit

import orjson
import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from urllib3.util import Retry

DEFAULT_URL = "http://127.0.0.1:8310"
ROOT = "/api/v1"
EVENT_STREAM = "text/event-stream"
RESTART_SECONDS = 60.0
REOPEN_SECONDS = 1
LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})

Document = dict[str, Any]


class UnreachableError(Exception):
    """No answer came from `url`: nothing listens there, or the connection broke or timed out."""

    def __init__(self, url: str, reason: str) -> None:
        self.url = url
        self.reason = reason
        super().__init__(f"the service at {url} cannot be reached: {reason}")


class ProblemError(Exception):
    """The service refused. `document` is its problem document (RFC 9457)."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.status: int = document.get("status", 0)
        self.code: str = document.get("code", "")
        super().__init__(document.get("detail") or document.get("title") or f"status {self.status}")


class UnexpectedAnswerError(Exception):
    """What answered at `url` does not speak this API: probably something else listens there."""

    def __init__(self, url: str, status: int, body: str) -> None:
        self.url = url
        self.status = status
        shown = " ".join(body[:200].split())
        super().__init__(f"{url} answered {status} with what is no answer of rm-service: {shown!r}")


class ApiClient:
    """Speaks with one service; not to be shared by threads.

    `timeout` is in seconds. `attempts` above 1 sends a request again when the answer was lost, or when it
    was 503 (after the time that the answer asks for): only for requests that may be repeated. Raises
    ValueError for a `url` that does not begin with http:// or https:// and a host.
    """

    def __init__(
        self, url: str = DEFAULT_URL, token: str | None = None, *, timeout: float = 60, attempts: int = 1
    ) -> None:
        host = host_of(url)
        self.url = url.rstrip("/")
        self.timeout = timeout
        self._session = requests.Session()
        # A proxy of the surroundings does not lead to this machine, and asking for one takes time.
        self._session.trust_env = host not in LOOPBACK
        self._session.auth = _Bearer(token)
        retry = Retry(
            total=attempts - 1,
            connect=0,
            allowed_methods=None,
            status_forcelist=[503],
            raise_on_status=False,
        )
        self._session.mount("http://", HTTPAdapter(max_retries=retry))
        self._session.mount("https://", HTTPAdapter(max_retries=retry))

    def get(self, path: str, query: Mapping[str, Any] | None = None) -> Document:
        """Ask. `path` is below /api/v1; a list in `query` repeats its key, None leaves it out.

        Like the methods beside it: the answer's JSON object. Raises UnreachableError, ProblemError,
        UnexpectedAnswerError.
        """
        return self._document(self._send("GET", path, query=query))

    def put(self, path: str, body: Document) -> Document:
        return self._document(self._send("PUT", path, body=body))

    def post(self, path: str, body: Document) -> Document:
        return self._document(self._send("POST", path, body=body))

    def delete(self, path: str) -> None:
        self._send("DELETE", path)

    def events(self, after: int | None = None) -> Iterator[Document]:
        """The live stream of events with a number above `after`, those of the past first. It has no end;
        when it ends, it is opened again behind the last event. Raises UnreachableError if the service
        cannot be reached, or not within a minute after a stream ended.
        """
        give_up: float | None = None
        while True:
            query = {} if after is None else {"after": after}
            try:
                response = self._send("GET", "/events", query=query, accept=EVENT_STREAM, stream=True)
            except UnreachableError:
                if give_up is None or time.monotonic() > give_up:
                    raise
                time.sleep(REOPEN_SECONDS)
                continue
            with response:
                if not response.headers.get("Content-Type", "").startswith(EVENT_STREAM):
                    raise UnexpectedAnswerError(self.url, response.status_code, response.text)
                try:
                    for event in _server_sent(response):
                        after = event["seq"]
                        yield event
                except requests.RequestException:
                    pass  # broken in the middle: resumed, or found unreachable
            give_up = time.monotonic() + RESTART_SECONDS
            time.sleep(REOPEN_SECONDS)

    def close(self) -> None:
        self._session.close()

    def _send(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, Any] | None = None,
        body: Document | None = None,
        accept: str = "application/json",
        stream: bool = False,
    ) -> requests.Response:
        headers = {"Accept": accept}
        if body is not None:
            headers["Content-Type"] = "application/json"
        try:
            response = self._session.request(
                method,
                f"{self.url}{ROOT}{path}",
                params=query,
                data=None if body is None else orjson.dumps(body),
                headers=headers,
                timeout=self.timeout,
                allow_redirects=False,
                stream=stream,
            )
        except requests.RequestException as error:
            raise UnreachableError(self.url, _reason(error)) from error
        if not response.ok or response.is_redirect:
            raise self._refusal(response)
        return response

    def _document(self, response: requests.Response) -> Document:
        document = _json_object(response)
        if document is None:
            raise UnexpectedAnswerError(self.url, response.status_code, response.text)
        return document

    def _refusal(self, response: requests.Response) -> ProblemError | UnexpectedAnswerError:
        document = _json_object(response)
        if document is None or "json" not in response.headers.get("Content-Type", ""):
            return UnexpectedAnswerError(self.url, response.status_code, response.text)
        return ProblemError({"status": response.status_code, **document})


def host_of(url: str) -> str:
    """The host of an http or https URL. Raises ValueError for any other text."""
    parts = urlsplit(url)
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValueError(f"{url!r} is not like {DEFAULT_URL}")
    return parts.hostname


class _Bearer(AuthBase):
    """Sends the token with each request; also keeps requests from looking for a password in ~/.netrc."""

    def __init__(self, token: str | None) -> None:
        self.token = token

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        if self.token:
            request.headers["Authorization"] = f"Bearer {self.token}"
        return request


def _json_object(response: requests.Response) -> Document | None:
    try:
        document = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        return None
    return document if isinstance(document, dict) else None


def _server_sent(response: requests.Response) -> Iterator[Document]:
    """The `data` of each event of a stream (WHATWG HTML, "Server-sent events"); comments are skipped."""
    data: list[bytes] = []
    for line in response.iter_lines(chunk_size=None):
        if line.startswith(b"data:"):
            data.append(line[5:])
        elif not line and data:
            yield orjson.loads(b"\n".join(data))
            data.clear()


def _reason(error: Exception) -> str:
    """The innermost cause in words: "Connection refused" rather than the names of three libraries."""
    text = str(error)
    found = re.search(r"\[Errno -?\d+\] ([^'\")]+)", text)
    if found:
        return found[1]
    if isinstance(error, requests.Timeout):
        return "no answer in time"
    return text
