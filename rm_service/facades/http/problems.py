"""Problem documents (RFC 9457): every error that the API answers has one of the codes listed here."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus

from rm_service.domain.accounts import GATE_KEY, POOL_KEY, Shortfall
from rm_service.domain.outcomes import Code, Refused
from rm_service.domain.tags import Tags


@dataclass(frozen=True, slots=True)
class Problem:
    """What a code means: the HTTP status that it comes with, and one sentence."""

    status: HTTPStatus
    meaning: str


PROBLEMS: Mapping[str, Problem] = {
    # The request could not be read.
    "malformed_request": Problem(HTTPStatus.BAD_REQUEST, "What was sent is not HTTP."),
    "malformed_json": Problem(HTTPStatus.BAD_REQUEST, "The body is not a JSON object, or names a key twice."),
    "unauthorized": Problem(HTTPStatus.UNAUTHORIZED, "A valid token is needed: `Authorization: Bearer …`."),
    "not_found": Problem(HTTPStatus.NOT_FOUND, "There is nothing under this path."),
    "method_not_allowed": Problem(HTTPStatus.METHOD_NOT_ALLOWED, "`Allow` says what the path can be asked."),
    "not_acceptable": Problem(
        HTTPStatus.NOT_ACCEPTABLE, "`Accept` excludes JSON, and there is nothing else."
    ),
    "request_timeout": Problem(HTTPStatus.REQUEST_TIMEOUT, "The request took too long to arrive."),
    "body_too_large": Problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "The body is longer than is read."),
    "head_too_large": Problem(
        HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "Address and headers are longer than is read."
    ),
    "unsupported_media_type": Problem(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "A body must be application/json."),
    "http_version": Problem(HTTPStatus.HTTP_VERSION_NOT_SUPPORTED, "A stream needs HTTP/1.1."),
    # The request was read, and cannot be.
    "invalid_fields": Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY, "`errors` says what is wrong, field by field."
    ),
    Code.INVALID_LIMIT: Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY, "Such a limit cannot be; `errors` says why."
    ),
    Code.INVALID_RULES: Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "Such label rules cannot be."),
    # What it is about is not there.
    Code.UNKNOWN_APPLICATION: Problem(HTTPStatus.NOT_FOUND, "No application has this id."),
    Code.UNKNOWN_NODE: Problem(
        HTTPStatus.NOT_FOUND,
        "No such node (or other capacity) is registered. Asked for by an application: 409.",
    ),
    Code.UNKNOWN_ENGINE: Problem(HTTPStatus.NOT_FOUND, "No engine is registered under this instance."),
    Code.UNKNOWN_LIMIT: Problem(HTTPStatus.NOT_FOUND, "No limit has this id."),
    Code.UNKNOWN_CLASS: Problem(
        HTTPStatus.NOT_FOUND, "No resource class has this name. Asked for by an application: 409."
    ),
    Code.CLASS_EXISTS: Problem(HTTPStatus.CONFLICT, "A resource class of this name is there already."),
    Code.TOO_MANY_CLASSES: Problem(HTTPStatus.CONFLICT, "There are as many resource classes as are taken."),
    Code.TOO_MANY_SIGNATURES: Problem(
        HTTPStatus.CONFLICT, "The devices of all nodes have too many different sets of attributes."
    ),
    Code.INVALID_CLASSES: Problem(
        HTTPStatus.UNPROCESSABLE_ENTITY, "Classes cannot be asked for in this way."
    ),
    Code.UNKNOWN_PROVIDER: Problem(HTTPStatus.NOT_FOUND, "No external provider has this type and name."),
    # It does not go with what is there.
    Code.PROVIDER_TIE: Problem(
        HTTPStatus.CONFLICT, "Another provider's `labels` are as specific, and both could match one label."
    ),
    Code.ID_REUSED: Problem(HTTPStatus.CONFLICT, "The id belongs to another request; `field` differs."),
    Code.ENGINE_EXISTS: Problem(HTTPStatus.CONFLICT, "The engine, or its application, is taken by another."),
    Code.WRONG_NODE: Problem(
        HTTPStatus.CONFLICT, "The engine reports from another node than its application was granted on."
    ),
    Code.OVERFLOW: Problem(HTTPStatus.CONFLICT, "A balance would leave the range of 64 bits."),
    Code.EXPIRED: Problem(HTTPStatus.CONFLICT, "The lock's lease is over."),
    Code.NO_LOCK: Problem(HTTPStatus.CONFLICT, "The application holds nothing; `state` says what it is."),
    Code.NODE_LOST: Problem(HTTPStatus.CONFLICT, "The node was given up as lost and has to register again."),
    Code.NODE_IN_USE: Problem(HTTPStatus.CONFLICT, "Applications still hold something on the node."),
    Code.NODE_NOT_SCHEDULABLE: Problem(HTTPStatus.CONFLICT, "The node is draining or lost."),
    Code.INSUFFICIENT_RESOURCES: Problem(
        HTTPStatus.CONFLICT, "`shortfalls` names every label and dimension that is short."
    ),
    Code.LIMITS_UNKNOWN: Problem(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The service that knows the limits of `label` cannot be asked. Nothing changed; repeat later.",
    ),
    Code.NOT_DONE: Problem(
        HTTPStatus.FAILED_DEPENDENCY, "Another operation of the atomic batch was refused, so none took place."
    ),
    # It is our fault.
    "internal": Problem(HTTPStatus.INTERNAL_SERVER_ERROR, "A defect; the server's log says more."),
    "not_ready": Problem(HTTPStatus.SERVICE_UNAVAILABLE, "`checks` says what is missing."),
    "unavailable": Problem(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The database cannot be reached. Nothing changed; repeat after `Retry-After`.",
    ),
    "outcome_unknown": Problem(
        HTTPStatus.SERVICE_UNAVAILABLE,
        "The connection broke while the change was committed: ask by id what became of it.",
    ),
    "closing": Problem(HTTPStatus.SERVICE_UNAVAILABLE, "The service is stopping. Nothing changed."),
    "overloaded": Problem(HTTPStatus.SERVICE_UNAVAILABLE, "Too many requests wait already."),
}
"""Every code, in the order in which the checks are made."""

ASKED_FOR_STATUS = {Code.UNKNOWN_NODE: HTTPStatus.CONFLICT, Code.UNKNOWN_CLASS: HTTPStatus.CONFLICT}
"""Where an application asks for what is not there, its own address is right: that is a conflict."""

FieldErrors = Mapping[str, Sequence[str]]
"""Messages by the path of the field, like `operations.3.resource.memory`."""


@dataclass(slots=True)
class ProblemError(Exception):
    """Raised by a handler, answered as a problem document."""

    code: str
    detail: str
    errors: FieldErrors | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def status(self) -> int:
        return PROBLEMS[self.code].status

    def document(self) -> dict[str, object]:
        """The body of the answer."""
        return problem_document(self.code, self.detail, errors=self.errors)


def invalid_fields(errors: FieldErrors) -> ProblemError:
    """The refusal of a request some of whose fields cannot be."""
    paths = list(errors)
    more = f" (and {len(paths) - 1} more)" if len(paths) > 1 else ""
    detail = f"{paths[0]}: {' '.join(errors[paths[0]])}{more}"
    return ProblemError("invalid_fields", detail, errors=errors)


def problem_document(code: str, detail: str, status: int | None = None, **more: object) -> dict[str, object]:
    """A problem document; members of `more` that are None or empty are left out."""
    number = HTTPStatus(PROBLEMS[code].status if status is None else status)
    document: dict[str, object] = {
        "status": int(number),
        "title": number.phrase,
        "detail": detail,
        "code": str(code),
    }
    document.update((name, value) for name, value in more.items() if value)
    return document


def refusal_document(refused: Refused, *, asked_for: bool = False) -> dict[str, object]:
    """The problem document of a refusal by the ledger. `asked_for`: it answers an apply."""
    code = refused.code
    status = ASKED_FOR_STATUS.get(code) if asked_for else None
    errors = None
    if code is Code.INVALID_LIMIT and refused.field is not None:
        errors = {refused.field: [refused.detail.removeprefix(f"{refused.field}: ")]}
    return problem_document(
        code,
        refused.detail,
        status,
        shortfalls=[shortfall_document(each) for each in refused.shortfalls],
        state=refused.state,
        field=refused.field,
        label=refused.label,
        errors=errors,
    )


def shortfall_document(shortfall: Shortfall) -> dict[str, object]:
    """One label and dimension that is short, with every amount that led to it."""
    others = {"others": shortfall.others} if shortfall.others else {}
    return {
        "label": label_tags(shortfall.label),
        "dimension": shortfall.dimension,
        "requested": shortfall.requested,
        "left": shortfall.left,
        "total": shortfall.total,
        "protected": shortfall.protected,
        "locked": shortfall.locked,
        "used": shortfall.used,
        **others,
        "reason": shortfall.reason,
    }


def label_tags(label: Tags) -> Tags:
    """A label's tags as people may see them: a queue's without the mark that it is none of theirs."""
    if POOL_KEY in label:
        return {
            **{key: value for key, value in label.items() if key != POOL_KEY},
            "placement": label[POOL_KEY],
        }
    return {"app": label[GATE_KEY]} if GATE_KEY in label else label
