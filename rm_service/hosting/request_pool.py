"""A fixed number of threads on which an event loop runs what may block."""

import asyncio
import logging
import time
from collections.abc import Callable
from http import HTTPStatus
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from rm_service.hosting.answer import Answer, problem

log = logging.getLogger(__name__)

T = TypeVar("T")


class SaturatedError(Exception):
    """Every thread is busy and the queue before them is full; `accepted` requests run or wait."""

    def __init__(self, accepted: int) -> None:
        super().__init__(f"{accepted} requests are running or waiting")
        self.accepted = accepted


class RequestPool:
    """Runs jobs of one event loop; at most `threads + waiting` are accepted at a time."""

    def __init__(self, threads: int, waiting: int) -> None:
        self._bound = threads + waiting
        self._accepted = 0  # only the loop's thread changes it
        self._jobs: SimpleQueue[tuple[Callable[[], Any], asyncio.Future[Any]] | None] = SimpleQueue()
        self._threads = [Thread(target=self._work, name=f"http-{n}", daemon=True) for n in range(threads)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, patience: float) -> None:
        """Ends the threads once the queue is empty; one busy for `patience` seconds more is left behind."""
        for _ in self._threads:
            self._jobs.put(None)
        deadline = time.monotonic() + patience
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))

    async def run(self, job: Callable[[], T]) -> T | Answer:
        """What the job returns, or a 500 if it raises (the log has the reason). Called on the loop.

        Raises `SaturatedError` at once when the queue is full.
        """
        if self._accepted >= self._bound:
            raise SaturatedError(self._accepted)
        future: asyncio.Future[T | Answer] = asyncio.get_running_loop().create_future()
        self._accepted += 1
        self._jobs.put((job, future))
        return await future

    def _work(self) -> None:
        while (item := self._jobs.get()) is not None:
            job, future = item
            try:
                result = job()
            except BaseException:  # even SystemExit must not cost the pool a thread
                log.exception("a request handler failed")
                result = problem(HTTPStatus.INTERNAL_SERVER_ERROR, "internal", "The server's log says more.")
            try:
                future.get_loop().call_soon_threadsafe(self._settle, future, result)
            except RuntimeError:
                return  # the loop has ended with its grace: nobody waits for this any more

    def _settle(self, future: asyncio.Future[Any], result: object) -> None:
        self._accepted -= 1
        if not future.cancelled():
            future.set_result(result)
