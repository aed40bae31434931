"""A moment by which everything is over, and the end of what goes on beyond it."""

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Timer
from time import monotonic


class Deadline:
    """So many seconds from now, for all that is done within them."""

    def __init__(self, seconds: float, clock: Callable[[], float] = monotonic) -> None:
        self.seconds = seconds
        self._clock = clock
        self._end = clock() + seconds

    @property
    def seconds_left(self) -> float:
        """Never less than nothing."""
        return max(0.0, self._end - self._clock())

    @property
    def passed(self) -> bool:
        return self.seconds_left == 0.0

    def share(self, parts: int) -> "Deadline":
        """An earlier one: a fair part of what is left."""
        return Deadline(self.seconds_left / parts, self._clock)

    @contextmanager
    def ending(self, end: Callable[[], None]) -> Iterator[None]:
        """Call `end` if the time is over before the block is. It is not called any more after the block."""
        timer = Timer(self.seconds_left, end)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()


def cut(line: socket.socket) -> None:
    """End a connection from this side: who reads from it reads its end."""
    with suppress(OSError):  # the other side was quicker
        # Not an SSLSocket's own, which takes the encryption away from under the one that reads.
        socket.socket.shutdown(line, socket.SHUT_RDWR)
