"""Clients: resource managers of the Scheduler Interface, what they own and what they are told."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True)
ID = sa.String(length=36).with_variant(postgresql.UUID(as_uuid=False), "postgresql")

COLUMNS: dict[str, list[sa.Column[Any]]] = {
    "application": [
        sa.Column(
            "client", sa.Text(), nullable=True, comment="the resource manager that is told what becomes of it"
        ),
        sa.Column(
            "name", sa.Text(), nullable=True, comment="what the client calls it; several may share a name"
        ),
        sa.Column("parent", ID, nullable=True, comment="the application that it is a member of"),
        sa.Column("standing", JSON, nullable=True, comment="where a client's application stands"),
    ],
    "event": [
        sa.Column("client", sa.Text(), nullable=True, comment="the resource manager that is told"),
        sa.Column("answer", JSON, nullable=True, comment="what it is told"),
    ],
    "ledger_head": [
        sa.Column(
            "away",
            sa.Text(),
            server_default="[]",
            nullable=False,
            comment="a JSON list of clients that get nothing new",
        ),
    ],
    "limit_rule": [
        sa.Column(
            "client",
            sa.Text(),
            nullable=True,
            comment="the resource manager whose configuration says so",
        ),
    ],
    "node": [
        sa.Column(
            "partition",
            sa.Text(),
            server_default="",
            nullable=False,
            comment="empty: the ledger's own node",
        ),
        sa.Column("client", sa.Text(), nullable=True, comment="the resource manager whose node it is"),
        sa.Column(
            "registration",
            sa.BigInteger(),
            nullable=True,
            comment="the client's registration under which it was reported",
        ),
    ],
}
TABLES = ("si_client", "si_delivery")


def upgrade() -> None:
    for table, columns in COLUMNS.items():
        for column in columns:
            op.add_column(table, column)
    op.create_table(
        "si_client",
        sa.Column("rm_id", sa.Text(), nullable=False),
        sa.Column(
            "dialect",
            sa.Text(),
            nullable=True,
            comment="which generation of the Scheduler Interface it speaks",
        ),
        sa.Column("registration", sa.BigInteger(), nullable=False, comment="how often it has registered"),
        sa.Column(
            "registered_seq", sa.BigInteger(), nullable=False, comment="the event of its last registration"
        ),
        sa.Column("registered_at", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.Text(), nullable=False),
        sa.Column("policy_group", sa.Text(), nullable=False),
        sa.Column("build_info", JSON, nullable=False),
        sa.Column("config", sa.Text(), nullable=False),
        sa.Column("extra_config", JSON, nullable=False),
        sa.Column(
            "resync_until",
            sa.BigInteger(),
            nullable=True,
            comment="when what it has not reported again is given up",
        ),
        sa.Column("state", sa.Text(), server_default="running", nullable=False),
        sa.Column(
            "seen_at",
            sa.BigInteger(),
            server_default="0",
            nullable=False,
            comment="when it last gave a sign of life",
        ),
        sa.CheckConstraint("state IN ('running', 'paused', 'stopped')", name=op.f("ck_si_client_state")),
        sa.PrimaryKeyConstraint("rm_id", name=op.f("pk_si_client")),
        comment="a resource manager that has registered through the Scheduler Interface",
    )
    op.create_table(
        "si_delivery",
        sa.Column("rm_id", sa.Text(), nullable=False),
        sa.Column("stream", sa.Text(), nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("rm_id", "stream", name=op.f("pk_si_delivery")),
        comment="the last answer that was handed to the transport, for each stream of a resource manager",
    )
    _partial_index("application", ["client"], "client IS NOT NULL AND finished_at IS NULL")
    for name in ("name", "parent"):
        _partial_index("application", [name], f"{name} IS NOT NULL AND coalesce(finished_at, 0) = 0")
    _partial_index("event", ["client", "seq"], "client IS NOT NULL", "ix_event_client")
    _partial_index("node", ["client"], "client IS NOT NULL")
    _partial_index("si_client", ["resync_until"], "resync_until IS NOT NULL")
    op.create_index("ix_si_client_state_seen_at", "si_client", ["state", "seen_at"], unique=False)


def _partial_index(table: str, columns: list[str], where: str, name: str | None = None) -> None:
    op.create_index(
        name or f"ix_{table}_{columns[0]}",
        table,
        columns,
        unique=False,
        postgresql_where=sa.text(where),
        sqlite_where=sa.text(where),
    )


def downgrade() -> None:
    for table in TABLES:
        op.drop_table(table)
    for table, columns in COLUMNS.items():
        for column in columns:
            op.execute(f"DROP INDEX IF EXISTS ix_{table}_{column.name}")
            op.drop_column(table, column.name)
