"""One place of an external manager, in short forms: what is seen of it, what is asked for there."""

from collections.abc import Mapping
from dataclasses import replace

from rm_service.domain import operations as op
from rm_service.domain.application import Application
from rm_service.domain.outcomes import Outcome
from tests.domain.pure_ledger import PureLedger, refusal

HERE = {"yarnCluster": "c1", "yarnQueue": "root.a"}
MEMORY = "yarn.memory"


def looking(
    observed: int = 0,
    shown: Mapping[str, int] | None = None,
    *,
    total: int | None = 100,
    closed: str | None = None,
    age: int = 0,
    stale: int | None = None,
    ignored: bool = False,
    looked: bool = True,
    provider: str = "yarn/c1",
    manager: str = "",
) -> op.Observe:
    return op.Observe(
        HERE,
        provider,
        None if total is None else {MEMORY: total},
        {MEMORY: observed},
        closed=closed,
        shown={name: {MEMORY: amount} for name, amount in (shown or {}).items()},
        age=age * 1_000_000,
        stale_seconds=stale,
        ignored_when_stale=ignored,
        looked=looked,
        manager=manager,
    )


def glancing(observed: int, age: int = 0) -> op.Observe:
    """The use alone, as somebody who asks brings it along."""
    return replace(looking(observed, age=age), shown=None)


def unobserved(provider: str = "yarn/c1", manager: str = "") -> op.Observe:
    """Nobody has looked yet."""
    return looking(total=None, closed="unobserved", looked=False, provider=provider, manager=manager)


def asked(ledger: PureLedger, resource: dict[str, int], wait: int = 0) -> Outcome:
    return ledger.apply(resource, wait, 0, **HERE)


def promised(ledger: PureLedger, amount: int) -> Application:
    return ledger.granted({MEMORY: amount}, **HERE)


def left(ledger: PureLedger) -> int:
    return ledger.account(**HERE).left()[MEMORY]


def reason(ledger: PureLedger, amount: int = 1) -> str:
    return refusal(asked(ledger, {MEMORY: amount})).shortfalls[0].reason
