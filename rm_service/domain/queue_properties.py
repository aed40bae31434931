"""Reading the properties of a queue: those with a meaning are checked, others are kept as they are."""

import re

from rm_service.domain.queue_config import QueueConfigError
from rm_service.domain.queue_fields import INT32_MAX, entry_place, read_object, read_text, read_whole
from rm_service.domain.tags import key_fault

MAX_PROPERTIES = 100

_CHOICES = {
    "application.sort.policy": ("fifo", "fair", "stateaware"),
    "application.sort.priority": ("enabled", "disabled"),
    "priority.policy": ("default", "fence"),
    "preemption.policy": ("default", "fence", "disabled"),
}
_DURATIONS = frozenset(
    {"application.unschedasks.backoff.delay", "preemption.delay", "quota.preemption.delay"}
)
_OFFSET = "priority.offset"
_SHOWN = frozenset({*_CHOICES, *_DURATIONS, _OFFSET})
_DURATION = re.compile(r"([0-9]{1,9}(\.[0-9]{1,9})?(ns|us|ms|s|m|h))+|0")


def read_properties(document: object, path: str) -> dict[str, str]:
    """The properties by name. Raises QueueConfigError."""
    fields = read_object(document, path)
    if len(fields) > MAX_PROPERTIES:
        raise QueueConfigError(path, f"at most {MAX_PROPERTIES} properties are allowed")
    return {
        name: _read_property(name, value, path, entry_place(path, at, name, _SHOWN))
        for at, (name, value) in enumerate(fields.items())
    }


def _read_property(name: str, document: object, path: str, here: str) -> str:
    if key_fault(name):
        raise QueueConfigError(path, "has a property whose name is none")
    text = str(document).lower() if isinstance(document, bool) else read_text(document, here)
    choices = _CHOICES.get(name)
    if choices and text.lower() not in choices:
        raise QueueConfigError(here, f"must be one of {', '.join(choices)}")
    if name == _OFFSET:
        read_whole(text, here, -INT32_MAX - 1, INT32_MAX)
    if name in _DURATIONS and not _DURATION.fullmatch(text):
        raise QueueConfigError(here, "must be a duration like 30s or 1m30s")
    return text
