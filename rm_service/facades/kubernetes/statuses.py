"""Refusals as Kubernetes says them: an object of kind Status, with a cause for every field that is wrong."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

from rm_service.facades.kubernetes.group import GROUP, KIND, PLURAL

MAX_CAUSES = 64


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that is wrong: a path like `spec.resourceSelector[0]`, a word of Kubernetes, a sentence."""

    field: str
    reason: str
    message: str

    def document(self) -> dict[str, str]:
        return {"reason": self.reason, "message": _written(self.message), "field": _written(self.field)}


@dataclass(slots=True)
class StatusError(Exception):
    """Answered as a Status. `reason` is what clients decide by, `message` is for people."""

    code: int
    reason: str
    message: str
    name: str = ""
    causes: Sequence[Cause] = ()
    about_class: bool = True
    """Whether it is about resource classes, not about the request as such."""
    kind: str = PLURAL
    """What Kubernetes calls the kind is mostly the resource, for faults of a document the kind itself."""
    headers: Mapping[str, str] = field(default_factory=dict)
    retry_after: int | None = None
    """Seconds after which it may be asked again."""

    def document(self) -> dict[str, object]:
        """The body of the answer. What the client sent and no UTF-8 can say stands there as an escape."""
        details: dict[str, object] = {}
        if self.about_class:
            named = {"name": _written(self.name)} if self.name else {}
            details = {**named, "group": GROUP, "kind": self.kind}
        if self.causes:
            details["causes"] = [cause.document() for cause in self.causes]
        if self.retry_after is not None:
            details["retryAfterSeconds"] = self.retry_after
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": _written(self.message),
            "reason": self.reason,
            **({"details": details} if details else {}),
            "code": self.code,
        }


def success(name: str, uid: str) -> dict[str, object]:
    """The Status that says that a class was removed."""
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
        "details": {"name": name, "group": GROUP, "kind": PLURAL, "uid": uid},
    }


def not_found(name: str) -> StatusError:
    return StatusError(HTTPStatus.NOT_FOUND, "NotFound", f"{_called(name)} not found", name)


def already_exists(name: str) -> StatusError:
    return StatusError(HTTPStatus.CONFLICT, "AlreadyExists", f"{_called(name)} already exists", name)


def conflict(name: str, why: str) -> StatusError:
    """The object is not the one that the client means."""
    message = f"Operation cannot be fulfilled on {_called(name)}: {why}"
    return StatusError(HTTPStatus.CONFLICT, "Conflict", message, name)


def invalid(name: str, causes: Sequence[Cause]) -> StatusError:
    """The document is understood, but such a class cannot be; at most 64 causes are told."""
    causes = causes[:MAX_CAUSES]
    told = [f"{cause.field}: {cause.message}" for cause in causes]
    text = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    message = f'{KIND}.{GROUP} "{name}" is invalid: {text}'
    return StatusError(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, name, causes, kind=KIND)


def invalid_value(path: str, value: str, why: str) -> Cause:
    """A field that holds what cannot be there; nothing at all where something is needed."""
    if why == "is required":
        return Cause(path, "FieldValueRequired", "Required value")
    return Cause(path, "FieldValueInvalid", f'Invalid value: "{value}": {why}')


def unsupported_value(path: str, value: str, supported: Sequence[str]) -> Cause:
    """A field that holds none of the few words that it may."""
    words = ", ".join(f'"{word}"' for word in supported)
    message = f'Unsupported value: "{value}": supported values: {words}'
    return Cause(path, "FieldValueNotSupported", message)


def bad_request(message: str) -> StatusError:
    return StatusError(HTTPStatus.BAD_REQUEST, "BadRequest", message, about_class=False)


def expired(message: str) -> StatusError:
    """The client is to list again, and to go on from there."""
    return StatusError(HTTPStatus.GONE, "Expired", message, about_class=False)


def nothing_here() -> StatusError:
    message = "the server could not find the requested resource"
    return StatusError(HTTPStatus.NOT_FOUND, "NotFound", message, about_class=False)


def method_not_allowed(allowed: Sequence[str]) -> StatusError:
    message = "the server does not allow this method on the requested resource"
    headers = {"Allow": ", ".join(allowed)}
    code = HTTPStatus.METHOD_NOT_ALLOWED
    return StatusError(code, "MethodNotAllowed", message, about_class=False, headers=headers)


def not_acceptable() -> StatusError:
    message = "only the following media types are accepted: application/json"
    return StatusError(HTTPStatus.NOT_ACCEPTABLE, "NotAcceptable", message, about_class=False)


def unsupported_media_type(accepted: Sequence[str]) -> StatusError:
    message = (
        "the body of the request was in an unknown format - accepted media types include:"
        f" {', '.join(accepted)}"
    )
    code = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    return StatusError(code, "UnsupportedMediaType", message, about_class=False)


def too_large(limit: int) -> StatusError:
    message = f"the body of the request exceeds {limit} bytes"
    code = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    return StatusError(code, "RequestEntityTooLarge", message, about_class=False)


def _written(text: str) -> str:
    return text.encode(errors="backslashreplace").decode()


def _called(name: str) -> str:
    return f'{PLURAL}.{GROUP} "{name}"'
