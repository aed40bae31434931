"""External resources: what other managers were last seen to have, and of our applications."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True)

COLUMNS: dict[str, list[sa.Column[Any]]] = {
    "application": [
        sa.Column(
            "alternatives", JSON, nullable=True, comment="while it waits: its tags as they may be instead"
        ),
        sa.Column(
            "external",
            JSON,
            nullable=True,
            comment="what it is called by external managers, and what they show of it",
        ),
    ],
    "balance": [
        sa.Column(
            "seen",
            JSON,
            server_default="{}",
            nullable=False,
            comment="external labels: what is shown of ours",
        ),
        sa.Column("observation", JSON, nullable=True, comment="external labels: the last look at the place"),
    ],
}


def upgrade() -> None:
    for table, columns in COLUMNS.items():
        for column in columns:
            op.add_column(table, column)
    create_providers()


def downgrade() -> None:
    for table, columns in COLUMNS.items():
        for column in columns:
            op.drop_column(table, column.name)
    op.drop_table("external_provider")


def create_providers() -> None:
    op.create_table(
        "external_provider",
        sa.Column("type", sa.Text(), nullable=False, comment="which plugin asks"),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column(
            "labels",
            sa.Text(),
            nullable=False,
            comment="the selector over the tags of labels that it speaks for",
        ),
        sa.Column("config", JSON, nullable=False, comment="without its secrets"),
        sa.Column(
            "secrets", sa.Text(), nullable=True, comment="encrypted; the key is outside of the database"
        ),
        sa.Column("stale_policy", sa.Text(), nullable=False),
        sa.Column("refresh_seconds", sa.BigInteger(), nullable=False),
        sa.Column("stale_seconds", sa.BigInteger(), nullable=False),
        sa.Column("protected", JSON, nullable=False, comment="of each place"),
        sa.Column(
            "version", sa.BigInteger(), nullable=False, comment="the event that tells of its last change"
        ),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "stale_policy IN ('deny', 'last_known', 'ignore')", name=op.f("ck_external_provider_stale_policy")
        ),
        sa.PrimaryKeyConstraint("type", "name", name=op.f("pk_external_provider")),
    )
