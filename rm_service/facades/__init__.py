"""Façades: each translates its own protocol into the ledger's operations, and the outcomes back."""
