"""Messages in logs: what is marked as secret stays out of them."""

import json
from functools import cache
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from rm_service.facades.si.proto.si_pb2 import si_secret

_HIDDEN = "***"


def redacted(message: Message) -> str:
    """One line that shows a message without the fields that `si_secret` marks, at any depth.

    Fields that this side does not know are not shown at all: they may be marked on the other.
    """
    fields = (f"{field.name}: {_shown(field, value)}" for field, value in message.ListFields())
    return f"{message.DESCRIPTOR.name}{{{', '.join(fields)}}}"


@cache
def _is_secret(field: FieldDescriptor) -> bool:
    # Generated stubs do not say what an extension extends.
    return bool(field.GetOptions().Extensions[si_secret])  # type: ignore[index]


def _shown(field: FieldDescriptor, value: Any) -> str:  # noqa: ANN401 - whatever a field may hold
    if _is_secret(field):
        return _HIDDEN
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        of_values = entry.fields_by_name["value"]
        return f"{{{', '.join(f'{json.dumps(key)}: {_one(of_values, value[key])}' for key in value)}}}"
    if field.is_repeated:
        return f"[{', '.join(_one(field, item) for item in value)}]"
    return _one(field, value)


def _one(field: FieldDescriptor, value: Any) -> str:  # noqa: ANN401 - whatever a field may hold
    if isinstance(value, Message):
        return redacted(value)
    if field.enum_type is not None:
        known = field.enum_type.values_by_number.get(value)
        return str(value) if known is None else known.name
    return json.dumps(value, default=repr)  # escapes what could break a line or steer a terminal
