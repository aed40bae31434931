"""Questions to a ledger with many live applications, and the one operation that must look at all of them."""

import time

from benchmarks import traffic
from benchmarks.flight import WARM_UP, Flight
from rm_service.domain import operations as op
from rm_service.domain.outcomes import Done
from rm_service.ledger.ledger import Ledger

CALLERS = 8

NEW_LIMIT = {"user": "*", "queue": "*"}
"""No rule names these keys together: a limit on them makes labels that every application is charged to."""


def usage_by_user(ledger: Ledger, users: int) -> float:
    """Milliseconds of one usage question that is answered for every user."""
    raise NotImplementedError


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
