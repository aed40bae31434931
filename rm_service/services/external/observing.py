"""Telling the ledger what was seen of external places: after each look, and before somebody asks there.

Nothing is fetched here. A place that nobody uses is not written down until somebody asks for it; then what
was seen of it last goes into the same batch, before the question.
"""

import hashlib
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Protocol

import orjson
import structlog
from sqlalchemy.exc import SQLAlchemyError

from external_providers.base import ExternalApplication, Identity, Place
from rm_service.domain import operations as op
from rm_service.domain.amounts import NOTHING, Amounts, plus, same
from rm_service.domain.application import SECOND
from rm_service.domain.observing import shown_within
from rm_service.domain.outcomes import Done, Outcome
from rm_service.domain.providers import StalePolicy, StoredProvider
from rm_service.domain.selectors import Selector
from rm_service.domain.tags import Tags, label_key
from rm_service.ledger.errors import LedgerClosedError, LedgerUnavailableError, OutcomeUnknownError
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.external import (
    Tenant,
    UsedPlace,
    external_types,
    observed_places,
    used_places,
)
from rm_service.services.external.snapshots import Snapshot, Snapshots
from rm_service.services.external.sources import Source
from rm_service.services.looks import Look

OUR_TAG = "rm-"
"""An external application that carries this word and an id of ours is that application."""
UNOBSERVED = "unobserved"
"""Why a place takes nothing new: nobody has been able to look at it yet."""
QUARANTINED = "quarantined"
"""What was seen of the place cannot be, and nothing was seen of it before."""
NO_SUCH_PLACE = "no_such_place"
"""The manager was looked at, and has no place of this name."""
PLACE_CLOSED = "place_closed"
"""The manager takes nothing new there."""
CHUNK = 200
"""Observations of a batch: others ask between them."""
MAX_TOLD = 100_000
ALL = Selector()

_log = structlog.get_logger(__name__)


Told = tuple[int, float | None]
"""The version of the provider that spoke, and when its look began; None: there was none."""
Seen = tuple[UsedPlace, op.Observe, Told]


class Followed(Protocol):
    """The providers that this process follows."""

    snapshots: Snapshots

    def identity_of(self, type_: str) -> Identity | None:
        """What the plug-in of a type is; None if there is none."""

    def speaking_for(self, type_: str, tags: Tags) -> tuple[StoredProvider, Identity] | None:
        """Which of them speaks for a label of these tags, and what kind it is of."""


class Observing:
    """Writes into the ledger what the refresher sees. Its methods may be called from any thread."""

    def __init__(self, ledger: Ledger, followed: Followed) -> None:
        self._ledger = ledger
        self._followed = followed
        self._told: dict[str, Told] = {}
        """By label: what it was told last."""

    def refreshed(self, source: Source, _snapshot: Snapshot) -> None:
        """There is a newer look at a provider: tell of all of its places in use. If the ledger cannot be told
        now, the next look is another try.
        """
        try:
            self._tell(source)
        except (SQLAlchemyError, LedgerUnavailableError, OutcomeUnknownError, LedgerClosedError) as error:
            _log.warning("places_not_told", provider=source.stored.key, error=str(error).strip())

    def _tell(self, source: Source) -> None:
        identity = source.identity
        seen: list[Seen] = []
        for place in self._used(identity.type, identity.cluster_key, source.stored.labels):
            speaking = self._followed.speaking_for(identity.type, place.tags)
            if speaking is not None and speaking[0].key == source.stored.key:
                seen.append(self._seen(*speaking, place))
        self._tell_of(seen)

    def changed(self) -> None:
        """Providers have changed, or are heard of for the first time. A place of which the ledger knows what
        nobody says who speaks for it now takes nothing new, and what was seen is judged as is wished now.

        Raises if the ledger cannot be told: then say so again.
        """
        for type_ in external_types(self._ledger.book().rules):
            self._submit(list(self._shut(type_)))
            self._retell(type_)

    def _shut(self, type_: str) -> Iterator[op.Observe]:
        """Of each place that was ever observed, in use or not, and by somebody else than who speaks now."""
        with self._ledger.readers.connect() as connection:
            places = observed_places(connection, self._ledger.book().rules, type_)
        for place in places:
            speaking = self._followed.speaking_for(type_, place.tags)
            if speaking is None:
                if not place.is_shut:
                    yield op.Observe(place.tags, place.provider, None, closed=UNOBSERVED)
            elif self._followed.snapshots.latest(type_, speaking[0].name) is None:
                unlooked = observation(*speaking, UsedPlace(place.tags), None, 0)
                if (unlooked.provider, unlooked.manager) != (place.provider, place.manager):
                    yield unlooked

    def _retell(self, type_: str) -> None:
        """Of each place in use whose provider speaks in another version than when it was told last."""
        identity = self._followed.identity_of(type_)
        seen: list[Seen] = []
        for place in [] if identity is None else self._used(type_, identity.cluster_key):
            speaking = self._followed.speaking_for(type_, place.tags)
            snapshot = speaking and self._followed.snapshots.latest(type_, speaking[0].name)
            told = self._told.get(label_key(place.tags))
            if speaking and snapshot and told != _told(speaking[0], snapshot):
                seen.append(self._seen(*speaking, place))
        self._tell_of(seen)

    def _used(self, type_: str, cluster_key: str | None = None, labels: Selector = ALL) -> list[UsedPlace]:
        with self._ledger.readers.connect() as connection:
            return used_places(connection, self._ledger.book().rules, type_, cluster_key, labels)

    def before(self, tags: Tags) -> list[Look]:
        """What the ledger is to be told before somebody asks with these tags: mostly nothing.

        The use alone: what is shown of applications is told with the look itself.
        """
        rules = self._ledger.book().rules
        if not any(rule.applies(tags.keys()) for rule in rules.external):
            return []
        looks = []
        for label in rules.labels_for(tags):
            if label.rule.external is None:
                continue
            speaking = self._followed.speaking_for(label.rule.external, label.tags)
            if speaking is None:
                continue
            snapshot = self._followed.snapshots.latest(speaking[0].type, speaking[0].name)
            told = _told(speaking[0], snapshot)
            if self._told.get(label.key) != told:
                seen = self._observation(*speaking, UsedPlace(label.tags), snapshot)
                looks.append(Look(replace(seen, shown=None), partial(self._note_taken, label.key, told)))
        return looks

    def _seen(self, stored: StoredProvider, identity: Identity, used: UsedPlace) -> Seen:
        snapshot = self._followed.snapshots.latest(stored.type, stored.name)
        return used, self._observation(stored, identity, used, snapshot), _told(stored, snapshot)

    def _observation(
        self, stored: StoredProvider, identity: Identity, used: UsedPlace, snapshot: Snapshot | None
    ) -> op.Observe:
        age = 0 if snapshot is None else self._followed.snapshots.age_in_microseconds(snapshot)
        separator = self._ledger.book().rules.separators.get(identity.place_key)
        return observation(stored, identity, used, snapshot, age, separator)

    def _tell_of(self, seen: Sequence[Seen]) -> None:
        self._submit(in_order([(place, observation) for place, observation, _ in seen]))
        for place, _, told in seen:
            self._note(label_key(place.tags), told)

    def _note_taken(self, key: str, told: Told, outcome: Outcome) -> None:
        """What was not taken over is told by somebody else, or brought along again."""
        if isinstance(outcome, Done) and not outcome.repeated:
            self._note(key, told)

    def _note(self, key: str, told: Told) -> None:
        if len(self._told) >= MAX_TOLD:
            self._told.clear()
        self._told[key] = told

    def _submit(self, observations: Sequence[op.Observe]) -> None:
        """Tell the ledger, chunk by chunk: what waits for its turn grows older meanwhile."""
        began = time.monotonic()
        for start in range(0, len(observations), CHUNK):
            waited = int((time.monotonic() - began) * SECOND)
            chunk = observations[start : start + CHUNK]
            self._ledger.submit([replace(each, age=each.age + waited) for each in chunk])


def manager_of(stored: StoredProvider) -> str:
    """A mark of whom a provider asks and what: another one for another configuration."""
    config = orjson.dumps(stored.config, option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(config).hexdigest()[:16]


def _told(stored: StoredProvider, snapshot: Snapshot | None) -> Told:
    return stored.version, None if snapshot is None else snapshot.began


def in_order(seen: Sequence[tuple[UsedPlace, op.Observe]], chunk: int = CHUNK) -> list[op.Observe]:
    """What the ledger is told of a look at these places, in an order in which it may be asked between chunks.

    What is shown of an application counts in each place that holds its own. So what less is shown comes
    first, and what more is shown comes behind the use of all places around it: no place ever takes for ours
    what is not part of its use.
    """
    outer_first = sorted(seen, key=lambda each: sum(map(len, each[0].tags.values())))
    lessened = [_lessened(*each) for each in outer_first] if len(seen) > chunk else []
    return [*filter(None, lessened), *[observation for _, observation in outer_first]]


def _lessened(place: UsedPlace, observation: op.Observe) -> op.Observe | None:
    """The observation with what less is shown of applications than before, and nothing that is more."""
    less: dict[str, Amounts] = {}
    for tenant in place.tenants:
        shown = (observation.shown or {}).get(tenant.id)
        if shown is not None and any(amount > shown.get(name, 0) for name, amount in tenant.shown.items()):
            less[tenant.id] = {name: min(amount, shown.get(name, 0)) for name, amount in tenant.shown.items()}
    return replace(observation, shown=less) if less else None


def observation(
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
        "manager": manager_of(stored),
        "age": age,
        "stale_seconds": None if policy is StalePolicy.LAST_KNOWN else stored.stale_seconds,
        "ignored_when_stale": policy is StalePolicy.IGNORE,
    }
    if snapshot is None:
        return op.Observe(total=None, closed=UNOBSERVED, looked=False, **told)  # type: ignore[arg-type]
    if place is None:
        absurd = used.tags.get(identity.place_key) in snapshot.quarantined
        closed = QUARANTINED if absurd else NO_SUCH_PLACE
        return op.Observe(total=None, closed=closed, looked=not absurd, **told)  # type: ignore[arg-type]
    listed = snapshot.listed(place.name, separator) if used.tenants else []
    return op.Observe(
        total=place.total,
        observed=place.used,
        protected=stored.protected,
        closed=None if place.open else PLACE_CLOSED,
        shown=shown_of(used.tenants, listed, snapshot.places),
        **told,  # type: ignore[arg-type]
    )


def shown_of(
    tenants: Sequence[Tenant],
    listed: Iterable[ExternalApplication],
    places: Mapping[str, Place] = MappingProxyType({}),
) -> dict[str, Amounts]:
    """What the list has of each of our applications, by our ids; only of those of which it has changed.

    An external application is ours if it carries our id as a word, `rm-ID`, or if an engine of ours said that
    it is called so. If several said so it is that of the oldest: it is counted once. What the list has in one
    of `places` beyond what was in use there a moment later is not taken for ours.
    """
    owners: dict[str, str] = {}
    for tenant in reversed(tenants):
        owners |= dict.fromkeys(tenant.external_ids, tenant.id)
    ours = {tenant.id for tenant in tenants}
    sums: dict[str, Amounts] = {}
    at: dict[str, dict[str, Amounts]] = defaultdict(dict)
    for application in listed:
        sums[application.place] = plus(sums.get(application.place, NOTHING), application.allocated)
        named = (tag.removeprefix(OUR_TAG) for tag in application.tags if tag.startswith(OUR_TAG))
        owner = next((each for each in named if each in ours), owners.get(application.id))
        if owner is not None:
            there = at[application.place]
            there[owner] = plus(there.get(owner, NOTHING), application.allocated)
    found: dict[str, Amounts] = {}
    for name, there in at.items():
        place = places.get(name)
        kept = there if place is None else shown_within(there, sums[name], place.used)
        for owner, amounts in kept.items():
            found[owner] = plus(found.get(owner, NOTHING), amounts)
    shown = {tenant.id: found.get(tenant.id, NOTHING) for tenant in tenants}
    return {tenant.id: shown[tenant.id] for tenant in tenants if not same(shown[tenant.id], tenant.shown)}
