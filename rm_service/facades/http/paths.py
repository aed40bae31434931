"""What stands in a path, and where a fault of a tag stands in a body."""

from marshmallow import ValidationError

from rm_service.domain.outcomes import Code
from rm_service.domain.tags import TagError
from rm_service.facades.http.endpoints import Call
from rm_service.facades.http.fields import IdField, check_instance
from rm_service.facades.http.problems import ProblemError, invalid_fields

_ID = IdField()


def application_id(call: Call) -> str:
    """The id in the path. Raises ProblemError: what is no UUID is no application's."""
    try:
        identifier: str = _ID.deserialize(call.path["id"])
    except ValidationError as error:
        raise ProblemError(Code.UNKNOWN_APPLICATION, f"no application {call.path['id'][:100]}") from error
    return identifier


def instance(call: Call) -> str:
    """The name of a node or engine in the path. Raises ProblemError."""
    return checked_name(call, "instance")


def checked_name(call: Call, part: str) -> str:
    """This part of the path, which names something. Raises ProblemError."""
    name = call.path[part]
    try:
        check_instance(name)
    except ValidationError as error:
        raise invalid_fields({part: [str(message) for message in error.messages]}) from error
    return name


def tag_path(error: TagError) -> str:
    """The field that a fault of a tag belongs to."""
    return f"tags.{error.key}" if error.key else "tags"
