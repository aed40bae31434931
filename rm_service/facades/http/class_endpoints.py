"""Resource classes over HTTP: looked at. They are created and removed by kubectl, or in its words."""

from dataclasses import dataclass

from rm_service.domain.outcomes import Code
from rm_service.facades.http.device_answer_schemas import ClassesSchema, ClassExplainedSchema, ClassSchema
from rm_service.facades.http.device_rendering import class_document, explained_document
from rm_service.facades.http.endpoints import Call, Endpoint, Reply
from rm_service.facades.http.problems import ProblemError
from rm_service.services.resource_classes import ResourceClasses

_GROUP = "Resource classes"


@dataclass(frozen=True, slots=True)
class ClassEndpoints:
    """The handlers."""

    classes: ResourceClasses

    def list(self, _: Call) -> Reply:
        """All of them, by name."""
        items = [class_document(each) for each in self.classes.standings().items]
        return Reply(200, {"items": items, "next_cursor": None})

    def read(self, call: Call) -> Reply:
        """One class."""
        _, standing = self.classes.standing(call.path["name"])
        if standing is None:
            raise _unknown(call)
        return Reply(200, class_document(standing))

    def explain(self, call: Call) -> Reply:
        """Why it selects what it selects, and what it shares with other classes."""
        explained = self.classes.explain(call.path["name"])
        if explained is None:
            raise _unknown(call)
        return Reply(200, explained_document(explained))


def _unknown(call: Call) -> ProblemError:
    return ProblemError(Code.UNKNOWN_CLASS, f"no resource class {call.path['name']}")


def endpoints(handlers: ClassEndpoints) -> list[Endpoint]:
    """The rows of the table."""
    unknown = (Code.UNKNOWN_CLASS,)
    return [
        Endpoint(
            "GET",
            "/classes",
            handlers.list,
            "List the resource classes and how many devices each has",
            _GROUP,
            {200: ClassesSchema()},
        ),
        Endpoint(
            "GET",
            "/classes/{name}",
            handlers.read,
            "One resource class",
            _GROUP,
            {200: ClassSchema()},
            problems=unknown,
        ),
        Endpoint(
            "GET",
            "/classes/{name}/explain",
            handlers.explain,
            "Which devices a class selects and why, and which classes share them",
            _GROUP,
            {200: ClassExplainedSchema()},
            problems=unknown,
        ),
    ]
