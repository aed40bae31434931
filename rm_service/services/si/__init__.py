"""What a scheduler that speaks the Scheduler Interface wants from the ledger, whatever its dialect."""
