"""A fake API server: lists of what it was given, in pages, as the published API describes them."""

import gzip
import json
import ssl
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from tests.external_providers.loopback import LoopbackHandler, LoopbackServer
from tests.kubernetes.objects import Document

KINDS = {
    "namespaces": "Namespace",
    "resourcequotas": "ResourceQuota",
    "nodes": "Node",
    "pods": "Pod",
}

Trick = Callable[[BaseHTTPRequestHandler], bool]
"""Answers instead of the server, when it returns true."""


class FakeApi(LoopbackServer):
    """Serves `objects` on 127.0.0.1 while it is entered. `asked` has the path and query of each request."""

    def __init__(
        self, *objects: Document, page: int = 500, token: str = "", tls: ssl.SSLContext | None = None
    ) -> None:
        self.objects = list(objects)
        self.page = page
        self.token = token
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.headers: list[dict[str, str]] = []
        self.denied: set[str] = set()
        self.trick: Trick | None = None
        self.packed = False
        super().__init__(_Handler, tls)

    def answer(self, handler: BaseHTTPRequestHandler) -> None:
        parts = urlsplit(handler.path)
        query = {name: values[-1] for name, values in parse_qs(parts.query).items()}
        self.asked.append((parts.path, query))
        self.headers.append(dict(handler.headers.items()))
        if self.trick is not None and self.trick(handler):
            return
        if self.token and handler.headers.get("Authorization") != f"Bearer {self.token}":
            self.refuse(handler, 401, "Unauthorized")
        elif parts.path == "/version":
            self.send(handler, {"major": "1", "minor": "34", "gitVersion": "v1.34.4"})
        else:
            self._list(handler, parts.path.removeprefix("/api/v1/"), query)

    def _list(self, handler: BaseHTTPRequestHandler, resource: str, query: dict[str, str]) -> None:
        if resource not in KINDS:
            self.refuse(handler, 404, "the server could not find the requested resource")
            return
        if resource in self.denied:
            message = f'{resource} is forbidden: User "rm" cannot list resource "{resource}" in API group ""'
            self.refuse(handler, 403, message)
            return
        found = [item for item in self.objects if item["kind"] == KINDS[resource] and _selected(item, query)]
        begin = int(query.get("continue", "0"))
        end = begin + min(int(query.get("limit", "500")), self.page)
        metadata: Document = {"resourceVersion": "1000"}
        if end < len(found):
            metadata |= {"continue": str(end), "remainingItemCount": len(found) - end}
        kind = f"{KINDS[resource]}List"
        items = found[begin:end] or None
        self.send(handler, {"kind": kind, "apiVersion": "v1", "metadata": metadata, "items": items})

    def refuse(self, handler: BaseHTTPRequestHandler, status: int, message: str) -> None:
        body = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": message, "code": status}
        self.send(handler, body, status)

    def send(self, handler: BaseHTTPRequestHandler, body: Any, status: int = 200) -> None:
        content = json.dumps(body).encode()
        handler.send_response(status)
        handler.send_header("Content-Type", "application/json")
        if self.packed:
            content = gzip.compress(content)
            handler.send_header("Content-Encoding", "gzip")
        handler.send_header("Content-Length", str(len(content)))
        handler.end_headers()
        handler.wfile.write(content)


class _Handler(LoopbackHandler):
    protocol_version = "HTTP/1.1"
    desk: FakeApi

    def answer(self) -> None:
        self.desk.answer(self)


def _selected(item: Document, query: dict[str, str]) -> bool:
    labels = item["metadata"].get("labels", {})
    for requirement in filter(None, query.get("labelSelector", "").split(",")):
        key, _, value = requirement.partition("=")
        if labels.get(key) != value:
            return False
    for requirement in filter(None, query.get("fieldSelector", "").split(",")):
        _, _, phase = requirement.partition("!=")
        if item["status"].get("phase") == phase:
            return False
    return True
