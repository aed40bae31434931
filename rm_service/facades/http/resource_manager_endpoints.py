"""Resource managers over HTTP: who has registered through the Scheduler Interface."""

from dataclasses import dataclass

from rm_service.facades.http.answer_schemas import ResourceManagersSchema
from rm_service.facades.http.endpoints import Call, Endpoint, Reply
from rm_service.facades.http.rendering import resource_manager_document
from rm_service.services.books import Books


@dataclass(frozen=True, slots=True)
class ResourceManagerEndpoints:
    """The handlers."""

    books: Books

    def list(self, _: Call) -> Reply:
        """All of them."""
        items = [resource_manager_document(each) for each in self.books.resource_managers()]
        return Reply(200, {"items": items})


def endpoints(handlers: ResourceManagerEndpoints) -> list[Endpoint]:
    """The rows of the table."""
    return [
        Endpoint(
            "GET",
            "/resource-managers",
            handlers.list,
            "List the resource managers of the Scheduler Interface",
            "Scheduler Interface",
            {200: ResourceManagersSchema()},
        )
    ]
