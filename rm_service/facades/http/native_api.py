"""The native API: every endpoint, in the order in which the documents show them."""

from dataclasses import dataclass
from functools import partial

from rm_service.facades.http import (
    application_endpoints,
    book_endpoints,
    class_endpoints,
    engine_endpoints,
    limit_endpoints,
    node_endpoints,
    provider_endpoints,
    resource_manager_endpoints,
)
from rm_service.facades.http.application_polls import ApplicationPolls
from rm_service.facades.http.assignment_stream import AssignmentStreams
from rm_service.facades.http.endpoints import API, Call, Endpoint
from rm_service.facades.http.error_problems import problem_of
from rm_service.facades.http.event_stream import EventStreams, answer_to
from rm_service.facades.http.json_text import write_json
from rm_service.facades.http.reading import JSON
from rm_service.facades.http.rendering import event_document
from rm_service.hosting.answer import Answer
from rm_service.hosting.authentication import Authentication, UnauthorizedError
from rm_service.hosting.streams import StreamRequest, StreamRoute
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.events import LabelledEvent
from rm_service.ledger.tailer import Tailer
from rm_service.services.applications import Applications
from rm_service.services.books import Books
from rm_service.services.engines import Engines
from rm_service.services.external.external_resources import ExternalResources
from rm_service.services.limits import Limits
from rm_service.services.nodes import Nodes
from rm_service.services.resource_classes import ResourceClasses


@dataclass(frozen=True, slots=True)
class Services:
    """The use cases behind the API."""

    applications: Applications
    nodes: Nodes
    engines: Engines
    limits: Limits
    books: Books
    external: ExternalResources
    classes: ResourceClasses


def native_endpoints(services: Services) -> list[Endpoint]:
    """The table of the whole API."""
    applications = services.applications
    return [
        *node_endpoints.endpoints(node_endpoints.NodeEndpoints(services.nodes)),
        *limit_endpoints.endpoints(limit_endpoints.LimitEndpoints(services.limits)),
        *application_endpoints.endpoints(application_endpoints.ApplicationEndpoints(applications)),
        *engine_endpoints.endpoints(engine_endpoints.EngineEndpoints(services.engines, applications)),
        *book_endpoints.endpoints(book_endpoints.BookEndpoints(services.books)),
        *resource_manager_endpoints.endpoints(
            resource_manager_endpoints.ResourceManagerEndpoints(services.books)
        ),
        *class_endpoints.endpoints(class_endpoints.ClassEndpoints(services.classes)),
        *provider_endpoints.endpoints(provider_endpoints.ProviderEndpoints(services.external)),
    ]


def stream_routes(
    ledger: Ledger, tailer: Tailer, applications: Applications, authentication: Authentication
) -> list[StreamRoute]:
    """What is answered later, or for ever, and so on the event loop: it holds no request thread."""

    def authorize(request: StreamRequest) -> None:
        try:
            authentication.caller(request.headers.get("authorization"))
        except UnauthorizedError as error:
            raise problem_of(error, request.path) from error

    handlers = application_endpoints.ApplicationEndpoints(applications)
    events = EventStreams(tailer, authorize=authorize, event_json=_event_json)
    polls = ApplicationPolls(ledger, tailer, authorize=authorize, render=partial(_application, handlers))
    assignments = AssignmentStreams(ledger, tailer, authorize=authorize)
    return [events.route, polls.route, assignments.route]


def _event_json(each: LabelledEvent) -> bytes:
    return write_json(event_document(each.event, each.labels))


def _application(handlers: application_endpoints.ApplicationEndpoints, application_id: str) -> Answer:
    """The answer to `GET /applications/{id}`, outside of Flask."""
    path = f"{API}/applications/{application_id}"
    try:
        reply = handlers.read(Call(path={"id": application_id}, query={}, body={}, caller=""))
    except Exception as error:  # noqa: BLE001 - every error has its problem document
        return answer_to(problem_of(error, path))
    body = write_json(reply.document)
    headers = [("Content-Type", JSON), ("Content-Length", str(len(body))), ("Cache-Control", "no-store")]
    return Answer(reply.status, headers, body)
