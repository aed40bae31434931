"""What the ledger knows of external resource managers: their providers, and what those last saw."""
