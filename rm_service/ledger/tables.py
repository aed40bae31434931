"""The tables. Instants are microseconds UTC, amounts are JSON objects of integers in base units."""

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    Identity,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, UUID

metadata = MetaData(
    naming_convention={
        "ix": "ix_%(table_name)s_%(column_0_N_name)s",
        "uq": "uq_%(table_name)s_%(column_0_N_name)s",
        "ck": "ck_%(table_name)s_%(constraint_name)s",
        "pk": "pk_%(table_name)s",
    }
)

Json = JSON(none_as_null=True)
"""On PostgreSQL `json`, kept as the text that it came in: these columns are read whole, never searched."""
SearchedJson = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
Id = String(36).with_variant(UUID(as_uuid=False), "postgresql")
Number = BigInteger().with_variant(Integer(), "sqlite")
"""A 64-bit key: SQLite only numbers INTEGER columns by itself."""


def _no_negative(column: str) -> CheckConstraint:
    """No amount in a JSON object is below 0: in its text a minus can only stand after a colon."""
    text_ = f"replace(CAST({column} AS TEXT), ' ', '')"
    return CheckConstraint(f"{text_} = replace({text_}, ':-', '')", column)


ledger_head = Table(
    "ledger_head",
    metadata,
    Column("one", Integer, primary_key=True, comment="always 1: whoever holds this row has the turn"),
    Column("seq", BigInteger, nullable=False, comment="number of the last event"),
    Column("time", BigInteger, nullable=False, comment="time of the last event"),
    Column("epoch", BigInteger, nullable=False, comment="raised by each change of rules or limits"),
    Column("targets", BigInteger, nullable=False, comment="highest node number ever given"),
    Column("labels", BigInteger, nullable=False, comment="highest label number ever given"),
    Column(
        "away",
        Text,
        nullable=False,
        server_default="[]",
        comment="a JSON list of clients that get nothing new",
    ),
)

rule_set = Table(
    "rule_set",
    metadata,
    Column("one", Integer, primary_key=True),
    Column("document", Json, nullable=False, comment="conversions and label rules in force"),
)

label = Table(
    "label",
    metadata,
    Column("id", Number, primary_key=True, autoincrement=False),
    Column("key", Text, nullable=False, unique=True, comment="canonical text of the tags"),
    Column("key_set", Text, nullable=False, index=True, comment="the tag keys, sorted, comma separated"),
    Column("tags", Json, nullable=False),
)

label_tag = Table(
    "label_tag",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", Text, primary_key=True),
    Column("label_id", BigInteger, primary_key=True),
)

balance = Table(
    "balance",
    metadata,
    Column("label_id", Number, primary_key=True, autoincrement=False),
    Column("locked", Json, nullable=False),
    Column("used", Json, nullable=False),
    Column("applications", BigInteger, nullable=False, comment="how many hold something here"),
    Column("total", Json, comment="capacity labels: what is registered"),
    Column("protected", Json),
    Column("closed", Text, comment="why a capacity label takes nothing new"),
    Column("first_priority", BigInteger, comment="rank of the first waiter"),
    Column("first_seq", BigInteger),
    Column("wake", Boolean, nullable=False, comment="its queue is to be looked at"),
    Column(
        "seen", Json, nullable=False, server_default="{}", comment="external labels: what is shown of ours"
    ),
    Column("observation", Json, comment="external labels: the last look at the place"),
    Column("devices", Json, comment="nodes: name, signature, units, what is taken of which unit"),
    Column("is_pool", Boolean, nullable=False, comment="a queue of those who ask for a node"),
    _no_negative("locked"),
    _no_negative("used"),
    CheckConstraint("applications >= 0", "applications"),
    Index("ix_balance_wake", "label_id", postgresql_where=text("wake"), sqlite_where=text("wake")),
    Index(
        "ix_balance_pool",
        "label_id",
        postgresql_where=text("is_pool AND first_priority IS NOT NULL"),
        sqlite_where=text("is_pool AND first_priority IS NOT NULL"),
    ),
    Index(
        "ix_balance_waited_for",
        "label_id",
        postgresql_where=text("first_priority IS NOT NULL"),
        sqlite_where=text("first_priority IS NOT NULL"),
    ),
    Index(
        "ix_balance_lost",
        "label_id",
        postgresql_where=text("closed = 'lost'"),
        sqlite_where=text("closed = 'lost'"),
    ),
    postgresql_with={"fillfactor": 50},
)

LIVE = "finished_at IS NULL"
LIVE_TOO = "coalesce(finished_at, 0) = 0"
"""The same in other words, for indexes that must be the only ones that a question can use: a plan made while
the table is small takes any that it may, and reads all that lives by it for ever after.
"""
OWNED = "client IS NOT NULL"

application = Table(
    "application",
    metadata,
    Column("id", Id, primary_key=True),
    Column("state", Text, nullable=False),
    Column("tags", SearchedJson, nullable=False),
    Column("label_ids", Json, nullable=False, comment="the labels that it is charged to"),
    Column("requested", Json, nullable=False),
    Column("used", Json),
    Column("request", Json, nullable=False, comment="the body as it was sent"),
    Column("priority", BigInteger, nullable=False),
    Column("lock_seconds", BigInteger, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("locked_at", BigInteger),
    Column("used_at", BigInteger),
    Column("finished_at", BigInteger),
    Column("since", BigInteger, nullable=False),
    Column("deadline", BigInteger),
    Column("over_limit", Boolean, nullable=False),
    Column("reason", Text),
    Column("engine", Text),
    Column("waits_on", Json, nullable=False),
    Column("wait_seq", BigInteger),
    Column("placement", Json),
    Column("client", Text, comment="the resource manager that is told what becomes of it"),
    Column("name", Text, comment="what the client calls it; several may share a name"),
    Column("parent", Id, comment="the application that it is a member of"),
    Column("standing", Json, comment="where a client's application stands"),
    Column("alternatives", Json, comment="while it waits: its tags as they may be instead"),
    Column("external", Json, comment="what it is called by external managers, and what they show of it"),
    Column("devices", Json, comment="the units of devices that it was given"),
    CheckConstraint(
        "state IN ('waiting', 'locked', 'used', 'released', 'expired', 'reclaimed', 'preempted', 'lost')",
        "state",
    ),
    CheckConstraint("(state IN ('waiting', 'locked', 'used')) = (finished_at IS NULL)", "finished"),
    Index(
        "ix_application_live_tags",
        "tags",
        postgresql_using="gin",
        postgresql_ops={"tags": "jsonb_path_ops"},
        postgresql_where=text(LIVE),
    ).ddl_if(dialect="postgresql"),
    Index(
        "ix_application_live",
        "id",
        sqlite_where=text(LIVE),
        postgresql_where=text(LIVE),
    ),
    Index(
        "ix_application_deadline",
        "deadline",
        postgresql_where=text("deadline IS NOT NULL"),
        sqlite_where=text("deadline IS NOT NULL"),
    ),
    Index(
        "ix_application_finished_at",
        "finished_at",
        postgresql_where=text("finished_at IS NOT NULL"),
        sqlite_where=text("finished_at IS NOT NULL"),
    ),
    *[
        Index(
            f"ix_application_{column}",
            column,
            postgresql_where=text(f"{column} IS NOT NULL AND {live}"),
            sqlite_where=text(f"{column} IS NOT NULL AND {live}"),
        )
        for column, live in (("client", LIVE), ("name", LIVE_TOO), ("parent", LIVE_TOO))
    ],
)

application_tag = Table(
    "application_tag",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", Text, primary_key=True),
    Column("application_id", Id, primary_key=True),
    sqlite_with_rowid=False,
    comment="the tags of live applications; SQLite only, PostgreSQL indexes application.tags itself",
)

application_device = Table(
    "application_device",
    metadata,
    Column("application_id", Id, primary_key=True),
    Column("label_id", BigInteger, primary_key=True, index=True, comment="the node's label"),
    Column("device", Text, primary_key=True),
    Column("unit", BigInteger, primary_key=True),
    Column("resource_class", Text, primary_key=True),
    Column("milli", BigInteger, nullable=False, comment="thousandths of the unit"),
    CheckConstraint("milli > 0", "milli"),
    comment="the units of devices that are held just now: what a node's agent sets up",
)

device_signature = Table(
    "device_signature",
    metadata,
    Column("name", Text, primary_key=True),
    Column("attributes", Json, nullable=False),
    comment="the distinct attribute sets of all devices that were ever registered; rows never change",
)

resource_class = Table(
    "resource_class",
    metadata,
    Column("name", Text, primary_key=True),
    Column("uid", Id, nullable=False, unique=True),
    Column("spec", Json, nullable=False),
    Column("labels", Json, nullable=False),
    Column("annotations", Json, nullable=False),
    Column("created_at", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False, comment="the event that tells of its creation"),
)

application_interval = Table(
    "application_interval",
    metadata,
    Column("application_id", Id, primary_key=True),
    Column("since", BigInteger, primary_key=True),
    Column("state", Text, primary_key=True),
    Column("until", BigInteger, nullable=False),
    Column("amounts", Json, nullable=False),
    comment="what an application held before its amount was adjusted or it was booked again",
)

waiter = Table(
    "waiter",
    metadata,
    Column("label_id", BigInteger, primary_key=True),
    Column("application_id", Id, primary_key=True, index=True),
    Column("priority", BigInteger, nullable=False),
    Column("seq", BigInteger, nullable=False),
)
Index("ix_waiter_rank", waiter.c.label_id, waiter.c.priority.desc(), waiter.c.seq)

node = Table(
    "node",
    metadata,
    Column("label_id", Number, primary_key=True, autoincrement=False),
    Column("instance", Text, nullable=False, index=True),
    Column("target", BigInteger, nullable=False, unique=True),
    Column("resource_type", Text, nullable=False),
    Column("tags", Json, nullable=False),
    Column("attributes", Json, nullable=False),
    Column("devices", Json, nullable=False),
    Column("registered_at", BigInteger, nullable=False),
    Column("reason", Text),
    Column("last_heartbeat", BigInteger),
    Column("deadline", BigInteger),
    Column("removed", Boolean, nullable=False),
    Column("partition", Text, nullable=False, server_default="", comment="empty: the ledger's own node"),
    Column("client", Text, comment="the resource manager whose node it is"),
    Column("registration", BigInteger, comment="the client's registration under which it was reported"),
    Index("ix_node_client", "client", postgresql_where=text(OWNED), sqlite_where=text(OWNED)),
    Index(
        "ix_node_deadline",
        "deadline",
        postgresql_where=text("deadline IS NOT NULL"),
        sqlite_where=text("deadline IS NOT NULL"),
    ),
)

engine = Table(
    "engine",
    metadata,
    Column("instance", Text, primary_key=True),
    Column("application_id", Id, nullable=False, unique=True),
    Column("node", Text),
    Column("tags", Json, nullable=False),
    Column("registered_at", BigInteger, nullable=False),
    Column("last_heartbeat", BigInteger),
    Column("deadline", BigInteger),
    Index(
        "ix_engine_deadline",
        "deadline",
        postgresql_where=text("deadline IS NOT NULL"),
        sqlite_where=text("deadline IS NOT NULL"),
    ),
)

limit_rule = Table(
    "limit_rule",
    metadata,
    Column("id", Number, Identity(), primary_key=True),
    Column("key", Text, nullable=False, unique=True, comment="canonical text of the tags"),
    Column("tags", Json, nullable=False),
    Column("total", Json, nullable=False),
    Column("protected", Json, nullable=False),
    Column("client", Text, comment="the resource manager whose configuration says so"),
)

event = Table(
    "event",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("time", BigInteger, primary_key=True, autoincrement=False),
    Column("kind", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("label_ids", Json, nullable=False),
    Column("locked", Json, nullable=False, comment="what it adds to locked of each label"),
    Column("used", Json, nullable=False),
    Column("holders", BigInteger, nullable=False),
    Column("tags", Json),
    Column("detail", Json),
    Column("client", Text, comment="the resource manager that is told"),
    Column("answer", Json, comment="what it is told"),
    Index("ix_event_client", "client", "seq", postgresql_where=text(OWNED), sqlite_where=text(OWNED)),
    postgresql_partition_by="RANGE (time)",
)

checkpoint = Table(
    "checkpoint",
    metadata,
    Column("seq", BigInteger, primary_key=True, autoincrement=False),
    Column("label_id", BigInteger, primary_key=True, autoincrement=False),
    Column("locked", Json, nullable=False),
    Column("used", Json, nullable=False),
    Column("applications", BigInteger, nullable=False),
    Column("total", Json),
    Column("protected", Json),
    Column("closed", Text),
    comment="every balance as it was after the event of this number; label 0 marks that one was written",
)

sweep = Table(
    "sweep",
    metadata,
    Column("one", Integer, primary_key=True),
    Column("succeeded_at", BigInteger, nullable=False, comment="when a sweep last gave a sign of life"),
    Column("checkpoint_at", BigInteger, nullable=False),
)

si_client = Table(
    "si_client",
    metadata,
    Column("rm_id", Text, primary_key=True),
    Column("dialect", Text, comment="which generation of the Scheduler Interface it speaks"),
    Column("registration", BigInteger, nullable=False, comment="how often it has registered"),
    Column("registered_seq", BigInteger, nullable=False, comment="the event of its last registration"),
    Column("registered_at", BigInteger, nullable=False),
    Column("version", Text, nullable=False),
    Column("policy_group", Text, nullable=False),
    Column("build_info", Json, nullable=False),
    Column("config", Text, nullable=False),
    Column("extra_config", Json, nullable=False),
    Column("resync_until", BigInteger, comment="when what it has not reported again is given up"),
    Column("state", Text, nullable=False, server_default="running"),
    Column(
        "seen_at", BigInteger, nullable=False, server_default="0", comment="when it last gave a sign of life"
    ),
    CheckConstraint("state IN ('running', 'paused', 'stopped')", "state"),
    Index("ix_si_client_state_seen_at", "state", "seen_at"),
    Index(
        "ix_si_client_resync_until",
        "resync_until",
        postgresql_where=text("resync_until IS NOT NULL"),
        sqlite_where=text("resync_until IS NOT NULL"),
    ),
    comment="a resource manager that has registered through the Scheduler Interface",
)

si_delivery = Table(
    "si_delivery",
    metadata,
    Column("rm_id", Text, primary_key=True),
    Column("stream", Text, primary_key=True),
    Column("seq", BigInteger, nullable=False),
    comment="the last answer that was handed to the transport, for each stream of a resource manager",
)

external_provider = Table(
    "external_provider",
    metadata,
    Column("type", Text, primary_key=True, comment="which plugin asks"),
    Column("name", Text, primary_key=True),
    Column("labels", Text, nullable=False, comment="the selector over the tags of labels that it speaks for"),
    Column("config", Json, nullable=False, comment="without its secrets"),
    Column("secrets", Text, comment="encrypted; the key is outside of the database"),
    Column("stale_policy", Text, nullable=False),
    Column("refresh_seconds", BigInteger, nullable=False),
    Column("stale_seconds", BigInteger, nullable=False),
    Column("protected", Json, nullable=False, comment="of each place"),
    Column("version", BigInteger, nullable=False, comment="the event that tells of its last change"),
    Column("created_at", BigInteger, nullable=False),
    Column("updated_at", BigInteger, nullable=False),
    CheckConstraint("stale_policy IN ('deny', 'last_known', 'ignore')", "stale_policy"),
)

access_token = Table(
    "access_token",
    metadata,
    Column("id", Number, Identity(), primary_key=True),
    Column("name", Text, nullable=False, unique=True),
    Column("hash", Text, nullable=False, unique=True, comment="SHA-256 of the token, never the token"),
    Column("created_at", BigInteger, nullable=False),
    Column("revoked_at", BigInteger),
)
