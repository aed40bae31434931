"""The clients: resource managers as they registered, remembered by each process for a second."""

import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock

import structlog
from sqlalchemy import RowMapping, select
from sqlalchemy.exc import SQLAlchemyError

from rm_service.domain.clients import Client, ClientState
from rm_service.domain.queue_config import Configuration, PartitionConfig
from rm_service.ledger import tables
from rm_service.ledger.errors import LedgerUnavailableError
from rm_service.ledger.ledger import Ledger
from rm_service.services.si.errors import NotRegisteredError
from rm_service.services.si.names import partition_name, plain_partition
from rm_service.services.si.policies import parse_config

REMEMBERED_SECONDS = 1.0
SILENT_SECONDS = 3.0
"""One that was not asked for for so long may be another by now: it is read before it is answered."""
NODE_POOL = "rm.nodePool"
RESYNC = "rm.resync"
TIMEOUT = "rm.executionTimeout"
WISHES = {
    NODE_POOL: ("own", "shared"),
    RESYNC: ("difference", "wipe"),
    TIMEOUT: ("", "application", "placeholder"),
}
"""The keys of `extraConfig` that mean something here, and what may be said; first what silence means."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class KnownClient:
    """A resource manager under its present registration."""

    client: Client
    registered_seq: int
    """The event of its registration."""
    configuration: Configuration = field(repr=False)
    extra: Mapping[str, str] = field(default_factory=dict, repr=False)

    def partition(self, name: str) -> tuple[str, PartitionConfig | None]:
        """The partition's name in the ledger, and its configuration; None if the RM has no such partition."""
        partition = partition_name(self.client.id, name)
        if not partition.startswith(f"[{self.client.id}]"):
            return partition, None
        return partition, self.configuration.partition(plain_partition(partition))

    @property
    def shares_nodes(self) -> bool:
        """Whether it names the ledger's own nodes, on which every door draws."""
        return self.extra.get(NODE_POOL) == "shared"

    def node_partition(self, partition: str) -> str:
        """The partition that the nodes of one of its partitions are registered under."""
        return "" if self.shares_nodes else partition


class Clients:
    """The clients that this process has heard of."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._known: dict[str, tuple[KnownClient, float]] = {}
        self._refreshing: set[str] = set()
        self._lock = Lock()
        self._threads = ThreadPoolExecutor(1, thread_name_prefix="si-clients")

    def get(self, rm_id: str) -> KnownClient:
        """The client of this id. While it goes on speaking, this does not wait for the database.

        Raises NotRegisteredError, LedgerUnavailableError.
        """
        found = self._known.get(rm_id)
        if found is None:
            if "\0" in rm_id:  # no database has such a text
                raise NotRegisteredError(rm_id)
            return self.read(rm_id)
        known, read_at = found
        age = time.monotonic() - read_at
        if age > SILENT_SECONDS:
            return self.read(rm_id)
        if age > REMEMBERED_SECONDS:
            self._refresh(rm_id)
        return known

    def at_hand(self, rm_id: str) -> bool:
        """Whether `get` does not wait."""
        found = self._known.get(rm_id)
        return found is not None and time.monotonic() - found[1] <= SILENT_SECONDS

    def read(self, rm_id: str) -> KnownClient:
        """The same, as the database has it now."""
        columns = tables.si_client.c
        query = select(
            columns.registration, columns.registered_seq, columns.config, columns.extra_config
        ).where(columns.rm_id == rm_id, columns.state != ClientState.STOPPED)
        try:
            with self._ledger.readers.connect() as connection:
                row = connection.execute(query).mappings().first()
        except SQLAlchemyError as error:
            raise LedgerUnavailableError(str(error)) from error
        if row is None:
            self._known.pop(rm_id, None)
            raise NotRegisteredError(rm_id)
        before = self._known.get(rm_id)
        known = _known_as(rm_id, row, None if before is None else before[0])
        newer = self._known.get(rm_id)
        if newer is None or newer[0].registered_seq <= known.registered_seq:
            self._known[rm_id] = (known, time.monotonic())
        return known

    def outdated(self, rm_id: str, seq: int) -> None:
        """Forget what is known of a client if it has registered since, by the event of this number."""
        found = self._known.get(rm_id)
        if found is not None and found[0].registered_seq < seq:
            self._known.pop(rm_id, None)

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)

    def _refresh(self, rm_id: str) -> None:
        with self._lock:
            if rm_id in self._refreshing:
                return
            self._refreshing.add(rm_id)
        self._threads.submit(self._read_again, rm_id)

    def _read_again(self, rm_id: str) -> None:
        try:
            self.read(rm_id)
        except (LedgerUnavailableError, NotRegisteredError) as error:
            _log.warning("si_client_unreadable", rm_id=rm_id, error=str(error))
        finally:
            with self._lock:
                self._refreshing.discard(rm_id)


def _known_as(rm_id: str, row: RowMapping, before: KnownClient | None) -> KnownClient:
    """A registration never changes: what was read of it once need not be parsed again."""
    if before is not None and before.client.registration == row["registration"]:
        return before
    client = Client(rm_id, row["registration"])
    configuration = parse_config(row["config"])
    return KnownClient(client, row["registered_seq"], configuration, row["extra_config"])
