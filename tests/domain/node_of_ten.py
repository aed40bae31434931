"""A resource manager with one node of 10 and one application."""

from collections.abc import Iterator
from contextlib import contextmanager

from tests.client_words import RM, adding, creating_node, partition_of
from tests.domain.client_ledger import ClientLedger, check_balances, check_members

HERE = {"partition": partition_of(RM)}


@contextmanager
def node_of_ten() -> Iterator[ClientLedger]:
    """Such a ledger; at the end everything must add up."""
    ledger = ClientLedger({f"partition={partition_of(RM)},queue=root.tiny": {"memory": 2, "apps": 1}})
    ledger.in_one_batch([creating_node(), adding()])
    yield ledger
    check_members(ledger)
    check_balances(ledger)


def left(ledger: ClientLedger, node: str = "n1") -> int:
    return ledger.account(**HERE, node=node).left()["memory"]
