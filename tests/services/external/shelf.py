"""Stored providers without a database, and how the refresher finds them."""

from collections.abc import Sequence
from concurrent.futures import Future

from rm_service.domain.providers import StalePolicy, StoredProvider
from rm_service.domain.selectors import parse_selector
from rm_service.ledger.providers import Generation
from rm_service.services.external.breaker import BreakerState
from rm_service.services.external.feeds import NoSnapshotError, ProviderState
from rm_service.services.external.fetching import FaultKind
from rm_service.services.external.keys import Keys
from rm_service.services.external.refresher import Refresher
from rm_service.services.external.snapshots import Snapshot
from rm_service.services.external.sources import Unparsed, unseal
from tests.services.external.scripted import WAIT, ScriptedProvider, plugins_with


class Shelf:
    """Stored providers without a database."""

    def __init__(self, plugin: ScriptedProvider) -> None:
        self.plugins = plugins_with(plugin)
        self.rows: dict[str, StoredProvider] = {}
        self.version = 0

    def put(self, name: str, url: str = "http://c", labels: str = "", **more: object) -> None:
        self.version += 1
        row: dict[str, object] = {
            "type": "scripted",
            "name": name,
            "labels": parse_selector(labels or f"scriptedCluster={name}"),
            "config": {"url": url},
            "secrets": None,
            "stale_policy": StalePolicy.DENY,
            "refresh_seconds": 10,
            "stale_seconds": 60,
            "protected": {},
            "version": self.version,
            "created_at": 0,
            "updated_at": 0,
        }
        self.rows[name] = StoredProvider(**(row | more))  # type: ignore[arg-type]

    def generation(self) -> Generation:
        return max((row.version for row in self.rows.values()), default=0), len(self.rows)

    def all(self) -> Sequence[StoredProvider]:
        return list(self.rows.values())

    def unseal(self, stored: StoredProvider) -> Unparsed:
        return unseal(self.plugins, Keys([]), stored)

    def identity_of(self, type_: str) -> object:
        plugin = self.plugins.by_type.get(type_)
        return None if plugin is None else plugin.identify()


def state(refresher: Refresher, name: str = "c1") -> ProviderState:
    status = refresher.status("scripted", name)
    assert status is not None
    return status.state


def breaker(refresher: Refresher, name: str = "c1") -> BreakerState:
    status = refresher.status("scripted", name)
    assert status is not None
    return status.breaker


def last_fault(refresher: Refresher, name: str = "c1") -> tuple[FaultKind, str]:
    status = refresher.status("scripted", name)
    assert status is not None
    assert status.fault is not None
    return status.fault.kind, status.fault.reason


def failure(future: Future[Snapshot]) -> str:
    error = future.exception(WAIT)
    assert isinstance(error, NoSnapshotError)
    return str(error)
