"""Who asks, and what is answered when nothing can be: tokens, a database that is away, a defect."""

from collections.abc import Iterator

import pytest
from sqlalchemy.exc import OperationalError

from rm_service.facades.kubernetes.failures import status_of
from rm_service.ledger.errors import LedgerClosedError, LedgerUnavailableError, OutcomeUnknownError
from rm_service.ledger.ledger import Ledger
from tests.facades.kubernetes.served import CLASSES, TOKEN, Served, class_document


@pytest.fixture
def guarded(own_ledger: Ledger) -> Iterator[Served]:
    with Served(own_ledger, needs_token=True) as served:
        yield served


@pytest.mark.parametrize("path", ["/api", "/apis", "/version", "/openapi/v3", CLASSES, f"{CLASSES}?watch=1"])
def test_without_a_token_nothing_is_told(guarded: Served, path: str) -> None:
    reply = guarded.ask("GET", path, status=401)
    assert (reply.document["kind"], reply.document["reason"]) == ("Status", "Unauthorized")
    assert reply.headers["www-authenticate"].startswith("Bearer")
    assert guarded.refused("GET", path, Authorization="Bearer another")["code"] == 401


def test_with_a_token_in_force_all_is_as_ever(guarded: Served) -> None:
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    guarded.ask("POST", CLASSES, class_document("a"), headers=bearer, status=201)
    assert guarded.ask("GET", CLASSES, headers=bearer, status=200).document["items"]


@pytest.mark.parametrize(
    ("error", "code", "reason"),
    [
        (LedgerUnavailableError("gone", 7), 503, "ServiceUnavailable"),
        (OutcomeUnknownError(), 503, "ServiceUnavailable"),
        (LedgerClosedError(), 503, "ServiceUnavailable"),
        (OperationalError("SELECT", {}, Exception("away")), 503, "ServiceUnavailable"),
        (KeyError("a defect"), 500, "InternalError"),
    ],
)
def test_what_is_not_the_clients_fault(error: Exception, code: int, reason: str) -> None:
    status = status_of(error, CLASSES)
    assert (status.code, status.reason) == (code, reason)
    assert "a defect" not in status.message or reason == "InternalError"
    if code == 503:
        seconds = 7 if isinstance(error, LedgerUnavailableError) else 1
        assert status.headers["Retry-After"] == str(seconds)
        assert status.document()["details"] == {"retryAfterSeconds": seconds}


def test_a_database_that_is_away_is_said_so(served: Served) -> None:
    served.classes.faults.append(LedgerUnavailableError("gone"))
    assert served.refused("GET", CLASSES)["reason"] == "ServiceUnavailable"
    served.classes.faults.append(RuntimeError("a defect"))
    assert served.refused("GET", CLASSES)["reason"] == "InternalError"
    served.get()
