"""The Kubernetes façade behind a real HTTP server, on a real ledger, and a client that says what it means."""

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from socket import SHUT_RDWR
from typing import Any, Self

from flask import Flask

from rm_service.domain import operations as op
from rm_service.domain.outcomes import Done
from rm_service.facades.kubernetes.kubernetes_api import KubernetesApi
from rm_service.hosting.authentication import Authentication
from rm_service.hosting.request_log import RequestLog
from rm_service.hosting.server import HttpServer
from rm_service.ledger.ids import new_id
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.tailer import Tailer
from rm_service.services.resource_classes import ResourceClasses, Standings
from tests.facades.live import PATIENCE, until

CLASSES = "/apis/resourceclass.rm/v1alpha1/resourceclasses"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"
MAX_BODY = 2**20
TOKEN = "in-force"  # noqa: S105 - an example
Json = dict[str, Any]
Expression = tuple[str, str, list[str]]
GPU: Expression = ("Kind", "In", ["nvidia-gpu"])
BIG: Expression = ("memory", "GtEq", ["30G"])


def class_document(name: str, *expressions: Expression, **metadata: object) -> Json:
    """A class that selects by these expressions, by default any GPU."""
    expressed = [
        {"key": key, "operator": operator, "values": values}
        for key, operator, values in expressions or (GPU,)
    ]
    return {
        "apiVersion": "resourceclass.rm/v1alpha1",
        "kind": "ResourceClass",
        "metadata": {"name": name, **metadata},
        "spec": {"resourceSelector": [{"matchExpressions": expressed}]},
    }


class CountedClasses(ResourceClasses):
    """Resource classes that count how often all of them are read, and can be held or fail before they are."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger)
        object.__setattr__(self, "readings", [])
        object.__setattr__(self, "gate", threading.Event())
        object.__setattr__(self, "faults", [])
        self.gate.set()

    readings: list[int]
    gate: threading.Event
    faults: list[Exception]
    """Each is raised once, instead of a reading."""

    def standings(self) -> Standings:
        self.readings.append(1)
        assert self.gate.wait(PATIENCE)
        if self.faults:
            raise self.faults.pop(0)
        return super().standings()


@dataclass(frozen=True)
class Reply:
    status: int
    document: Any
    headers: Mapping[str, str]
    warnings: tuple[str, ...] = ()


@dataclass
class Served:
    """Entered, it is served; `requests` is what the metrics are told."""

    ledger: Ledger
    needs_token: bool = False
    keep_alive_seconds: float = 15.0
    requests: list[tuple[str, str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.tailer = Tailer(self.ledger)
        self.classes = CountedClasses(self.ledger)
        authentication = Authentication(self.needs_token, {TOKEN: "tester"}.get)
        self.api = KubernetesApi(
            self.classes,
            self.tailer,
            authentication,
            RequestLog(lambda method, route, status, _: self.requests.append((method, route, status))),
            max_body=MAX_BODY,
            least_seconds=0.0,
        )
        self.server = HttpServer(
            Flask("elsewhere"),
            bind="127.0.0.1:0",
            threads=8,
            streams=[self.api.route],
            max_body=MAX_BODY,
            keep_alive_seconds=self.keep_alive_seconds,
        )

    def __enter__(self) -> Self:
        self.tailer.start()
        self.api.start()
        self.server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.classes.gate.set()
        self.server.stop(grace=1.0)
        self.api.stop()
        self.tailer.stop()

    def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        headers: Mapping[str, str] | None = None,
        status: int | None = None,
    ) -> Reply:
        """The answer, which must have this status; a body that is no text is sent as JSON."""
        sent = body if isinstance(body, str | bytes | None) else json.dumps(body)
        named = {"Content-Type": "application/json", **(headers or {})}
        with closing(HTTPConnection(*self.server.address, timeout=PATIENCE)) as connection:
            connection.request(method, path, sent, named)
            response = connection.getresponse()
            content = response.read()
            found = {name.lower(): value for name, value in response.getheaders()}
            warnings = tuple(response.headers.get_all("Warning") or ())
        document = (
            json.loads(content) if found.get("content-type", "").startswith("application/json") else None
        )
        if status is not None:
            assert response.status == status, content.decode()
        return Reply(response.status, document, found, warnings)

    def get(self, path: str = CLASSES, *, accept: str = "application/json", status: int = 200) -> Any:
        return self.ask("GET", path, headers={"Accept": accept}, status=status).document

    def create(self, name: str, *expressions: Expression, **metadata: object) -> Json:
        document = class_document(name, *expressions, **metadata)
        created: Json = self.ask("POST", CLASSES, document, status=201).document
        return created

    def delete(self, name: str) -> Json:
        removed: Json = self.ask("DELETE", f"{CLASSES}/{name}", status=200).document
        return removed

    def refused(self, method: str, path: str, body: object = None, **headers: str) -> Json:
        """The Status of a refusal."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        reply = self.ask(method, path, body, headers=named)
        assert reply.status >= 400, reply
        assert reply.headers["content-type"] == "application/json"
        status: Json = reply.document
        assert (status["kind"], status["apiVersion"], status["status"]) == ("Status", "v1", "Failure")
        assert status["code"] == reply.status
        return status

    def version(self) -> int:
        """The number of the last event."""
        return int(self.get()["metadata"]["resourceVersion"])

    def node(self, name: str, **devices: tuple[int, Json]) -> None:
        """Register a node with so many devices of these attributes, by name."""
        listed = [
            {"name": device, "count": count, "attributes": attributes}
            for device, (count, attributes) in devices.items()
        ]
        self.submit(op.RegisterNode(name, "LoadInstance", {"memory": 1000}, devices=listed))

    def grant(self, **classes: int) -> str:
        """Grant an application these classes, in thousandths; `a_b` is the class `a.b`. Its id."""
        named = tuple((name.replace("_", "."), milli) for name, milli in classes.items())
        done = self.submit(
            op.Apply(new_id(), {"user": "alice"}, {"memory": 1}, placement=op.Placement(classes=named))
        )
        assert done.application is not None
        return done.application.id

    def release(self, application: str) -> None:
        self.submit(op.Release(application))

    def submit(self, operation: Any) -> Done:
        (outcome,) = self.ledger.submit([operation])
        assert isinstance(outcome, Done), outcome
        return outcome

    @contextmanager
    def held_reading(self, cause: Callable[[], object]) -> Iterator[None]:
        """A reading of all classes begins because of `cause`, and sees what happens within the block."""
        before = len(self.classes.readings)
        self.classes.gate.clear()
        cause()
        until(lambda: len(self.classes.readings) > before)
        yield
        self.classes.gate.set()

    def idle_events(self, count: int) -> None:
        """So many events that no class has anything to do with."""
        self.ledger.submit([op.Apply(new_id(), {"user": "many"}, {"memory": 1}) for _ in range(count)])


class Watch:
    """One open watch."""

    def __init__(self, served: Served, query: str = "", *, accept: str = "application/json") -> None:
        self._connection = HTTPConnection(*served.server.address, timeout=PATIENCE)
        self._connection.connect()
        self._socket = self._connection.sock
        joint = "&" if query else ""
        path = f"{CLASSES}?watch=1{joint}{query}"
        self._connection.request("GET", path, headers={"Accept": accept})
        self._response = self._connection.getresponse()
        assert self._response.status == 200, self._response.read()
        assert self._response.headers["Content-Type"] == "application/json"

    def next(self) -> tuple[str, Json]:
        """The next event: its type and its object."""
        text = self._response.readline()
        assert text, "the watch has ended"
        event = json.loads(text)
        assert set(event) == {"type", "object"}
        return event["type"], event["object"]

    def told(self) -> tuple[str, str, str, str]:
        """The next event in short: its type, the class, what there is and what is held."""
        kind, document = self.next()
        status = document["status"]
        return kind, document["metadata"]["name"], status["allocatable"], status["requested"]

    def row(self) -> tuple[str, list[Any]]:
        """The next event of a watch of a table: its type and the cells of the row, without the age."""
        kind, document = self.next()
        (row,) = document["rows"]
        return kind, [cell for number, cell in enumerate(row["cells"]) if number != 4]

    def bookmark(self) -> Json:
        """The next event, which must say only how far it has come."""
        kind, document = self.next()
        assert kind == "BOOKMARK"
        return document

    def has_ended(self) -> bool:
        return self._response.readline() == b""

    def leave(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(SHUT_RDWR)
        self._response.close()
        self._connection.close()


OpenWatch = Callable[..., Watch]
