"""Why the ledger gave no outcome."""


class LedgerUnavailableError(Exception):
    """The database cannot be reached. Nothing was changed; try again after `retry_after` seconds."""

    def __init__(self, reason: str, retry_after: int = 1) -> None:
        self.reason = reason
        self.retry_after = retry_after
        super().__init__(f"the ledger is not available: {reason}")


class OutcomeUnknownError(Exception):
    """The connection broke while the batch was being committed, and the database cannot be asked.

    The operations may have taken place or not; only their ids can tell, later.
    """

    def __init__(self) -> None:
        super().__init__(
            "the connection broke while the change was being committed; its outcome is not known"
        )


class LedgerClosedError(Exception):
    """The ledger was closed before the operation was taken up. Nothing was changed."""

    def __init__(self) -> None:
        super().__init__("the ledger is closed")
