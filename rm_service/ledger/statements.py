"""The texts of a turn's statements, in each dialect."""

from dataclasses import fields

from rm_service.domain.accounts import Balance
from rm_service.domain.application import Application
from rm_service.domain.events import Event
from rm_service.domain.queueing import HEADS
from rm_service.domain.registrations import Engine, Node
from rm_service.ledger import tables
from rm_service.ledger.documents import Documents

HEADS_READ = HEADS + 1
"""One more than a wake looks at, to know whether there are others."""

_BALANCE_READ = tuple(column.name for column in fields(Balance))
_BALANCE_WRITTEN = ("locked", "used", "applications", "wake", "seen", "devices")
_ROOM_WRITTEN = ("total", "protected", "closed", "observation")
_APPLICATION = tuple(column.name for column in fields(Application))
_APPLICATION_FIXED = {
    "id",
    "request",
    "requested",
    "priority",
    "lock_seconds",
    "created_at",
    "placement",
    "client",
    "name",
    "parent",
}
_APPLICATION_WRITTEN = tuple(name for name in _APPLICATION if name not in _APPLICATION_FIXED)
_NODE = tuple(column.name for column in fields(Node))
_ENGINE = tuple(column.name for column in fields(Engine) if column.name != "removed")
_EVENT = tuple(column.name for column in fields(Event))
_INTERVAL = tuple(column.name for column in tables.application_interval.columns)
_WAITER = ("label_id", "application_id", "priority", "seq")
_CLAIM = tuple(column.name for column in tables.application_device.columns)
_LABEL = tuple(column.name for column in tables.label.columns)
_LABEL_TAG = tuple(column.name for column in tables.label_tag.columns)
_BALANCE_NEW = ("label_id", "locked", "used", "applications", "wake", "seen", "is_pool")
_TAG = ("key", "value", "application_id")


class Statements:
    """The texts of a turn's statements in one dialect."""

    def __init__(self, *, sqlite: bool) -> None:
        self._sqlite = sqlite
        self._documents = Documents(sqlite=sqlite)
        self._mark = mark = self._documents.mark
        members = self._documents.members()
        self._ids = members if sqlite else f"{members}::uuid"
        self._numbers = members if sqlite else f"{members}::bigint"
        self.take = (
            "UPDATE ledger_head SET one = 1 WHERE one = 1"
            " RETURNING seq, targets, labels, epoch, away, max(time, ?)"
            if sqlite
            else "UPDATE ledger_head SET one = 1 WHERE one = 1 RETURNING seq, targets, labels, epoch, away,"
            " greatest(time, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)"
        ) + ", (SELECT succeeded_at FROM sweep)"
        self.give_back = f"UPDATE ledger_head SET seq = {mark}, time = {mark}, targets = {mark} WHERE one = 1"
        self._read_rows()
        self._read_named()
        self._read_waiters()
        self._write_rows()

    def _read_rows(self) -> None:
        """What a batch reads: rows by their keys, and the balances that they are charged to."""
        documents, sqlite, ids, numbers = self._documents, self._sqlite, self._ids, self._numbers
        members = documents.members()
        self.balances = documents.select(tables.balance, _BALANCE_READ, f"label_id IN ({numbers})")
        self.balances_of = documents.select(
            tables.balance, _BALANCE_READ, f"label_id IN ({numbers} UNION {self._charged(ids)})"
        )
        pools = "json_group_array(label_id)" if sqlite else "json_agg(label_id)::text"
        self.pools = f"SELECT {pools} FROM balance WHERE is_pool AND first_priority IS NOT NULL"
        self.applications = documents.select(tables.application, _APPLICATION, f"id IN ({ids})")
        self.nodes = documents.select(tables.node, _NODE, f"label_id IN ({numbers})")
        self.engines = documents.select(tables.engine, _ENGINE, f"instance IN ({members})")
        self.engines_of = documents.select(tables.engine, _ENGINE, f"application_id IN ({ids})")

    def _charged(self, applications: str) -> str:
        """The labels that the applications of a sub-select are charged to or wait on."""
        if self._sqlite:
            return (
                "SELECT l.value FROM application AS a, json_each(a.label_ids) AS l"
                f" WHERE a.id IN ({applications}) UNION SELECT w.value FROM application AS a,"
                f" json_each(a.waits_on) AS w WHERE a.id IN ({applications})"
            )
        return (
            "SELECT json_array_elements_text(a.label_ids)::bigint FROM application AS a"
            f" WHERE a.id IN ({applications}) UNION SELECT json_array_elements_text(a.waits_on)::bigint"
            f" FROM application AS a WHERE a.id IN ({applications})"
        )

    def _read_named(self) -> None:
        """The same for applications that are found by their names, with the parents of all."""
        documents, sqlite, ids, numbers = self._documents, self._sqlite, self._ids, self._numbers
        mark, members = self._mark, documents.members()
        # As an array: a join would hold all that lives against each of the names.
        one_of = f"IN ({members})" if sqlite else f"= ANY (ARRAY({members}))"
        named = f"SELECT id FROM application WHERE name {one_of} AND {tables.LIVE_TOO}"
        asked = f"SELECT id FROM application WHERE id IN ({ids}) UNION {named}"
        self.chosen = (
            f"WITH asked(id) AS ({asked}), chosen(id) AS (SELECT id FROM asked UNION SELECT parent"
            " FROM application WHERE id IN (SELECT id FROM asked) AND parent IS NOT NULL) "
        )
        charged_to_chosen = self._charged("SELECT id FROM chosen")
        self.balances_of_chosen = documents.select(
            tables.balance, _BALANCE_READ, f"label_id IN ({numbers} UNION {charged_to_chosen})"
        )
        self.chosen_applications = documents.select(
            tables.application, _APPLICATION, "id IN (SELECT id FROM chosen)"
        )
        self.engines_of_chosen = documents.select(
            tables.engine, _ENGINE, "application_id IN (SELECT id FROM chosen)"
        )
        self.members = f"SELECT id FROM application WHERE parent = {mark} AND {tables.LIVE_TOO}"
        self.tenants = (
            "SELECT a.id FROM node AS n CROSS JOIN application_tag AS t"
            " ON t.key = 'node' AND t.value = n.instance"
            " CROSS JOIN application AS a ON a.id = t.application_id WHERE n.label_id = ?"
            if sqlite
            else "SELECT a.id FROM node AS n JOIN application AS a ON a.finished_at IS NULL"
            " AND a.tags @> jsonb_build_object('node', n.instance) WHERE n.label_id = %s"
        )

    def _read_waiters(self) -> None:
        mark = self._mark
        self.heads = (
            "SELECT application_id FROM waiter WHERE label_id ="
            f" {mark} ORDER BY priority DESC, seq LIMIT {HEADS_READ}"
        )
        self.waiters = (
            "SELECT application_id, priority, seq FROM waiter WHERE label_id ="
            f" {mark} ORDER BY priority DESC, seq LIMIT {mark}"
        )

    def _write_rows(self) -> None:
        documents, ids, numbers, mark = self._documents, self._ids, self._numbers, self._mark
        members = documents.members()
        self.insert_applications = documents.insert(tables.application, _APPLICATION)
        self.update_applications = documents.update(tables.application, "id", _APPLICATION_WRITTEN)
        self.insert_intervals = documents.insert(tables.application_interval, _INTERVAL)
        self.update_balances = documents.update(tables.balance, "label_id", _BALANCE_WRITTEN)
        self.update_rooms = documents.update(tables.balance, "label_id", _ROOM_WRITTEN)
        self.insert_signatures = documents.insert(
            tables.device_signature, ("name", "attributes"), "ON CONFLICT DO NOTHING"
        )
        self.delete_claims = f"DELETE FROM application_device WHERE application_id IN ({ids})"
        self.insert_claims = documents.insert(tables.application_device, _CLAIM)
        self.upsert_nodes = documents.upsert(tables.node, _NODE)
        self.upsert_engines = documents.upsert(tables.engine, _ENGINE)
        self.delete_engines = f"DELETE FROM engine WHERE instance IN ({members})"
        self.insert_events = documents.insert(tables.event, _EVENT)
        self.delete_waiters = f"DELETE FROM waiter WHERE application_id IN ({ids})"
        self.insert_waiters = documents.insert(tables.waiter, _WAITER)
        self.rank_waiters = (
            "UPDATE balance SET (first_priority, first_seq) = (SELECT priority, seq FROM waiter"
            " WHERE waiter.label_id = balance.label_id ORDER BY priority DESC, seq LIMIT 1)"
            f" WHERE label_id IN ({numbers})"
        )
        self.insert_labels = documents.insert(tables.label, _LABEL)
        self.insert_label_tags = documents.insert(tables.label_tag, _LABEL_TAG)
        self.insert_balances = documents.insert(tables.balance, _BALANCE_NEW)
        self.number_labels = f"UPDATE ledger_head SET labels = {mark} WHERE one = 1"
        self.insert_tags = documents.insert(tables.application_tag, _TAG, "ON CONFLICT DO NOTHING")
        self.delete_tags = "DELETE FROM application_tag WHERE key = ? AND value = ? AND application_id = ?"
        self.notify = "SELECT pg_notify('rm_ledger', '')"


POSTGRES = Statements(sqlite=False)
SQLITE = Statements(sqlite=True)
