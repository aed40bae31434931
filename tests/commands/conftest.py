"""A service that answers what a test lays down for it, and a trace small enough to reckon by hand."""

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import click
import pytest
from click.testing import CliRunner, Result

NODE_HEADER = "sn,cpu_milli,memory_mib,gpu,model"
TASK_HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time"
)
NODES = """\
n-plain,8000,16384,0,
n-t4,8000,16384,2,T4
n-v100,8000,16384,4,V100
"""
# a fills the plain node, b the next one; c takes two cards of a V100; d finds no A10, e no eight cards.
# f comes in the second in which a goes, and so gets its place; g finds no 8 cores free; h has no end.
TASKS = """\
a,8000,1024,0,0,,LS,Running,0,50,
b,8000,1024,0,0,,LS,Running,10,90,
c,1000,1024,2,1000,A10|V100,BE,Running,20,80,
d,1000,1024,1,500,A10,BE,Pending,30,80,
e,1000,1024,8,1000,,BE,Pending,30,80,
f,8000,1024,0,0,,LS,Running,50,60,
g,8000,1024,0,0,,LS,Running,55,60,
h,500,1024,1,250,,,Running,90,,
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A folder with a trace: three nodes, eight tasks."""
    (tmp_path / "node_list.csv").write_text(f"{NODE_HEADER}\n{NODES}")
    (tmp_path / "pod_list.csv").write_text(f"{TASK_HEADER}\n{TASKS}")
    return tmp_path


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came."""

    method: str
    path: str
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: Any


@dataclass(slots=True)
class StubService:
    """Answers by method and path; a path with several answers gives one after another."""

    url: str = ""
    asked: list[Asked] = field(default_factory=list)
    answers: dict[str, deque[tuple[int, bytes, dict[str, str]]]] = field(default_factory=dict)

    def answer(
        self, request: str, document: object, status: int = 200, headers: Mapping[str, str] | None = None
    ) -> None:
        """Lay down an answer: `answer("GET /nodes", {...})`. Bytes go out as they are."""
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        kind = "application/json" if status < 300 else "application/problem+json"
        all_headers = {"Content-Type": kind, **(headers or {})}
        self.answers.setdefault(request, deque()).append((status, body, all_headers))

    def next_answer(self, request: str) -> tuple[int, bytes, dict[str, str]]:
        if request not in self.answers:
            return (
                404,
                b'{"code": "not_found", "detail": "no such path"}',
                {"Content-Type": "application/json"},
            )
        left = self.answers[request]
        return left.popleft() if len(left) > 1 else left[0]


@pytest.fixture
def service() -> Iterator[StubService]:
    """A stub of the service on a port of its own."""
    stub = StubService()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def respond(self) -> None:
            address = urlsplit(self.path)
            length = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(length)) if length else None
            path = address.path.removeprefix("/api/v1")
            stub.asked.append(
                Asked(self.command, path, parse_qs(address.query), dict(self.headers.items()), body)
            )
            status, answer, headers = stub.next_answer(f"{self.command} {path}")
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(answer)))
            self.end_headers()
            self.wfile.write(answer)

        do_GET = do_PUT = do_POST = do_DELETE = respond  # noqa: N815 - the base class' names

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class' name
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    stub.url = f"http://127.0.0.1:{server.server_port}"
    yield stub
    server.shutdown()
    server.server_close()
    thread.join()


Run = Callable[..., Result]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a command as a shell would, 80 columns wide; a defect in it fails the test."""
    monkeypatch.setenv("COLUMNS", "80")

    def invoke(command: click.Command, *arguments: str, **environment: str) -> Result:
        result = CliRunner().invoke(command, arguments, env=environment)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        return result

    return invoke


@pytest.fixture
def ask(run: Run, service: StubService) -> Run:
    """Run a command against the stub service."""

    def invoke(command: click.Command, *arguments: str, **environment: str) -> Result:
        return run(command, *arguments, RM_URL=service.url, **environment)

    return invoke
