"""The plug-in: asks, reads, and says whether the endpoint answers."""

from collections.abc import Sequence
from typing import Any

from external_providers.base import (
    ExternalApplication,
    ExternalResourceProvider,
    ExternalResourceRequest,
    Health,
    MalformedError,
    Place,
    health_by,
)
from external_providers.http_json.config import IDENTITY, PARSER
from external_providers.http_json.fetching import Endpoint, fetch
from external_providers.http_json.reading import read_applications, read_json, read_places


class HttpJsonProvider(ExternalResourceProvider):
    """Places and applications from any endpoint that answers JSON."""

    identity = IDENTITY
    parser = PARSER

    def applications(self, request: ExternalResourceRequest) -> Sequence[ExternalApplication]:
        params = request.provider.params
        if "applications" not in params:
            return []
        endpoint = _endpoint(request, params["applications"].get("url"))
        return read_applications(_document(endpoint, request), params)

    def places(self, request: ExternalResourceRequest) -> Sequence[Place]:
        return read_places(_document(_endpoint(request), request), request.provider.params)

    def health(self, request: ExternalResourceRequest) -> Health:
        """One question, as for `places`: a page that answers 200 and says something else is not well."""
        return health_by(lambda: f"{_endpoint(request)} answers, {len(self.places(request))} places")


def _endpoint(request: ExternalResourceRequest, url: str | None = None) -> Endpoint:
    params: Any = request.provider.params
    return Endpoint(
        url=url or params["url"],
        headers=params["headers"],
        connect_seconds=params["connect_timeout_seconds"],
        verify=params["verify"],
        ca_file=params["ca_file"],
    )


def _document(endpoint: Endpoint, request: ExternalResourceRequest) -> object:
    body = fetch(endpoint, request.timeout_seconds)
    try:
        return read_json(body)
    except MalformedError as error:
        raise MalformedError(f"{endpoint}: {error}") from None
