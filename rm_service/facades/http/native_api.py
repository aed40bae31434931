"""The native API: every endpoint, in the order in which the documents show them."""

from dataclasses import dataclass

from rm_service.facades.http import (
    application_endpoints,
    book_endpoints,
    engine_endpoints,
    limit_endpoints,
    node_endpoints,
)
from rm_service.facades.http.endpoints import Endpoint
from rm_service.services.applications import Applications
from rm_service.services.books import Books
from rm_service.services.engines import Engines
from rm_service.services.limits import Limits
from rm_service.services.nodes import Nodes


@dataclass(frozen=True, slots=True)
class Services:
    """The use cases behind the API."""

    applications: Applications
    nodes: Nodes
    engines: Engines
    limits: Limits
    books: Books


def native_endpoints(services: Services) -> list[Endpoint]:
    """The table of the whole API."""
    applications = services.applications
    return [
        *node_endpoints.endpoints(node_endpoints.NodeEndpoints(services.nodes)),
        *limit_endpoints.endpoints(limit_endpoints.LimitEndpoints(services.limits)),
        *application_endpoints.endpoints(application_endpoints.ApplicationEndpoints(applications)),
        *engine_endpoints.endpoints(engine_endpoints.EngineEndpoints(services.engines, applications)),
        *book_endpoints.endpoints(book_endpoints.BookEndpoints(services.books)),
    ]
