"""Why a resource manager is refused."""


class RegistrationRefusedError(ValueError):
    """The registration cannot be; nothing of it was taken."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class NotRegisteredError(LookupError):
    """A resource manager of this id has never registered."""

    def __init__(self, rm_id: str) -> None:
        self.rm_id = rm_id
        super().__init__(f'RmID "{rm_id}" not registered')
