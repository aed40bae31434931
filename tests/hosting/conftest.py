"""The HTTP server, seen from the other end of a socket."""

from collections.abc import Iterator

import pytest

from rm_service.hosting.server import HttpServer
from tests.hosting.wire import Connect, Desk, Wire, serving


@pytest.fixture
def desk() -> Iterator[Desk]:
    desk = Desk()
    yield desk
    desk.go_on.set()


@pytest.fixture
def connect() -> Iterator[Connect]:
    wires: list[Wire] = []

    def open_wire(server: HttpServer) -> Wire:
        wires.append(Wire(server))
        return wires[-1]

    yield open_wire
    for wire in wires:
        wire.close()


@pytest.fixture
def server(desk: Desk) -> Iterator[HttpServer]:
    with serving(desk, threads=4, max_body=1000) as server:
        yield server
