"""The ledger's rules as pure Python: no I/O, no clock, no randomness, no framework."""
