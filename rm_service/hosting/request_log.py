"""What became of each request, whichever façade answered it: for the metrics and for the request log."""

import logging
from collections.abc import Callable

import structlog

SLOW_SECONDS = 1.0
NO_ROUTE = "(none)"
"""The route of a request that no row of a façade's table answers."""

Observe = Callable[[str, str, int, float], object]
"""Told of each request: method, route, status, seconds."""

_log = structlog.get_logger(__name__)
_stdlib_log = logging.getLogger(__name__)


class RequestLog:
    """Tells of requests. Every method may be called from any thread."""

    def __init__(self, observe: Observe | None = None) -> None:
        self._observe = observe

    def answered(
        self, *, method: str, path: str, route: str, status: int, seconds: float, caller: str
    ) -> None:
        """One request was answered; a stream is when it opens.

        `path` is what was asked, `route` the row of the table: only that one is a label of the metrics.
        """
        if self._observe is not None:
            self._observe(method, route, status, seconds)
        level = _level(status, seconds)
        if _stdlib_log.isEnabledFor(level):
            milliseconds = round(seconds * 1000, 2)
            _log.log(
                level,
                "request",
                method=method,
                path=path,
                status=status,
                milliseconds=milliseconds,
                caller=caller,
            )

    def stream_ended(self, *, path: str, seconds: float, caller: str) -> None:
        """A stream has ended, `seconds` after it was asked for. The metrics know how many are open."""
        if _stdlib_log.isEnabledFor(logging.DEBUG):
            _log.debug("stream_ended", path=path, seconds=round(seconds, 3), caller=caller)


def _level(status: int, seconds: float) -> int:
    """The request log tells of all requests at `debug`; of slow ones, and of those that we failed, above."""
    if status >= 500:
        return logging.WARNING
    return logging.INFO if seconds >= SLOW_SECONDS else logging.DEBUG
