"""Questions to a ledger with many live applications, and the one operation that must look at all of them."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from sqlalchemy import text

from benchmarks import traffic
from benchmarks.flight import WARM_UP, Flight
from rm_service.domain import operations as op
from rm_service.domain.outcomes import Done
from rm_service.ledger.due import due_statement, read_due
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.usage import usage, usage_of_applications

CALLERS = 8

NEW_LIMIT = {"user": "*", "queue": "*"}
"""No rule names these keys together: a limit on them makes labels that every application is charged to."""


def usage_by_user(ledger: Ledger, users: int) -> float:
    """Milliseconds of one usage question that is answered for every user."""
    book = ledger.book()
    begun = time.perf_counter()
    with ledger.readers.connect() as connection:
        answer = usage(connection, book, ["user"])
    milliseconds = (time.perf_counter() - begun) * 1e3
    assert len(answer.rows) == users, answer
    return milliseconds


def usage_of_live(ledger: Ledger) -> float:
    """Milliseconds of the same question, answered by summing over the live applications."""
    book = ledger.book()
    begun = time.perf_counter()
    with ledger.readers.connect() as connection:
        usage_of_applications(connection, book, ["user"])
    return (time.perf_counter() - begun) * 1e3


def pause_of_a_limit(ledger: Ledger) -> tuple[float, float]:
    """Milliseconds that the new limit took, and that the unluckiest of eight callers waited."""
    flight = Flight(ledger, [traffic.grants(traffic.HOT) for _ in range(CALLERS)])
    with flight.flying():
        time.sleep(WARM_UP)
        begun = time.perf_counter()
        outcome = ledger.submit_whole(op.SetLimit(NEW_LIMIT, {"memory": traffic.PLENTY}))
        duration = (time.perf_counter() - begun) * 1e3
        assert isinstance(outcome, Done), outcome
    return duration, max(flight.latencies)


def empty_sweep(ledger: Ledger) -> float:
    """Milliseconds of one look at what is due, when nothing is."""
    begun = time.perf_counter()
    with ledger.readers.connect() as connection:
        due = read_due(connection)
    milliseconds = (time.perf_counter() - begun) * 1e3
    assert not any((due.applications, due.nodes, due.engines, due.stranded, due.woken)), due
    return milliseconds


@dataclass(frozen=True, slots=True)
class Plan:
    """How PostgreSQL carried a statement out."""

    pages: int
    """Pages of 8 KiB that it touched."""
    scans: list[str]
    """Each scan of a table, with the index that it used."""


def sweep_plan(ledger: Ledger) -> Plan:
    """How the look at what is due was carried out."""
    with ledger.readers.connect() as connection:
        connection.execute(text("SET LOCAL enable_seqscan = off"))
        explain = f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {due_statement('postgresql')}"
        root: dict[str, Any] = connection.execute(text(explain)).scalar_one()[0]["Plan"]
    # A scan that was never begun, because the one before it found nothing, says 0 loops.
    scans = [node for node in _nodes(root) if "Relation Name" in node and node["Actual Loops"]]
    return Plan(
        root["Shared Hit Blocks"] + root["Shared Read Blocks"],
        [f"{node['Relation Name']} by {node.get('Index Name', 'reading it whole')}" for node in scans],
    )


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)
