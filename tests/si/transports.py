"""The two ways to the scheduler: gRPC, and its HTTP twin. Bodies are JSON in the dialect's field names."""

import contextlib
import http.client
import json
import queue
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from typing import Protocol

import grpc

from tests.si.dialects import Dialect
from tests.si.wire import Json, Wire, wire

SECONDS = 30.0
UNLIMITED = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]

Receive = Callable[[str, Json], None]
"""Called with a method and a response that came on it."""
Ended = Callable[[str, str, str], None]
"""Called when a stream has ended: its method, the status' name, the details."""


class RefusedError(Exception):
    """A request was refused: a gRPC status' name, or an HTTP status with the problem's code."""

    def __init__(self, status: str, detail: str) -> None:
        self.status = status
        self.detail = detail
        super().__init__(f"{status}: {detail}")


class Transport(Protocol):
    """A connection of one RM."""

    reading: threading.Event
    """Cleared: what arrives is left unread, after one message at the most."""

    def register(self, body: Json) -> None:
        """Raises RefusedError."""

    def open(self, method: str, metadata: Mapping[str, str]) -> None:
        """Begin to listen to the answers that belong to a method."""

    def send(self, method: str, body: Json) -> None:
        """One request; over HTTP it returns when the service has answered, and may raise RefusedError."""

    def close(self) -> None: ...


class Grpc:
    """The real thing: a stream for each method, read by a thread each."""

    def __init__(self, address: str, dialect: Dialect, receive: Receive, ended: Ended) -> None:
        self.reading = threading.Event()
        self.reading.set()
        self._dialect = dialect
        self._wire: Wire = wire(dialect.name)
        self._receive = receive
        self._ended = ended
        self._channel = grpc.insecure_channel(address, [*UNLIMITED, ("grpc.enable_http_proxy", 0)])
        self._requests: dict[str, queue.SimpleQueue[bytes | None]] = {}
        self._calls: list[grpc.Call] = []
        self._threads: list[threading.Thread] = []

    def register(self, body: Json) -> None:
        call = self._channel.unary_unary("/si.v1.Scheduler/RegisterResourceManager", _as_is, _as_is)
        request = self._wire.encode("RegisterResourceManagerRequest", body)
        try:
            answer = call(request, timeout=SECONDS, wait_for_ready=True)
        except grpc.RpcError as error:
            raise RefusedError(error.code().name, error.details() or "") from error
        assert self._wire.decode("RegisterResourceManagerResponse", answer) == {}

    def open(self, method: str, metadata: Mapping[str, str]) -> None:
        requests: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._requests[method] = requests
        call = self._channel.stream_stream(f"/si.v1.Scheduler/{method}", _as_is, _as_is)(
            iter(requests.get, None), metadata=tuple(metadata.items()), wait_for_ready=True
        )
        self._calls.append(call)
        thread = threading.Thread(target=self._read, args=(method, call), daemon=True, name=f"shim-{method}")
        self._threads.append(thread)
        thread.start()

    def send(self, method: str, body: Json) -> None:
        self.send_bytes(method, self._wire.encode(self._dialect.methods[method].request, body))

    def send_bytes(self, method: str, data: bytes) -> None:
        """Whatever it is."""
        self._requests[method].put(data)

    def half_close(self, method: str) -> None:
        """Say that nothing more will be sent on this stream."""
        self._requests[method].put(None)

    def close(self) -> None:
        self.reading.set()
        for requests in self._requests.values():
            requests.put(None)
        for call in self._calls:
            call.cancel()  # type: ignore[no-untyped-call]
        self._channel.close()
        for thread in self._threads:
            thread.join(SECONDS)
            assert not thread.is_alive(), f"{thread.name} does not end"

    def _read(self, method: str, call: Iterator[bytes]) -> None:
        response = self._dialect.methods[method].response
        try:
            for data in call:
                self._receive(method, self._wire.decode(response, data))
                self.reading.wait()
        except grpc.RpcError as error:
            self._ended(method, error.code().name, error.details() or "")
        else:
            self._ended(method, "OK", "")


class Twin:
    """The HTTP twin: a POST for each request, one stream of lines for all responses."""

    def __init__(self, port: int, dialect: Dialect, rm_id: str, receive: Receive, ended: Ended) -> None:
        self.reading = threading.Event()
        self.reading.set()
        self._port = port
        self._rm_id = rm_id
        self._methods = {method.response: name for name, method in dialect.methods.items()}
        self._receive = receive
        self._ended = ended
        self._socket: socket.socket | None = None
        self._closing = contextlib.ExitStack()
        self._thread: threading.Thread | None = None

    def register(self, body: Json) -> None:
        self.send("RegisterResourceManager", body)

    def open(self, method: str, metadata: Mapping[str, str]) -> None:
        if self._thread is not None:
            return  # one stream carries the responses of every method
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=SECONDS)
        connection.connect()
        self._socket = connection.sock
        query = "".join(f"?after={row}" for name, row in metadata.items() if name == "rm-after")
        connection.request("GET", f"/si/v1/responses/{self._rm_id}{query}")
        response = connection.getresponse()
        self._closing.callback(connection.close)
        self._closing.callback(response.close)
        if response.status != 200:
            raise _refused(response.status, response.read())
        self._thread = threading.Thread(target=self._read, args=(response,), daemon=True, name="shim-twin")
        self._thread.start()

    def send(self, method: str, body: Json) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=SECONDS)
        headers = {"Content-Type": "application/json"}
        with contextlib.closing(connection):
            try:
                connection.request("POST", f"/si/v1/{method}", json.dumps(body), headers)
                response = connection.getresponse()
                content = response.read()
            except (OSError, http.client.HTTPException) as error:
                raise RefusedError("no answer", repr(error)) from error
        if response.status != 200:
            raise _refused(response.status, content)
        assert json.loads(content) == {}, content

    def close(self) -> None:
        self.reading.set()
        if self._socket is not None:
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)
        if self._thread is not None:
            self._thread.join(SECONDS)
            assert not self._thread.is_alive(), "the reader does not end"
        self._closing.close()

    def _read(self, response: http.client.HTTPResponse) -> None:
        try:
            for line in response:
                if line.strip():
                    [(name, body)] = json.loads(line).items()
                    self._receive(self._methods[name], body)
                    self.reading.wait()
        except (OSError, ValueError, http.client.HTTPException) as error:
            self._ended("responses", "broken", repr(error))
        else:
            self._ended("responses", "OK", "")


def _refused(status: int, content: bytes) -> RefusedError:
    problem = json.loads(content)
    return RefusedError(f"{status} {problem['code']}", json.dumps(problem))


def _as_is(data: bytes) -> bytes:
    return data
