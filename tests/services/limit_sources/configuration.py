"""A configuration service that says what a test lays down for it."""

import json
from collections.abc import Mapping
from threading import Event, Lock
from types import TracebackType
from typing import Any

from rm_service.domain.tags import label_key
from tests.external_providers.loopback import LoopbackHandler, LoopbackServer

WAIT = 20.0
"""Longer than anything here takes; a test that waits so long has failed."""


class ConfigurationService(LoopbackServer):
    """Answers while it is entered. Its fields may be changed at any time."""

    def __init__(self) -> None:
        self.limits: dict[str, dict[str, Any]] = {}
        self.asked: list[list[dict[str, str]]] = []
        """The combinations of each question that was answered with limits."""
        self.questions = 0
        """Those that came at all."""
        self.tokens: list[str | None] = []
        self.statuses: list[int] = []
        """Statuses of the next answers; 200 when none is left."""
        self.body: bytes | None = None
        """What it answers instead of limits."""
        self.raw: bytes | None = None
        """Sent instead of HTTP."""
        self.drips = False
        """Whether it sends a head, and then a blank now and then, without end."""
        self.held = Event()
        """Set when a question waits at the gate."""
        self.gate = Event()
        self.gate.set()
        self.lock = Lock()
        super().__init__(_Handler)
        self.url += "/limits"

    def says(self, tags: Mapping[str, str], total: Mapping[str, object], **more: object) -> None:
        """There is a limit of these tags."""
        self.limits[label_key(tags)] = {"tags": dict(tags), "total": dict(total), **more}

    def forgets(self, tags: Mapping[str, str]) -> None:
        del self.limits[label_key(tags)]

    def hold(self) -> None:
        """Answer nobody until `let_go`."""
        self.held.clear()
        self.gate.clear()

    def let_go(self) -> None:
        self.gate.set()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.gate.set()
        super().__exit__(kind, error, trace)


class _Handler(LoopbackHandler):
    desk: ConfigurationService

    def answer(self) -> None:
        desk = self.desk
        combinations = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["combinations"]
        with desk.lock:
            desk.questions += 1
            desk.tokens.append(self.headers["Authorization"])
            status = desk.statuses.pop(0) if desk.statuses else 200
        if not desk.gate.is_set():
            desk.held.set()
            assert desk.gate.wait(WAIT)
        if desk.raw is not None:
            self.wfile.write(desk.raw)
            return
        self.send_response(status)
        if status == 302:
            self.send_header("Location", desk.url)
        self.end_headers()
        if desk.drips:
            self.drip()
        if status == 200:
            self.wfile.write(desk.body or self._limits(combinations))

    def _limits(self, combinations: list[dict[str, str]]) -> bytes:
        with self.desk.lock:
            self.desk.asked.append(combinations)
        found = [self.desk.limits.get(label_key(tags)) for tags in combinations]
        return json.dumps({"limits": [limit for limit in found if limit is not None]}).encode()
