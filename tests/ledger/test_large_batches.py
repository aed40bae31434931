"""Batches of many megabytes: they take their time, and hang nobody."""

from concurrent.futures import Future

from rm_service.domain import operations as op
from rm_service.domain.outcomes import Done, Outcome
from rm_service.ledger.audit import audit
from rm_service.ledger.ids import new_id
from rm_service.ledger.ledger import Ledger

SOON = 60.0


def _large(count: int, size: int) -> list[op.DecidedOperation]:
    return [
        op.Apply(id=new_id(), tags={"user": "alice"}, resource={"memory": 1}, request={"said": "x" * size})
        for _ in range(count)
    ]


def test_a_batch_of_many_megabytes_is_committed_and_the_next_one_too(ledger: Ledger) -> None:
    futures: list[Future[list[Outcome]]] = [ledger.enqueue(_large(400, 50_000)) for _ in range(2)]
    futures.append(ledger.enqueue(_large(1, 10)))
    for future in futures:
        assert all(isinstance(outcome, Done) for outcome in future.result(SOON))
    assert audit(ledger.readers).consistent
