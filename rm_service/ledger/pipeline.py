"""The writer's session on PostgreSQL: statements go out without waiting for the answers to those before.

It speaks to libpq through psycopg's `pq`, because psycopg's own cursors and pipelines take longer than the
statements of a small turn do (docs/decisions/0017-straight-to-libpq.md).
"""

import re
import select
from collections import deque
from collections.abc import Sequence
from itertools import count
from typing import Any

import psycopg
from psycopg.adapt import Transformer
from psycopg.errors import error_from_result
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult

_FAILED = (ExecStatus.FATAL_ERROR, ExecStatus.PIPELINE_ABORTED)


class Answer:
    """The rows that a statement answers. Fetching waits for all that was sent, and raises what went wrong."""

    def __init__(self, pipeline: "Pipeline") -> None:
        self._pipeline = pipeline
        self.rows: list[Any] | None = None

    def fetchall(self) -> list[Any]:
        if self.rows is None:
            self._pipeline.wait()
        return self.rows or []

    def fetchone(self) -> Any:  # noqa: ANN401 - a row is whatever the statement selects
        rows = self.fetchall()
        return rows[0] if rows else None


class Pipeline:
    """One session's statements; each is prepared when it is sent first.

    Their texts have `%s` for parameters, of types that the statement shows, and no other per cent sign.
    """

    def __init__(self, driver: "psycopg.Connection[Any]") -> None:
        self._session = driver.pgconn
        self._rows = Transformer(driver)
        self._prepared: dict[str, bytes] = {}
        self._sent: deque[Answer | None] = deque()
        """Whose answers are still to come, in their order; None where nobody wants it."""
        self._poll = select.poll()

    def execute(self, text: str, parameters: Sequence[object] = ()) -> Answer:
        """Send a statement; the first one begins a transaction."""
        if not self._sent:
            self._session.enter_pipeline_mode()
            if self._session.transaction_status == TransactionStatus.IDLE:
                self._send("BEGIN", (), None)
        answer = Answer(self)
        self._send(text, parameters, answer)
        return answer

    def commit(self) -> None:
        """Commit after all that was sent; returns when it is durable."""
        self.execute("COMMIT")
        self.wait()

    def wait(self) -> None:
        """Until everything that was sent is done. Raises the first error; what came after it was not done."""
        if not self._sent:
            return
        self._session.pipeline_sync()
        error: psycopg.Error | None = None
        while self._sent:
            answer, result = self._sent.popleft(), self._next_result()
            if result.status in _FAILED:
                error = error or error_from_result(result)
            elif answer is not None:
                self._rows.set_pgresult(result)
                answer.rows = self._rows.load_rows(0, result.ntuples, tuple)
            self._end_of_result()
        self._next_result()  # that of the synchronisation
        self._session.exit_pipeline_mode()
        if error is not None:
            raise error

    def _send(self, text: str, parameters: Sequence[object], answer: Answer | None) -> None:
        name = self._prepared.get(text)
        if name is None:
            name = self._prepared[text] = f"turn_{len(self._prepared)}".encode()
            numbers = count(1)
            numbered = re.sub("%s", lambda _: f"${next(numbers)}", text)
            self._session.send_prepare(name, numbered.encode())
            self._sent.append(None)
        self._session.send_query_prepared(name, [_bound(each) for each in parameters])
        self._sent.append(answer)

    def _next_result(self) -> PGresult:
        """The next one, without holding up other threads and reading while there is something to be sent."""
        session = self._session
        unsent = session.flush()
        while session.is_busy() or unsent:
            self._poll.register(session.socket, select.POLLIN | (select.POLLOUT if unsent else 0))
            self._poll.poll()
            session.consume_input()
            unsent = session.flush()
        result = session.get_result()
        if result is None:
            raise psycopg.OperationalError("the connection was lost")
        return result

    def _end_of_result(self) -> None:
        """Each statement's only result is followed by nothing."""
        while self._session.is_busy():
            self._poll.poll()
            self._session.consume_input()
        self._session.get_result()


def _bound(value: object) -> bytes | None:
    return None if value is None else str(value).encode()
