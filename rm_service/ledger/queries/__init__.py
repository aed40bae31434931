"""What can be asked of the ledger: questions on a connection of `Ledger.readers`, which change nothing."""
