"""A provider that does what a test lays down for it, and time that passes when the test says so."""

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import ClassVar

from marshmallow import Schema, fields

from external_providers.base import (
    SECRET,
    ExternalApplication,
    ExternalResourceProvider,
    ExternalResourceProviderParser,
    ExternalResourceRequest,
    Health,
    Identity,
    Place,
)
from rm_service.services.external.fetching import Clocks
from rm_service.services.external.plugins import Plugins
from rm_service.services.external.refresher import Refresher

IDENTITY = Identity("scripted", "scriptedCluster", "scriptedPlace", frozenset({"scripted.memory"}))
WAIT = 10.0
"""Longer than anything here takes; a test that waits so long has failed."""

Step = Exception | Callable[[], Sequence[Place]] | Sequence[Place]


class AccountSchema(Schema):
    user = fields.String(required=True)
    token = fields.String(metadata=SECRET)


class ScriptedSchema(Schema):
    url = fields.Url(schemes={"http", "https"}, require_tld=False, required=True)
    cluster = fields.String()
    password = fields.String(metadata=SECRET)
    headers = fields.Dict(keys=fields.String(), values=fields.String(metadata=SECRET))
    accounts = fields.List(fields.Nested(AccountSchema))
    admin = fields.Nested(AccountSchema)


def place(name: str = "root", *, total: int = 100, used: int = 10) -> Place:
    return Place(name, {"scripted.memory": total}, {"scripted.memory": used})


@dataclass
class Script:
    """What a provider answers, step after step; when no step is left, one good place."""

    steps: deque[Step] = field(default_factory=deque)
    asked: list[str] = field(default_factory=list)
    applications: Sequence[ExternalApplication] = ()
    health: Health | Exception = field(default_factory=lambda: Health(ok=True, detail="version 1"))


class Gate:
    """A step that waits until it is let through."""

    def __init__(self, then: Sequence[Place] | Exception = ()) -> None:
        self.reached = Event()
        self.opened = Event()
        self._then = then or [place()]

    def __call__(self) -> Sequence[Place]:
        self.reached.set()
        assert self.opened.wait(WAIT)
        if isinstance(self._then, Exception):
            raise self._then
        return self._then


class ScriptedProvider(ExternalResourceProvider):
    """Each record follows a script of its own, by its name."""

    identity: ClassVar[Identity] = IDENTITY
    parser: ClassVar[ExternalResourceProviderParser] = ExternalResourceProviderParser(
        IDENTITY, ScriptedSchema
    )

    def __init__(self) -> None:
        self.scripts: dict[str, Script] = {}
        self.requests: list[ExternalResourceRequest] = []
        self._lock = Lock()

    def script(self, name: str) -> Script:
        with self._lock:
            return self.scripts.setdefault(name, Script())

    def says(self, name: str, *steps: Step) -> None:
        self.script(name).steps.extend(steps)

    def applications(self, request: ExternalResourceRequest) -> Sequence[ExternalApplication]:
        script = self._asked(request, "applications")
        return script.applications

    def places(self, request: ExternalResourceRequest) -> Sequence[Place]:
        script = self._asked(request, "places")
        step: Step = script.steps.popleft() if script.steps else [place()]
        if isinstance(step, Exception):
            raise step
        return step() if callable(step) else step

    def health(self, request: ExternalResourceRequest) -> Health:
        health = self._asked(request, "health").health
        if isinstance(health, Exception):
            raise health
        return health

    def _asked(self, request: ExternalResourceRequest, what: str) -> Script:
        script = self.script(request.provider.name)
        script.asked.append(what)
        self.requests.append(request)
        return script


class FakeTime:
    """Passes only when somebody lets it: a pause takes as long as it says."""

    def __init__(self) -> None:
        self.seconds = 1000.0
        self.pauses: list[float] = []

    @property
    def clocks(self) -> Clocks:
        return Clocks(lambda: self.seconds, lambda: int(self.seconds * 1_000_000), self.pause)

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.seconds += seconds

    def passes(self, seconds: float) -> None:
        self.seconds += seconds


def plugins_with(*plugins: ExternalResourceProvider) -> Plugins:
    """These plugins, as if they were installed."""
    found = Plugins([])
    found._used.update({plugin.identify().type: plugin for plugin in plugins})
    return found


def call_ends(refresher: Refresher, name: str) -> None:
    """Wait for the call of this provider that runs now, if one does."""
    call = refresher._feeds["scripted", name].call
    assert call is None or call.ended.wait(WAIT)


def all_calls_end(refresher: Refresher) -> None:
    """Wait until none runs, except those that were given up: one that ends late may start the next one."""
    for feed in list(refresher._feeds.values()):
        while (call := feed.call) is not None:
            assert call.ended.wait(WAIT)


def tick(refresher: Refresher) -> None:
    """A tick, and all that it starts."""
    refresher.tick()
    all_calls_end(refresher)
