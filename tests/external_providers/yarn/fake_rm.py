"""A ResourceManager on loopback that answers what a test gives it, and remembers what it was asked."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any, Self

from external_providers.base import ExternalResourceRequest, ProviderRecord
from external_providers.yarn import YarnProvider

INFO = "/ws/v1/cluster/info"
SCHEDULER = "/ws/v1/cluster/scheduler"
METRICS = "/ws/v1/cluster/metrics"
APPS = "/ws/v1/cluster/apps"
DRIP_SECONDS = 0.02


@dataclass(frozen=True)
class Reply:
    """What is sent back. `length` claims a length that the body has not; `drips`: it never ends."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    length: int | None = None
    drips: bool = False
    silent: bool = False


@dataclass(frozen=True)
class Asked:
    path: str
    query: str
    headers: Message


def reply(document: object, **more: Any) -> Reply:
    return Reply(json.dumps(document).encode(), **more)


def info(state: str = "ACTIVE") -> Reply:
    return reply({"clusterInfo": {"haState": state, "state": "STARTED", "resourceManagerVersion": "3.4.2"}})


def metrics(megabytes: object, vcores: object) -> Reply:
    return reply({"clusterMetrics": {"totalMB": megabytes, "totalVirtualCores": vcores}})


class FakeRm:
    """One ResourceManager. Its replies may be changed at any time; without one it says 404."""

    def __init__(self, replies: Mapping[str, Reply] | None = None) -> None:
        self.replies: dict[str, Reply] = {INFO: info(), **(replies or {})}
        self.asked: list[Asked] = []
        self.closing = Event()
        handler = type("Handler", (_Handler,), {"manager": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        self._thread = Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def paths(self) -> list[str]:
        return [one.path for one in self.asked]

    def stand_by(self, location: str = "") -> None:
        """It answers as one that stands by, and knows where the active one is if `location` says so."""
        page = Reply(b"This is standby RM. The redirect url is: somewhere\n", 307 if location else 200)
        headers = {"Content-Type": "text/plain"} | ({"Location": location} if location else {})
        away = Reply(page.body, page.status, headers)
        self.replies = {INFO: info("STANDBY"), SCHEDULER: away, METRICS: away, APPS: away}

    def close(self) -> None:
        """Nobody answers there any more."""
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if not self.closing.is_set():
            self.close()


class _Handler(BaseHTTPRequestHandler):
    manager: FakeRm
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        path, _, query = self.path.partition("?")
        self.manager.asked.append(Asked(path, query, self.headers))
        found = self.manager.replies.get(path, Reply(status=404))
        if found.silent:
            self.manager.closing.wait()
            return
        self.send_response(found.status)
        for name, value in {"Content-Type": "application/json", **found.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(found.length or len(found.body)))
        self.end_headers()
        self.wfile.write(found.body)
        if found.length is not None:
            self.close_connection = True
        while found.drips and not self.manager.closing.wait(DRIP_SECONDS):
            self.wfile.write(b" ")
            self.wfile.flush()

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            self.close_connection = True  # the other side has had enough

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Say nothing."""


def request(
    *addresses: str, seconds: float = 20, name: str = "c1", **config: object
) -> ExternalResourceRequest:
    """A question to the cluster at these addresses."""
    record = ProviderRecord("yarn", name, {"addresses": list(addresses), **config})
    return ExternalResourceRequest(YarnProvider.parser.parse(record), seconds)
