"""A stand-in for YARN: it answers as ResourceManagers do, about equal queues, at once or slowly."""

import json
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Lock, Thread
from typing import Any, Self

ROOT = "/ws/"
INFO, APPS = "/ws/v1/cluster/info", "/ws/v1/cluster/apps"
SCHEDULER, METRICS = "/ws/v1/cluster/scheduler", "/ws/v1/cluster/metrics"

PLENTY_MB, PLENTY_VCORES = 2**40, 2**50
"""More than any benchmark asks for, and within what an amount may be in bytes and milli-cores."""


class FakeYarn:
    """It answers on a port of 127.0.0.1 as long as it is entered; each answer takes `delay` seconds.

    It may stand for several clusters: any path may be put between its address and what is asked.
    """

    def __init__(self, queues: int = 1, applications: int = 0, delay: float = 0.0) -> None:
        """`applications` of somebody else, one for each of the first queues."""
        self.delay = delay
        self.answers = {path: json.dumps(each).encode() for path, each in _documents(queues, applications)}
        self.asked: Counter[str] = Counter()
        """How often each path was asked."""
        self.counting = Lock()
        self.closing = Event()
        self._server = _Server(("127.0.0.1", 0), type("Handler", (_Handler,), {"yarn": self}))
        self._thread = Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)
        self.address = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def queue(number: int) -> str:
    """The full name of one of the queues."""
    return f"root.q{number}"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


class _Handler(BaseHTTPRequestHandler):
    yarn: FakeYarn
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        path = ROOT + self.path.partition("?")[0].partition(ROOT)[2]
        with self.yarn.counting:
            self.yarn.asked[path] += 1
        if self.yarn.closing.wait(self.yarn.delay):
            self.close_connection = True
            return
        body = self.yarn.answers[path]
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def handle(self) -> None:
        try:
            super().handle()
        except OSError:
            self.close_connection = True  # the service has ended

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Say nothing."""


def _documents(queues: int, applications: int) -> list[tuple[str, Mapping[str, Any]]]:
    top = {
        "type": "capacityScheduler",
        "queueName": "root",
        "capacity": 100.0,
        "maxCapacity": 100.0,
        "queues": {"queue": [_queue(number) for number in range(queues)]},
    }
    return [
        (INFO, {"clusterInfo": {"haState": "ACTIVE", "state": "STARTED", "resourceManagerVersion": "3.4.2"}}),
        (METRICS, {"clusterMetrics": {"totalMB": PLENTY_MB, "totalVirtualCores": PLENTY_VCORES}}),
        (SCHEDULER, {"scheduler": {"schedulerInfo": top}}),
        (APPS, {"apps": {"app": [_application(number) for number in range(applications)]}}),
    ]


def _queue(number: int) -> Mapping[str, Any]:
    nothing = {"memory": 0, "vCores": 0}
    return {
        "type": "capacitySchedulerLeafQueueInfo",
        "queueName": queue(number).rpartition(".")[2],
        "queuePath": queue(number),
        "absoluteCapacity": 0.0,
        "absoluteMaxCapacity": 100.0,
        "state": "RUNNING",
        "resourcesUsed": nothing,
        "resources": {"resourceUsagesByPartition": [{"partitionName": "", "pending": nothing}]},
        "numApplications": 0,
        "numPendingApplications": 0,
        "maxApplications": 2**31 - 1,
    }


def _application(number: int) -> Mapping[str, Any]:
    return {
        "id": f"application_1700000000000_{number:06}",
        "user": "somebody",
        "name": "a job",
        "queue": queue(number),
        "state": "RUNNING",
        "applicationType": "SPARK",
        "applicationTags": "",
        "allocatedMB": 1024,
        "allocatedVCores": 1,
    }
