"""Devices and resource classes: what nodes have, what applications hold of it, what classes select."""

from typing import Any

import sqlalchemy as sa
from alembic import op

from rm_service.ledger.tables import Id

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

JSON = sa.JSON(none_as_null=True)

COLUMNS: dict[str, sa.Column[Any]] = {
    "application": sa.Column(
        "devices", JSON, nullable=True, comment="the units of devices that it was given"
    ),
    "balance": sa.Column(
        "devices", JSON, nullable=True, comment="nodes: name, signature, units, what is taken of which unit"
    ),
}


def upgrade() -> None:
    for table, column in COLUMNS.items():
        op.add_column(table, column)
    op.create_index(
        "ix_balance_waited_for",
        "balance",
        ["label_id"],
        postgresql_where=sa.text("first_priority IS NOT NULL"),
        sqlite_where=sa.text("first_priority IS NOT NULL"),
    )
    create_device_tables()
    create_classes()


def downgrade() -> None:
    for table in ("resource_class", "device_signature", "application_device"):
        op.drop_table(table)
    op.drop_index("ix_balance_waited_for", "balance")
    for table, column in COLUMNS.items():
        op.drop_column(table, column.name)


def create_device_tables() -> None:
    op.create_table(
        "application_device",
        sa.Column("application_id", Id, nullable=False),
        sa.Column("label_id", sa.BigInteger(), nullable=False, comment="the node's label"),
        sa.Column("device", sa.Text(), nullable=False),
        sa.Column("unit", sa.BigInteger(), nullable=False),
        sa.Column("resource_class", sa.Text(), nullable=False),
        sa.Column("milli", sa.BigInteger(), nullable=False, comment="thousandths of the unit"),
        sa.CheckConstraint("milli > 0", name=op.f("ck_application_device_milli")),
        sa.PrimaryKeyConstraint(
            "application_id",
            "label_id",
            "device",
            "unit",
            "resource_class",
            name=op.f("pk_application_device"),
        ),
        comment="the units of devices that are held just now: what a node's agent sets up",
    )
    op.create_index(op.f("ix_application_device_label_id"), "application_device", ["label_id"])
    op.create_table(
        "device_signature",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("attributes", JSON, nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_device_signature")),
        comment="the distinct attribute sets of all devices that were ever registered; rows never change",
    )


def create_classes() -> None:
    op.create_table(
        "resource_class",
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("uid", Id, nullable=False),
        sa.Column("spec", JSON, nullable=False),
        sa.Column("labels", JSON, nullable=False),
        sa.Column("annotations", JSON, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False, comment="the event that tells of its creation"),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_resource_class")),
        sa.UniqueConstraint("uid", name=op.f("uq_resource_class_uid")),
    )
