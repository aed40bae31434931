"""Alembic's entry: it works on the connection that `rm_service.ledger.schema` hands over."""

from alembic import context

from rm_service.ledger.tables import metadata

connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    render_as_batch=connection.dialect.name == "sqlite",
    transaction_per_migration=False,
)
with context.begin_transaction():
    context.run_migrations()
