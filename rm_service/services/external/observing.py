"""Telling the ledger what was seen of external places: after each look, and before somebody asks there.

Nothing is fetched here. A place that nobody uses is not written down until somebody asks for it; then what
was seen of it last goes into the same batch, before the question.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Protocol

import structlog
from sqlalchemy.exc import SQLAlchemyError

from external_providers.base import ExternalApplication, Identity
from rm_service.domain import operations as op
from rm_service.domain.amounts import NOTHING, Amounts, plus, same
from rm_service.domain.providers import StalePolicy, StoredProvider
from rm_service.domain.tags import Tags, label_key
from rm_service.ledger.errors import LedgerClosedError, LedgerUnavailableError, OutcomeUnknownError
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.external import Tenant, UsedPlace, used_places
from rm_service.services.external.snapshots import Key, Snapshot, Snapshots
from rm_service.services.external.sources import Source

OUR_TAG = "rm-"
"""An external application that carries this word and an id of ours is that application."""
UNOBSERVED = "unobserved"
"""Why a place takes nothing new: nobody has been able to look at it yet."""
NO_SUCH_PLACE = "no_such_place"
"""The manager was looked at, and has no place of this name."""
PLACE_CLOSED = "place_closed"
"""The manager takes nothing new there."""
CHUNK = 200
"""Observations of a batch: others ask between them."""
MAX_TOLD = 100_000

_log = structlog.get_logger(__name__)


Told = tuple[int, float | None]
"""The version of the provider that spoke, and when its look began; None: there was none."""


class Followed(Protocol):
    """The providers that this process follows."""

    snapshots: Snapshots

    def speaking_for(self, type_: str, tags: Tags) -> tuple[StoredProvider, Identity] | None:
        """Which of them speaks for a label of these tags, and what kind it is of."""


class Observing:
    """Writes into the ledger what the refresher sees. Its methods may be called from any thread."""

    def __init__(self, ledger: Ledger, followed: Followed) -> None:
        self._ledger = ledger
        self._followed = followed
        self._told: dict[str, Told] = {}
        """By label: what it was told last."""
        self.unseen: dict[Key, Amounts] = {}
        """By provider: what was promised in its places and not shown, as of the last look but one."""

    def refreshed(self, source: Source, _snapshot: Snapshot) -> None:
        """There is a newer look at a provider: tell of all of its places in use. If the ledger cannot be told
        now, the next look is another try.
        """
        try:
            self._tell(source)
        except (SQLAlchemyError, LedgerUnavailableError, OutcomeUnknownError, LedgerClosedError) as error:
            _log.warning("places_not_told", provider=source.stored.key, error=str(error).strip())

    def _tell(self, source: Source) -> None:
        observations: list[op.Observe] = []
        lessened: list[op.Observe] = []
        unseen: Amounts = NOTHING
        for place in sorted(self._used(source.identity), key=_depth):
            speaking = self._followed.speaking_for(source.stored.type, place.tags)
            if speaking is not None and speaking[0].key == source.stored.key:
                observations.append(self._observation(*speaking, place))
                lessened += _lessened(observations[-1], place)
                unseen = plus(unseen, place.unseen) if place.is_top else unseen
        if len(observations) > CHUNK:
            self._submit(lessened)  # in no order of chunks more is shown than there is of its use
        self._submit(observations)
        self.unseen[source.key] = unseen

    def removed(self, stored: StoredProvider, identity: Identity) -> None:
        """A provider is gone: places for which nobody speaks now take nothing new."""
        left = [
            each
            for each in self._used(identity)
            if self._followed.speaking_for(stored.type, each.tags) is None
        ]
        self._submit([op.Observe(each.tags, stored.key, None, closed=UNOBSERVED) for each in left])
        self._told.clear()
        self.unseen.pop((stored.type, stored.name), None)

    def _used(self, identity: Identity) -> list[UsedPlace]:
        rules = self._ledger.book().rules
        with self._ledger.readers.connect() as connection:
            return used_places(connection, rules, identity.type, identity.cluster_key)

    def before(self, tags: Tags) -> list[op.Observe]:
        """What the ledger is to be told before somebody asks with these tags: mostly nothing."""
        rules = self._ledger.book().rules
        if not any(rule.applies(tags.keys()) for rule in rules.external):
            return []
        observations = []
        for label in rules.labels_for(tags):
            if label.rule.external is None:
                continue
            speaking = self._followed.speaking_for(label.rule.external, label.tags)
            if speaking is None:
                continue
            snapshot = self._followed.snapshots.latest(speaking[0].type, speaking[0].name)
            if self._told.get(label.key) == _told(speaking[0], snapshot):
                continue
            observations.append(self._observation(*speaking, UsedPlace(label.tags)))
        return observations

    def _observation(self, stored: StoredProvider, identity: Identity, used: UsedPlace) -> op.Observe:
        snapshots = self._followed.snapshots
        snapshot = snapshots.latest(stored.type, stored.name)
        if len(self._told) >= MAX_TOLD:
            self._told.clear()
        self._told[label_key(used.tags)] = _told(stored, snapshot)
        age = 0 if snapshot is None else snapshots.age_in_microseconds(snapshot)
        separator = self._ledger.book().rules.separators.get(identity.place_key)
        return observation(stored, identity, used, snapshot, age, separator)

    def _submit(self, observations: Sequence[op.Observe]) -> None:
        for start in range(0, len(observations), CHUNK):
            self._ledger.submit(observations[start : start + CHUNK])


def _told(stored: StoredProvider, snapshot: Snapshot | None) -> Told:
    return stored.version, None if snapshot is None else snapshot.began


def _depth(place: UsedPlace) -> int:
    """More than that of any place that holds this one."""
    return sum(map(len, place.tags.values()))


def _lessened(observation: op.Observe, place: UsedPlace) -> list[op.Observe]:
    """The observation with what less is shown of applications than before, and nothing that is more."""
    less: dict[str, Amounts] = {}
    for tenant in place.tenants:
        shown = observation.shown.get(tenant.id)
        if shown is not None and any(amount > shown.get(name, 0) for name, amount in tenant.shown.items()):
            less[tenant.id] = {name: min(amount, shown.get(name, 0)) for name, amount in tenant.shown.items()}
    return [replace(observation, shown=less)] if less else []


def observation(  # noqa: PLR0913 - who says what, of which place, as of when
    stored: StoredProvider,
    identity: Identity,
    used: UsedPlace,
    snapshot: Snapshot | None,
    age: int,
    separator: str | None = None,
) -> op.Observe:
    """What the ledger is told of one place. `age` of the snapshot in microseconds; `separator`: of the levels
    of a place's name, where a place holds those beneath it.
    """
    place = None if snapshot is None else snapshot.places.get(used.tags.get(identity.place_key, ""))
    policy = stored.stale_policy
    told = {
        "tags": used.tags,
        "provider": stored.key,
        "age": age,
        "stale_seconds": None if policy is StalePolicy.LAST_KNOWN else stored.stale_seconds,
        "ignored_when_stale": policy is StalePolicy.IGNORE,
    }
    if snapshot is None or place is None:
        return op.Observe(total=None, closed=UNOBSERVED if snapshot is None else NO_SUCH_PLACE, **told)  # type: ignore[arg-type]
    beneath = f"{place.name}{separator}" if separator else None
    listed = [
        each
        for each in (snapshot.applications if used.tenants else ())
        if each.place == place.name or (beneath and each.place.startswith(beneath))
    ]
    return op.Observe(
        total=place.total,
        observed=place.used,
        protected=stored.protected,
        closed=None if place.open else PLACE_CLOSED,
        shown=shown_of(used.tenants, listed),
        **told,  # type: ignore[arg-type]
    )


def shown_of(tenants: Sequence[Tenant], listed: Iterable[ExternalApplication]) -> dict[str, Amounts]:
    """What the list has of each of our applications, by our ids; only of those of which it has changed.

    An external application is ours if it carries our id as a word, `rm-ID`, or if an engine of ours said that
    it is called so. If several said so it is that of the oldest: it is counted once.
    """
    owners: dict[str, str] = {}
    for tenant in reversed(tenants):
        owners |= dict.fromkeys(tenant.external_ids, tenant.id)
    ours = {tenant.id for tenant in tenants}
    found: dict[str, Amounts] = {}
    for application in listed:
        named = (tag.removeprefix(OUR_TAG) for tag in application.tags if tag.startswith(OUR_TAG))
        owner = next((each for each in named if each in ours), owners.get(application.id))
        if owner is not None:
            found[owner] = plus(found.get(owner, NOTHING), application.allocated)
    shown = {tenant.id: found.get(tenant.id, NOTHING) for tenant in tenants}
    return {tenant.id: shown[tenant.id] for tenant in tenants if not same(shown[tenant.id], tenant.shown)}
