"""Messages as JSON, for clients that speak HTTP: protobuf's JSON mapping, read strictly.

A name that a message does not have is an error, not something to skip: a misspelt field would change what is
booked. Names may be spelt as any dialect spells them.
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from typing import Any, NoReturn, TypeVar, cast

import orjson
from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.json_format import MessageToDict, ParseDict, ParseError
from google.protobuf.message import Message

MessageT = TypeVar("MessageT", bound=Message)


class MessageJsonError(ValueError):
    """A text is not the JSON of a message."""

    def __init__(self, field: str, reason: str) -> None:
        self.field = field
        """Where: `asks[0].priority`, or empty when it is the text as a whole."""
        self.reason = reason
        super().__init__(f"{field}: {reason}" if field else reason)


class UnknownFieldError(MessageJsonError):
    """A name stands in an object whose message has no such field."""

    def __init__(self, field: str, message_name: str) -> None:
        self.message_name = message_name
        super().__init__(field, f"{message_name} has no such field")


def parse_json(message_class: type[MessageT], text: str | bytes) -> MessageT:
    """The message that a JSON text describes.

    Raises MessageJsonError, and UnknownFieldError of it, for anything else.
    """
    try:
        document = json.loads(
            text.decode() if isinstance(text, bytes) else text,
            object_pairs_hook=_once,
            parse_constant=_refuse,
        )
    except MessageJsonError:
        raise
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise MessageJsonError("", f"not JSON: {reason}") from error
    fields = _message(document, cast("Descriptor", message_class.DESCRIPTOR), "")
    try:
        return ParseDict(fields, message_class())
    except ParseError as error:  # what was not foreseen here
        raise MessageJsonError("", str(error)) from error


def to_json(message: Message) -> str:
    """One line. Fields that are not set are left out, 64-bit integers are texts, as protobuf has it."""
    return orjson.dumps(MessageToDict(message)).decode()


# What other dialects call a field, and what this message calls it.
_ALIASES: Mapping[str, Mapping[str, str]] = {
    "si.v1.AllocationAsk": {"originator": "Originator"},
    "si.v1.AllocationAskRelease": {"allocationkey": "allocationKey"},
    "si.v1.UpdateContainerSchedulingStateRequest": {"applicartionID": "applicationID"},
    "si.v0.Allocation": {"allocationID": "UUID"},
    "si.v0.AllocationRelease": {"allocationID": "UUID"},
    "si.v0.AllocationAskRelease": {"allocationKey": "allocationkey"},
    "si.v0.UpdateContainerSchedulingStateRequest": {"applicationID": "applicartionID"},
}

_INTEGER = re.compile("-?[0-9]{1,19}")
_BITS = {FieldDescriptor.CPPTYPE_INT32: 31, FieldDescriptor.CPPTYPE_INT64: 63}


@cache
def _fields_of(descriptor: Descriptor) -> Mapping[str, FieldDescriptor]:
    fields = {field.name: field for field in descriptor.fields}
    aliases = {alias: fields[name] for alias, name in _ALIASES.get(descriptor.full_name, {}).items()}
    return {field.json_name: field for field in descriptor.fields} | fields | aliases


def _message(value: object, descriptor: Descriptor, path: str) -> dict[str, Any]:
    """An object with the fields' own names; what is null is left out."""
    document = _object(value, path)
    fields = _fields_of(descriptor)
    named: dict[str, Any] = {}
    for name, content in document.items():
        where = f"{path}.{name}" if path else name
        field = fields.get(name)
        if field is None:
            raise UnknownFieldError(where, descriptor.full_name)
        if field.name in named:
            raise MessageJsonError(where, f"the same field stands there as {field.name} too")
        if content is not None:
            named[field.name] = _field(content, field, where)
    return named


def _field(value: object, field: FieldDescriptor, path: str) -> object:
    entry = field.message_type
    if entry is not None and entry.GetOptions().map_entry:
        of_values = entry.fields_by_name["value"]
        return {
            _key(key, path): _single(content, of_values, f"{path}[{key}]")
            for key, content in _object(value, path).items()
        }
    if field.is_repeated:
        if not isinstance(value, list):
            raise MessageJsonError(path, "must be an array")
        return [_single(item, field, f"{path}[{index}]") for index, item in enumerate(value)]
    return _single(value, field, path)


def _single(value: object, field: FieldDescriptor, path: str) -> object:
    if field.message_type is not None:
        return _message(value, field.message_type, path)
    problem = _problem(value, field)
    if problem is not None:
        raise MessageJsonError(path, problem)
    return value


def _problem(value: object, field: FieldDescriptor) -> str | None:
    """What keeps a value from being one of a field's, if anything."""
    if field.enum_type is not None:
        known = field.enum_type.values_by_name
        fits = _is_integer(value, 31) if not isinstance(value, str) else value in known
        return None if fits else f"must be a number or one of {', '.join(known)}"
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return _text_problem(value)
    if field.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        return None if isinstance(value, bool) else "must be true or false"
    bits = _BITS.get(field.cpp_type)
    if bits is None or _is_integer(value, bits):
        return None
    return f"must be an integer of {bits + 1} bits"


def _key(key: str, path: str) -> str:
    problem = _text_problem(key)
    if problem is not None:
        raise MessageJsonError(path, f"a key {problem}")
    return key


def _text_problem(value: object) -> str | None:
    if not isinstance(value, str):
        return "must be a text"
    try:
        value.encode()
    except UnicodeEncodeError:
        return "holds half of a character"
    return None


def _is_integer(value: object, bits: int) -> bool:
    if isinstance(value, str):
        return _INTEGER.fullmatch(value) is not None and _is_integer(int(value), bits)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return -(2**bits) <= value < 2**bits and int(value) == value


def _object(value: object, path: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise MessageJsonError(path, "must be an object")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    document = dict(pairs)
    if len(document) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise MessageJsonError(twice[:100], "stands twice in one object")
    return document


def _refuse(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")
