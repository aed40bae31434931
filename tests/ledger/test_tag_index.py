"""Applications are found by the tags that they have now, whatever tags they had before."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from rm_service.domain import operations as op
from rm_service.domain.clients import Termination
from rm_service.ledger.ledger import Ledger
from tests.client_words import RM, adding, asking, booking, creating_node, releasing, updating_node
from tests.ledger.telling import check_books, say


@pytest.fixture
def ledger(ledger: Ledger) -> Iterator[Ledger]:
    """With two nodes of 10 and one application; afterwards the audit finds every tag in its place."""
    say(ledger, creating_node("n1"), creating_node("n2"), adding())
    yield ledger
    check_books(ledger, RM)


def tagged(operation: op.Ask, **tags: str) -> op.Ask:
    return replace(operation, tags={**operation.tags, **tags}, request={**operation.request, "tags": tags})


def test_an_ask_that_is_reported_on_another_node_than_it_required(ledger: Ledger) -> None:
    say(ledger, asking("big", memory=10, node="n1"), asking("k", memory=3, node="n1"))
    say(ledger, booking("k", "n2", memory=3, anonymous=True))


def test_an_ask_that_is_reported_without_a_tag_of_its_own(ledger: Ledger) -> None:
    say(ledger, tagged(asking("k", memory=50), x="1", y="2"))
    say(ledger, booking("k", "n2", memory=3, anonymous=True))


def test_one_that_loses_a_tag_and_ends_in_the_same_batch(ledger: Ledger) -> None:
    say(ledger, tagged(asking("k", memory=50), x="1"))
    say(ledger, booking("k", "n2", memory=3, anonymous=True), releasing("k"))


def test_one_that_comes_and_changes_in_one_batch(ledger: Ledger) -> None:
    say(
        ledger,
        tagged(asking("k", memory=50), x="1"),
        booking("k", "n2", memory=3, anonymous=True),
        tagged(asking("l", memory=50), x="1"),
        tagged(asking("l", memory=50), x="2"),
    )


def test_a_change_that_is_taken_back_with_its_group(ledger: Ledger) -> None:
    say(ledger, tagged(asking("k", memory=50), x="1"))
    say(ledger, booking("k", "n2", memory=3, anonymous=True), booking("l", "n9"), atomic=True)


def test_what_could_not_be_started_and_goes_elsewhere(ledger: Ledger) -> None:
    say(ledger, booking("k", "n1", memory=3), updating_node("n1", ready=False))
    say(ledger, releasing("k", termination=Termination.SCHEDULING_FAILED_ON_RM))
