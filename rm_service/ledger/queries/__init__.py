"""What can be asked of the ledger. Every question takes a connection of `Ledger.readers` and changes nothing."""
