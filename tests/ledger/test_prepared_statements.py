"""On PostgreSQL the writer's prepared statements outlive whatever else its connection does."""

import pytest

from rm_service.domain import operations as op
from rm_service.domain.outcomes import Done
from rm_service.ledger.ledger import Ledger
from tests.ledger.asking import asking


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_question_that_changes_nothing_does_not_spoil_the_next_batch(ledger: Ledger) -> None:
    for number in range(10):  # more often than the driver lets a statement be without preparing it
        ledger.submit_whole(op.SetLimit({"user": f"user-{number}"}, {"memory": 5}))
    for _ in range(3):
        asked = asking({"user": "alice"}, {"memory": 1})
        assert isinstance(ledger.explain(asked), Done)
        assert isinstance(ledger.submit([asked])[0], Done)
