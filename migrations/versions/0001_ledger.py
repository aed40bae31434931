"""The ledger's first tables."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True)
SEARCHED_JSON = JSON.with_variant(postgresql.JSONB(none_as_null=True), "postgresql")
ID = sa.String(length=36).with_variant(postgresql.UUID(as_uuid=False), "postgresql")
NUMBER = sa.BigInteger().with_variant(sa.Integer(), "sqlite")

TABLES = (
    "access_token",
    "application",
    "application_interval",
    "application_tag",
    "balance",
    "checkpoint",
    "engine",
    "event",
    "label",
    "label_tag",
    "ledger_head",
    "limit_rule",
    "node",
    "rule_set",
    "sweep",
    "waiter",
)


def upgrade() -> None:
    op.create_table(
        "access_token",
        sa.Column("id", NUMBER, sa.Identity(always=False), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("hash", sa.Text(), nullable=False, comment="SHA-256 of the token, never the token"),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("revoked_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_access_token")),
        sa.UniqueConstraint("hash", name=op.f("uq_access_token_hash")),
        sa.UniqueConstraint("name", name=op.f("uq_access_token_name")),
    )
    op.create_table(
        "application",
        sa.Column("id", ID, nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("tags", SEARCHED_JSON, nullable=False),
        sa.Column("label_ids", JSON, nullable=False, comment="the labels that it is charged to"),
        sa.Column("requested", JSON, nullable=False),
        sa.Column("used", JSON, nullable=True),
        sa.Column("request", JSON, nullable=False, comment="the body as it was sent"),
        sa.Column("priority", sa.BigInteger(), nullable=False),
        sa.Column("lock_seconds", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("locked_at", sa.BigInteger(), nullable=True),
        sa.Column("used_at", sa.BigInteger(), nullable=True),
        sa.Column("finished_at", sa.BigInteger(), nullable=True),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("deadline", sa.BigInteger(), nullable=True),
        sa.Column("over_limit", sa.Boolean(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("engine", sa.Text(), nullable=True),
        sa.Column("waits_on", JSON, nullable=False),
        sa.Column("wait_seq", sa.BigInteger(), nullable=True),
        sa.Column("placement", JSON, nullable=True),
        sa.CheckConstraint(
            "(state IN ('waiting', 'locked', 'used')) = (finished_at IS NULL)",
            name=op.f("ck_application_finished"),
        ),
        sa.CheckConstraint(
            "state IN ('waiting', 'locked', 'used', 'released', 'expired', 'reclaimed', 'preempted', 'lost')",
            name=op.f("ck_application_state"),
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_application")),
    )
    op.create_index(
        "ix_application_deadline",
        "application",
        ["deadline"],
        unique=False,
        postgresql_where=sa.text("deadline IS NOT NULL"),
        sqlite_where=sa.text("deadline IS NOT NULL"),
    )
    op.create_index(
        "ix_application_finished_at",
        "application",
        ["finished_at"],
        unique=False,
        postgresql_where=sa.text("finished_at IS NOT NULL"),
        sqlite_where=sa.text("finished_at IS NOT NULL"),
    )
    op.create_index(
        "ix_application_live",
        "application",
        ["id"],
        unique=False,
        sqlite_where=sa.text("finished_at IS NULL"),
        postgresql_where=sa.text("finished_at IS NULL"),
    )
    if op.get_bind().dialect.name == "postgresql":
        op.create_index(
            "ix_application_live_tags",
            "application",
            ["tags"],
            unique=False,
            postgresql_using="gin",
            postgresql_ops={"tags": "jsonb_path_ops"},
            postgresql_where=sa.text("finished_at IS NULL"),
        )
    op.create_table(
        "application_interval",
        sa.Column("application_id", ID, nullable=False),
        sa.Column("since", sa.BigInteger(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("until", sa.BigInteger(), nullable=False),
        sa.Column("amounts", JSON, nullable=False),
        sa.PrimaryKeyConstraint("application_id", "since", "state", name=op.f("pk_application_interval")),
        comment="what an application held before its amount was adjusted or it was booked again",
    )
    op.create_table(
        "application_tag",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("application_id", ID, nullable=False),
        sa.PrimaryKeyConstraint("key", "value", "application_id", name=op.f("pk_application_tag")),
        comment="the tags of live applications; SQLite only, PostgreSQL indexes application.tags itself",
        sqlite_with_rowid=False,
    )
    op.create_table(
        "balance",
        sa.Column("label_id", NUMBER, autoincrement=False, nullable=False),
        sa.Column("locked", JSON, nullable=False),
        sa.Column("used", JSON, nullable=False),
        sa.Column("applications", sa.BigInteger(), nullable=False, comment="how many hold something here"),
        sa.Column("total", JSON, nullable=True, comment="capacity labels: what is registered"),
        sa.Column("protected", JSON, nullable=True),
        sa.Column("closed", sa.Text(), nullable=True, comment="why a capacity label takes nothing new"),
        sa.Column("first_priority", sa.BigInteger(), nullable=True, comment="rank of the first waiter"),
        sa.Column("first_seq", sa.BigInteger(), nullable=True),
        sa.Column("wake", sa.Boolean(), nullable=False, comment="its queue is to be looked at"),
        sa.Column("is_pool", sa.Boolean(), nullable=False, comment="a queue of those who ask for a node"),
        sa.CheckConstraint(
            "replace(CAST(locked AS TEXT), ' ', '')"
            " = replace(replace(CAST(locked AS TEXT), ' ', ''), ':-', '')",
            name=op.f("ck_balance_locked"),
        ),
        sa.CheckConstraint(
            "replace(CAST(used AS TEXT), ' ', '') = replace(replace(CAST(used AS TEXT), ' ', ''), ':-', '')",
            name=op.f("ck_balance_used"),
        ),
        sa.CheckConstraint("applications >= 0", name=op.f("ck_balance_applications")),
        sa.PrimaryKeyConstraint("label_id", name=op.f("pk_balance")),
        postgresql_with={"fillfactor": 50},
    )
    op.create_index(
        "ix_balance_lost",
        "balance",
        ["label_id"],
        unique=False,
        postgresql_where=sa.text("closed = 'lost'"),
        sqlite_where=sa.text("closed = 'lost'"),
    )
    op.create_index(
        "ix_balance_pool",
        "balance",
        ["label_id"],
        unique=False,
        postgresql_where=sa.text("is_pool AND first_priority IS NOT NULL"),
        sqlite_where=sa.text("is_pool AND first_priority IS NOT NULL"),
    )
    op.create_index(
        "ix_balance_wake",
        "balance",
        ["label_id"],
        unique=False,
        postgresql_where=sa.text("wake"),
        sqlite_where=sa.text("wake"),
    )
    op.create_table(
        "checkpoint",
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("label_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("locked", JSON, nullable=False),
        sa.Column("used", JSON, nullable=False),
        sa.Column("applications", sa.BigInteger(), nullable=False),
        sa.Column("total", JSON, nullable=True),
        sa.Column("protected", JSON, nullable=True),
        sa.Column("closed", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("seq", "label_id", name=op.f("pk_checkpoint")),
        comment="every balance as it was after the event of this number; label 0 marks that one was written",
    )
    op.create_table(
        "engine",
        sa.Column("instance", sa.Text(), nullable=False),
        sa.Column("application_id", ID, nullable=False),
        sa.Column("node", sa.Text(), nullable=True),
        sa.Column("tags", JSON, nullable=False),
        sa.Column("registered_at", sa.BigInteger(), nullable=False),
        sa.Column("last_heartbeat", sa.BigInteger(), nullable=True),
        sa.Column("deadline", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("instance", name=op.f("pk_engine")),
        sa.UniqueConstraint("application_id", name=op.f("uq_engine_application_id")),
    )
    op.create_index(
        "ix_engine_deadline",
        "engine",
        ["deadline"],
        unique=False,
        postgresql_where=sa.text("deadline IS NOT NULL"),
        sqlite_where=sa.text("deadline IS NOT NULL"),
    )
    op.create_table(
        "event",
        sa.Column("seq", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("time", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("subject", sa.Text(), nullable=False),
        sa.Column("label_ids", JSON, nullable=False),
        sa.Column("locked", JSON, nullable=False, comment="what it adds to locked of each label"),
        sa.Column("used", JSON, nullable=False),
        sa.Column("holders", sa.BigInteger(), nullable=False),
        sa.Column("tags", JSON, nullable=True),
        sa.Column("detail", JSON, nullable=True),
        sa.PrimaryKeyConstraint("seq", "time", name=op.f("pk_event")),
        postgresql_partition_by="RANGE (time)",
    )
    op.create_table(
        "label",
        sa.Column("id", NUMBER, autoincrement=False, nullable=False),
        sa.Column("key", sa.Text(), nullable=False, comment="canonical text of the tags"),
        sa.Column("key_set", sa.Text(), nullable=False, comment="the tag keys, sorted, comma separated"),
        sa.Column("tags", JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_label")),
        sa.UniqueConstraint("key", name=op.f("uq_label_key")),
    )
    op.create_index(op.f("ix_label_key_set"), "label", ["key_set"], unique=False)
    op.create_table(
        "label_tag",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("label_id", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("key", "value", "label_id", name=op.f("pk_label_tag")),
    )
    op.create_table(
        "ledger_head",
        sa.Column(
            "one", sa.Integer(), nullable=False, comment="always 1: whoever holds this row has the turn"
        ),
        sa.Column("seq", sa.BigInteger(), nullable=False, comment="number of the last event"),
        sa.Column("time", sa.BigInteger(), nullable=False, comment="time of the last event"),
        sa.Column(
            "epoch", sa.BigInteger(), nullable=False, comment="raised by each change of rules or limits"
        ),
        sa.Column("targets", sa.BigInteger(), nullable=False, comment="highest node number ever given"),
        sa.Column("labels", sa.BigInteger(), nullable=False, comment="highest label number ever given"),
        sa.PrimaryKeyConstraint("one", name=op.f("pk_ledger_head")),
    )
    op.create_table(
        "limit_rule",
        sa.Column("id", NUMBER, sa.Identity(always=False), nullable=False),
        sa.Column("key", sa.Text(), nullable=False, comment="canonical text of the tags"),
        sa.Column("tags", JSON, nullable=False),
        sa.Column("total", JSON, nullable=False),
        sa.Column("protected", JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_limit_rule")),
        sa.UniqueConstraint("key", name=op.f("uq_limit_rule_key")),
    )
    op.create_table(
        "node",
        sa.Column("label_id", NUMBER, autoincrement=False, nullable=False),
        sa.Column("instance", sa.Text(), nullable=False),
        sa.Column("target", sa.BigInteger(), nullable=False),
        sa.Column("resource_type", sa.Text(), nullable=False),
        sa.Column("tags", JSON, nullable=False),
        sa.Column("attributes", JSON, nullable=False),
        sa.Column("devices", JSON, nullable=False),
        sa.Column("registered_at", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("last_heartbeat", sa.BigInteger(), nullable=True),
        sa.Column("deadline", sa.BigInteger(), nullable=True),
        sa.Column("removed", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("label_id", name=op.f("pk_node")),
        sa.UniqueConstraint("target", name=op.f("uq_node_target")),
    )
    op.create_index(
        "ix_node_deadline",
        "node",
        ["deadline"],
        unique=False,
        postgresql_where=sa.text("deadline IS NOT NULL"),
        sqlite_where=sa.text("deadline IS NOT NULL"),
    )
    op.create_index(op.f("ix_node_instance"), "node", ["instance"], unique=False)
    op.create_table(
        "rule_set",
        sa.Column("one", sa.Integer(), nullable=False),
        sa.Column("document", JSON, nullable=False, comment="conversions and label rules in force"),
        sa.PrimaryKeyConstraint("one", name=op.f("pk_rule_set")),
    )
    op.create_table(
        "sweep",
        sa.Column("one", sa.Integer(), nullable=False),
        sa.Column(
            "succeeded_at", sa.BigInteger(), nullable=False, comment="when a sweep last gave a sign of life"
        ),
        sa.Column("checkpoint_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("one", name=op.f("pk_sweep")),
    )
    op.create_table(
        "waiter",
        sa.Column("label_id", sa.BigInteger(), nullable=False),
        sa.Column("application_id", ID, nullable=False),
        sa.Column("priority", sa.BigInteger(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("label_id", "application_id", name=op.f("pk_waiter")),
    )
    op.create_index(op.f("ix_waiter_application_id"), "waiter", ["application_id"], unique=False)
    op.create_index(
        "ix_waiter_rank", "waiter", ["label_id", sa.literal_column("priority DESC"), "seq"], unique=False
    )
    _first_rows()


def _first_rows() -> None:
    """The rows of which there is always exactly one."""
    op.execute("INSERT INTO ledger_head (one, seq, time, epoch, targets, labels) VALUES (1, 0, 0, 1, 0, 0)")
    op.execute("INSERT INTO sweep (one, succeeded_at, checkpoint_at) VALUES (1, 0, 0)")
    empty = '{"conversions": {}, "label_rules": []}'
    op.get_bind().exec_driver_sql(f"INSERT INTO rule_set (one, document) VALUES (1, '{empty}')")  # noqa: S608
    if op.get_bind().dialect.name == "postgresql":
        op.execute("CREATE TABLE event_default PARTITION OF event DEFAULT")


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
