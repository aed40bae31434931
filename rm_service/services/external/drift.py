"""How far promises are ahead of what is shown: by provider, at the moment that somebody looks."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from threading import Lock

import structlog
from sqlalchemy.exc import SQLAlchemyError

from rm_service.domain.amounts import NOTHING, Amounts, plus
from rm_service.domain.label_rules import LabelRules
from rm_service.domain.tags import label_key
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.external import UsedPlace, external_types, used_places
from rm_service.services.external.observing import Followed
from rm_service.services.external.snapshots import Key

KEPT_SECONDS = 5.0
"""So long an answer is given again: however many look, the ledger is asked now and then."""

_log = structlog.get_logger(__name__)


class Drift:
    """What applications hold in the places of each provider, and its manager does not show there.

    It may be called from any thread.
    """

    def __init__(self, ledger: Ledger, followed: Followed, clock: Callable[[], float]) -> None:
        self._ledger = ledger
        self._followed = followed
        self._clock = clock
        self._lock = Lock()
        self._read_at: float | None = None
        self._unseen: Mapping[Key, Amounts] = {}

    def unseen(self) -> Mapping[Key, Amounts]:
        """By provider; nothing while the ledger cannot be read."""
        with self._lock:
            now = self._clock()
            if self._read_at is None or now - self._read_at >= KEPT_SECONDS:
                self._unseen, self._read_at = self._read(), now
            return self._unseen

    def _read(self) -> Mapping[Key, Amounts]:
        rules = self._ledger.book().rules
        unseen: dict[Key, Amounts] = {}
        try:
            with self._ledger.readers.connect() as connection:
                for type_ in external_types(rules):
                    for key, places in self._by_provider(
                        type_, used_places(connection, rules, type_)
                    ).items():
                        unseen[key] = _sum(rules, places)
        except SQLAlchemyError as error:
            _log.warning("unseen_not_read", error=str(error).strip())
            return {}
        return unseen

    def _by_provider(self, type_: str, used: list[UsedPlace]) -> Mapping[Key, list[UsedPlace]]:
        places: dict[Key, list[UsedPlace]] = defaultdict(list)
        for place in used:
            speaking = self._followed.speaking_for(type_, place.tags)
            if speaking is not None:
                places[type_, speaking[0].name].append(place)
        return places


def _sum(rules: LabelRules, places: list[UsedPlace]) -> Amounts:
    """Of places that no other of them holds: what is held in a place is held in those around it, too."""
    keys = {label_key(place.tags) for place in places}
    total: Amounts = NOTHING
    for place in places:
        around = keys.intersection(label.key for label in rules.labels_for(place.tags))
        if len(around) == 1:
            total = plus(total, place.unseen)
    return total
