"""Numbers that an enum of a message does not have: each is said in the log once."""

from threading import Lock

import structlog
from google.protobuf.message import Message

from rm_service.services.si.scheduler import MAX_RM_ID

REMEMBERED = 1_000

_log = structlog.get_logger(__name__)


class UnknownNumbers:
    """Those that this process has come across. Every method may be called from any thread.

    At most `remembered` are kept; what comes after these is not logged any more, for a client that makes
    numbers up must fill neither the memory nor the log.
    """

    def __init__(self, remembered: int = REMEMBERED) -> None:
        self._remembered = remembered
        self._known: set[tuple[str, int]] = set()
        self._lock = Lock()

    def note(self, message: Message, field: str, rm_id: str) -> None:
        """This message of a resource manager has such a number in this field of it."""
        name, number = f"{message.DESCRIPTOR.full_name}.{field}", getattr(message, field)
        with self._lock:
            if (name, number) in self._known or len(self._known) >= self._remembered:
                return
            self._known.add((name, number))
        # It may not have registered yet: until then nothing has bounded its name.
        _log.warning("si_unknown_enum", field=name, number=number, rm_id=rm_id[:MAX_RM_ID])
