"""An account: what one label has in total, what is protected, locked and used, and what is left."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from rm_service.domain.amounts import DEVICE, INT64_MAX, NOTHING, PORT, AmountOverflowError, Amounts, negative
from rm_service.domain.device_selection import Device
from rm_service.domain.label_rules import Kind, LabelRule
from rm_service.domain.limits import Limit
from rm_service.domain.tags import Tags

POOL_KEY = "@placement"
"""A label with this tag is no account but a queue: of those who wait for a node that its value selects."""
GATE_KEY = "@members"
"""Likewise, of the members of the application that its value names, which has to wait itself."""


STALE = "external_stale"
"""Why an external place takes nothing new when nobody has been able to look at it for too long."""


def only_queues(tags: Tags) -> bool:
    """Whether a label of these tags is a pool or a gate: it holds a queue and counts nothing."""
    return POOL_KEY in tags or GATE_KEY in tags


@dataclass(frozen=True, slots=True)
class Label:
    """A set of tags that is charged. `rule` is None for a pool and a gate, which only hold a queue."""

    id: int
    key: str
    tags: Tags
    rule: LabelRule | None

    @property
    def is_capacity(self) -> bool:
        return self.rule is not None and self.rule.kind is Kind.CAPACITY

    @property
    def is_external(self) -> bool:
        """Whether an external manager says what there is."""
        return self.rule is not None and self.rule.external is not None

    @property
    def is_pool(self) -> bool:
        return POOL_KEY in self.tags

    @property
    def partition(self) -> str:
        """The partition whose nodes it is about; the empty one are the ledger's own nodes."""
        return self.tags.get("partition", "")


@dataclass(frozen=True, slots=True)
class Observation:
    """What an external manager was last seen to have in a place, and how long that may be relied on."""

    provider: str
    """Type and name, `yarn/c1`."""
    at: int
    """When it was looked, microseconds UTC."""
    observed: Amounts
    """What is used there, by whomever."""
    stale_at: int | None = None
    """From when on nothing more is promised on the strength of it; None: however old it gets."""
    ignored_when_stale: bool = False
    """From then on the place is not looked at in judging, instead of refusing everything."""
    looked: bool = True
    """False: nobody has been able to look yet."""
    manager: str = ""
    """A mark of whom the provider asked: it may come to ask another."""
    ended: Sequence[tuple[int, Amounts]] = ()
    """What was given back here and may go on there, by the end of the second in which it was; the oldest
    first. It counts as others' use until there is a later look.
    """


@dataclass(slots=True)
class Balance:
    """The changing part of a label: one row, one writer."""

    label_id: int
    locked: dict[str, int]
    used: dict[str, int]
    applications: int = 0
    """How many applications hold something here."""
    total: Amounts | None = None
    """Capacity labels only; None while nothing is registered under the label."""
    protected: Amounts | None = None
    closed: str | None = None
    """Why a capacity label takes nothing new: `draining` or `lost`."""
    first_priority: int | None = None
    """With `first_seq` the rank of the first waiter; None when nobody waits."""
    first_seq: int | None = None
    wake: bool = False
    """Something was freed here while somebody waited: its queue is to be looked at."""
    seen: dict[str, int] = field(default_factory=dict)
    """External labels: of what is locked and used here, how much the external manager shows."""
    observation: Observation | None = None
    """External labels: the last look at the place."""
    devices: tuple[Device, ...] | None = None
    """Nodes: their devices, with what is held of each; None where none were registered."""


@dataclass(frozen=True, slots=True)
class Shortfall:
    """One label and dimension that is short, with every amount that led to it.

    `reason` is `short`, `waiters_ahead` (there is room, but somebody came first) or the word under which
    a capacity label is closed.
    """

    label: Tags
    dimension: str
    requested: int
    left: int
    total: int
    protected: int
    locked: int
    used: int
    reason: str = "short"
    others: int = 0
    """External labels: what is used there by others, and by what of ours has ended, as far as can be told."""


class Account:
    """A label together with its limit and its balance, as one batch works on it."""

    __slots__ = ("balance", "is_capacity", "label", "protected", "total")

    def __init__(self, label: Label, limit: Limit | None, balance: Balance) -> None:
        self.label = label
        self.balance = balance
        self.is_capacity = label.is_capacity
        self.total: Amounts | None
        """What there is: a capacity's registered total, a quota's limit; None when there is neither."""
        self.protected: Amounts
        """What must stay free when something is granted."""
        if self.is_capacity:
            self.total, self.protected = balance.total, balance.protected or NOTHING
        elif limit is not None:
            self.total, self.protected = limit.total, limit.protected
        else:
            self.total, self.protected = None, NOTHING

    def register(self, total: Amounts | None, protected: Amounts | None, closed: str | None) -> None:
        """Set what a capacity label has, and whether it takes anything new."""
        balance = self.balance
        balance.total, balance.protected, balance.closed = total, protected, closed
        self.total, self.protected = total, protected or NOTHING

    def others(self, dimension: str) -> int:
        """What is used of an external place and is not known to be ours, with what of ours may go on there.

        Never below 0: what is shown of ours may have ended before the use was read.
        """
        observation = self.balance.observation
        if observation is None:
            return 0
        used = max(0, observation.observed.get(dimension, 0) - self.balance.seen.get(dimension, 0))
        if not observation.ended:
            return used
        return used + sum([amounts.get(dimension, 0) for _, amounts in observation.ended])

    def closed_at(self, now: int) -> str | None:
        """The word under which it takes nothing new at this moment, if so."""
        balance, observation = self.balance, self.balance.observation
        if observation is None:
            return balance.closed
        stale = observation.stale_at is not None and now >= observation.stale_at
        if observation.ignored_when_stale and (stale or balance.total is None):
            return None
        return balance.closed or (STALE if stale else None)

    def is_ignored_at(self, now: int) -> bool:
        """Whether nothing is known of an external place, and its provider says that this is no obstacle."""
        observation = self.balance.observation
        if observation is None or not observation.ignored_when_stale:
            return False
        stale = observation.stale_at is not None and now >= observation.stale_at
        return stale or self.balance.total is None

    def charge(self, amounts: Amounts) -> Amounts:
        """The part of `amounts` that this label counts."""
        rule = self.label.rule
        return NOTHING if rule is None else rule.charge(amounts)

    def left(self) -> dict[str, int]:
        """total - protected - locked - used, and on an external label what others use, in each dimension that
        has a total; may be negative.
        """
        if self.total is None:
            return {}
        protected, locked, used = self.protected, self.balance.locked, self.balance.used
        return {
            dimension: amount
            - protected.get(dimension, 0)
            - locked.get(dimension, 0)
            - used.get(dimension, 0)
            - self.others(dimension)
            for dimension, amount in self.total.items()
        }

    def shortfalls(self, amounts: Amounts) -> list[Shortfall]:
        """Each dimension in which granting `amounts` would leave less than `protected`.

        In a quota a dimension without a limit is unlimited; on capacity a missing dimension is 0, and of each
        port there is one; in what counts applications it is unlimited. Only dimensions asked for with a
        positive amount are looked at.
        """
        found: list[Shortfall] = []
        total = self.total
        if total is None:
            return found
        locked, used, protected = self.balance.locked, self.balance.used, self.protected
        external = self.balance.observation is not None
        for dimension, amount in self.charge(amounts).items():
            limit = total.get(dimension)
            if limit is None:
                if self._is_unlimited(dimension):
                    continue
                limit = int(dimension.startswith(PORT))
            left = limit - protected.get(dimension, 0) - locked.get(dimension, 0) - used.get(dimension, 0)
            if external:
                left -= self.others(dimension)
            if left < amount and amount > 0:
                found.append(self.shortfall(dimension, amount))
        return found

    def passes_threshold(self, amounts: Amounts) -> bool:
        """Whether granting this takes more than the part of the total beyond which others go before."""
        rule, total = self.label.rule, self.total
        if rule is None or not rule.thresholds or total is None:
            return False
        charged, left = self.charge(amounts), self.left()
        for dimension, percentage in rule.thresholds:
            there_is = total.get(dimension)
            if there_is is not None and dimension in charged:
                taken = there_is - self.protected.get(dimension, 0) - left[dimension] + charged[dimension]
                if taken * 100 > there_is * percentage:
                    return True
        return False

    def exceeded_by(self, amounts: Amounts) -> bool:
        """Whether this would not fit if nothing were held here."""
        total, protected = self.total, self.protected
        if total is None:
            return False
        return any(
            amount > total.get(dimension, 0) - protected.get(dimension, 0)
            for dimension, amount in self.charge(amounts).items()
            if dimension in total or not (self._is_unlimited(dimension) or dimension.startswith(PORT))
        )

    def _is_unlimited(self, dimension: str) -> bool:
        """Whether there is any amount of a dimension that the total does not name."""
        rule = self.label.rule
        return not self.is_capacity or (rule is not None and rule.counts == dimension)

    def shortfall(self, dimension: str, requested: int, reason: str = "short") -> Shortfall:
        """One dimension of this label with every amount that led to its being short."""
        one = int(self.is_capacity and dimension.startswith(PORT))
        total = (self.total or NOTHING).get(dimension, one)
        protected = self.protected.get(dimension, 0)
        locked, used = self.balance.locked.get(dimension, 0), self.balance.used.get(dimension, 0)
        others = self.others(dimension)
        left = total - protected - locked - used - others
        return Shortfall(
            self.label.tags, dimension, requested, left, total, protected, locked, used, reason, others
        )

    def limits_devices(self) -> bool:
        """Whether it is a quota, and one on devices."""
        if self.is_capacity or self.total is None:
            return False
        return any(dimension.startswith(DEVICE) for dimension in self.total)

    def excess(self) -> dict[str, int]:
        """By how much more is locked and used than total - protected allows, where it is so.

        Of a device that a node does not have any more the total is 0.
        """
        found = {dimension: -left for dimension, left in self.left().items() if left < 0}
        if self.is_capacity and self.total is not None:
            for held in (self.balance.locked, self.balance.used):
                for dimension, amount in held.items():
                    if amount > 0 and dimension.startswith(DEVICE) and dimension not in self.total:
                        found[dimension] = found.get(dimension, 0) + amount
        return found

    def over_limit(self) -> bool:
        """Whether more is locked and used than total - protected allows."""
        return bool(self.excess())

    def post(self, locked: Amounts, used: Amounts, holders: int) -> None:
        """Add to the balance all or nothing; the label counts its part of the application's amounts.

        Raises AmountOverflowError, and then nothing was added.
        """
        balance = self.balance
        if locked:
            locked = self.charge(locked)
            _add(balance.locked, locked)
        if used:
            try:
                _add(balance.used, self.charge(used))
            except AmountOverflowError:
                _add(balance.locked, negative(locked))
                raise
        balance.applications += holders


def _add(balance: dict[str, int], amounts: Amounts) -> None:
    done: list[str] = []
    for dimension, amount in amounts.items():
        value = balance.get(dimension, 0) + amount
        if value > INT64_MAX:
            for earlier in done:
                balance[earlier] -= amounts[earlier]
            raise AmountOverflowError(dimension, value)
        balance[dimension] = value
        done.append(dimension)
