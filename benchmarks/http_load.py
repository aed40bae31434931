"""Load over HTTP from a process of its own: keep-alive connections, each asking again once it is answered.

It shares the machine with what it measures, so it does as little as it can: requests are bytes made
beforehand, and an answer is only searched for the mark that says it is the right one.
"""

import random
import selectors
import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field

from benchmarks.rounds import Load

Address = tuple[str, int]

RECEIVE = 262_144


class WrongAnswerError(AssertionError):
    """The service answered something else than the benchmark counts on."""

    def __init__(self, answer: bytes) -> None:
        super().__init__(answer[:1000].decode(errors="replace"))
        self.answer = answer


@dataclass(frozen=True, slots=True)
class Asked:
    """What to ask, and how a right answer is known: it holds `mark` so many `times`."""

    requests: Sequence[bytes]
    mark: bytes
    times: int = 1


def request(method: str, path: str, body: bytes = b"", **headers: str) -> bytes:
    """An HTTP request as bytes."""
    lines = [f"{method} {path} HTTP/1.1", "Host: benchmark"]
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


def load(address: Address, asked: Asked, connections: int, warm_up: float, seconds: float) -> Load:
    """Ask over so many connections at once; what was answered after the warm-up counts.

    Raises WrongAnswerError.
    """
    with selectors.DefaultSelector() as selector:
        asking = [_Connection(socket.create_connection(address), asked) for _ in range(connections)]
        for connection in asking:
            selector.register(connection.socket, selectors.EVENT_READ, connection)
            connection.ask()
        begin = time.perf_counter() + warm_up
        latencies, now = _answers(selector, begin, begin + seconds)
        for connection in asking:
            connection.socket.close()
    return Load(len(latencies) / (now - begin), sorted(latencies))


def _answers(selector: selectors.BaseSelector, begin: float, end: float) -> tuple[list[float], float]:
    latencies: list[float] = []
    now = time.perf_counter()
    while now < end:
        for key, _ in selector.select(timeout=end - now):
            connection: _Connection = key.data
            if connection.receive():
                now = time.perf_counter()
                if now >= begin:
                    latencies.append((now - connection.asked_at) * 1e3)
                connection.ask()
        now = time.perf_counter()
    return latencies, now


@dataclass(slots=True)
class _Connection:
    socket: socket.socket
    asked: Asked
    asked_at: float = 0.0
    received: bytes = b""
    expected: int = 0
    """The length of the whole answer, once its head has told it."""
    _choose: random.Random = field(default_factory=random.Random)

    def __post_init__(self) -> None:
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self) -> None:
        """Send one of the requests."""
        self.received, self.expected = b"", 0
        requests = self.asked.requests
        self.asked_at = time.perf_counter()
        self.socket.sendall(requests[0] if len(requests) == 1 else self._choose.choice(requests))

    def receive(self) -> bool:
        """Take in what has come; whether the answer is whole."""
        part = self.socket.recv(RECEIVE)
        if not part:
            raise WrongAnswerError(self.received or b"the connection was closed")
        self.received += part
        if not self.expected:
            self.expected = _length(self.received)
        if not self.expected or len(self.received) < self.expected:
            return False
        if self.received.count(self.asked.mark) != self.asked.times:
            raise WrongAnswerError(self.received)
        return True


def _length(received: bytes) -> int:
    """The length of the answer with its head; 0 while the head is not complete."""
    head_end = received.find(b"\r\n\r\n")
    if head_end < 0:
        return 0
    head = received[:head_end].lower()
    _, found, rest = head.partition(b"content-length:")
    if not found:
        raise WrongAnswerError(received)
    return head_end + 4 + int(rest.split(b"\r\n", 1)[0])
