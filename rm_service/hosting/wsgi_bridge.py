"""One request through a WSGI application (PEP 3333): ASGI scope and whole body in, whole answer out."""

import io
import sys
from collections.abc import Callable, Mapping
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote_to_bytes

from rm_service.hosting.answer import Answer

if TYPE_CHECKING:
    from _typeshed import OptExcInfo
    from _typeshed.wsgi import WSGIApplication

BODILESS = {HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED}


def call_wsgi(application: "WSGIApplication", scope: Mapping[str, Any], body: bytes) -> Answer:
    """The application's whole answer with a true `Content-Length`. Raises whatever the application raises."""
    head: tuple[str, list[tuple[str, str]]] | None = None
    chunks: list[bytes] = []

    def start_response(
        status: str, headers: list[tuple[str, str]], exc_info: "OptExcInfo | None" = None, /
    ) -> Callable[[bytes], object]:
        nonlocal head
        if head is not None and exc_info is None:
            msg = "start_response was called twice"
            raise RuntimeError(msg)
        head = (status, headers)
        return chunks.append

    result = application(environ(scope, body), start_response)
    try:
        chunks.extend(result)
    finally:
        close = getattr(result, "close", None)
        if close is not None:
            close()
    if head is None:
        msg = "the application did not call start_response"
        raise RuntimeError(msg)
    status_line, headers = head
    return _with_length(scope["method"], int(status_line[:3]), headers, b"".join(chunks))


def environ(scope: Mapping[str, Any], body: bytes) -> dict[str, Any]:
    """The WSGI environment of a request whose body is there completely.

    The body's length is therefore always known, for a chunked body too. Text is latin-1 as PEP 3333 wants it.
    """
    server, client = scope["server"] or ("", 0), scope["client"] or ("", 0)
    result: dict[str, Any] = {
        "REQUEST_METHOD": scope["method"],
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(scope["raw_path"]).decode("latin-1"),
        "QUERY_STRING": scope["query_string"].decode("latin-1"),
        "SERVER_NAME": server[0],
        "SERVER_PORT": str(server[1]),
        "SERVER_PROTOCOL": f"HTTP/{scope['http_version']}",
        "REMOTE_ADDR": client[0],
        "REMOTE_PORT": str(client[1]),
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(body),
        "wsgi.input_terminated": True,
        "wsgi.errors": sys.stderr,
        "wsgi.multithread": True,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    for raw_name, raw_value in scope["headers"]:
        name = _environ_name(raw_name)
        if name is None:
            continue
        value = raw_value.decode("latin-1")
        if name in result:
            value = result[name] + ("; " if name == "HTTP_COOKIE" else ",") + value
        result[name] = value
    return result


@lru_cache(maxsize=256)
def _environ_name(name: bytes) -> str | None:
    """None for a header that must not reach the application."""
    if b"_" in name or name in {b"content-length", b"transfer-encoding"}:
        return None  # X_Token would pose as X-Token; the length is the arrived body's
    text = name.decode("latin-1").upper().replace("-", "_")
    return text if text == "CONTENT_TYPE" else f"HTTP_{text}"


def _with_length(method: str, status: int, headers: list[tuple[str, str]], body: bytes) -> Answer:
    if status in BODILESS:
        return Answer(status, headers, b"")
    if method == "HEAD":
        return Answer(status, headers, b"")  # the length, if the application says one, is that of the GET
    headers = [header for header in headers if header[0].lower() != "content-length"]
    return Answer(status, [*headers, ("Content-Length", str(len(body)))], body)
