"""The ledger: tables, the one writer, leases, waits, the outbox, and what can be asked of them."""
