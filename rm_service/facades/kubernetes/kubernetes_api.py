"""The Kubernetes façade as a whole: what stands below /api, /apis, /openapi and /version for kubectl.

Requests come from the HTTP server's own routes, without a web framework; watches stay on its event loop.
"""

import time
from collections.abc import Callable
from http import HTTPStatus
from urllib.parse import parse_qsl

from rm_service.facades.kubernetes import discovery, openapi
from rm_service.facades.kubernetes.answers import answer, refusal
from rm_service.facades.kubernetes.class_history import ClassHistory
from rm_service.facades.kubernetes.class_requests import ClassRequests, form_of, from_the_future
from rm_service.facades.kubernetes.class_watches import LEAST_SECONDS, ClassWatches
from rm_service.facades.kubernetes.failures import status_of
from rm_service.facades.kubernetes.group import CLASSES_PATH, CORE_EVENTS_PATH, GROUP_PATH, VERSION_PATH
from rm_service.facades.kubernetes.media_types import JSON, check_accept, read_discovery_version
from rm_service.facades.kubernetes.parameters import Parameters, read_parameters
from rm_service.facades.kubernetes.statuses import (
    expired,
    method_not_allowed,
    nothing_here,
    too_large,
)
from rm_service.facades.kubernetes.watcher import Wanted
from rm_service.hosting.answer import Answer
from rm_service.hosting.authentication import NOBODY, Authentication
from rm_service.hosting.request_log import NO_ROUTE, RequestLog
from rm_service.hosting.streams import Stream, StreamRequest, StreamRoute
from rm_service.ledger.tailer import Tailer
from rm_service.services.resource_classes import ResourceClasses

Page = Callable[[StreamRequest], Answer]

_ONE_CLASS = f"{CLASSES_PATH}/{{name}}"
_CLASS_ALLOWED = ("DELETE", "GET", "PATCH", "PUT")
_COLLECTION_ALLOWED = ("GET", "POST")


class KubernetesApi:
    """Start it before the HTTP server, whose stream route it gives; stop it after. `max_body` is in bytes."""

    def __init__(
        self,
        classes: ResourceClasses,
        tailer: Tailer,
        authentication: Authentication,
        request_log: RequestLog,
        *,
        max_body: int,
        least_seconds: float = LEAST_SECONDS,
    ) -> None:
        self._history = ClassHistory(classes.ledger)
        self._requests = ClassRequests(classes, self._history.head)
        self._watches = ClassWatches(classes.standings, self._history, tailer, least_seconds=least_seconds)
        self._authentication = authentication
        self._request_log = request_log
        self.route = StreamRoute(_matches, self._open, too_large=refusal(too_large(max_body)))

    @property
    def open_watches(self) -> int:
        return len(self._watches)

    def start(self) -> None:
        self._watches.start()

    def stop(self) -> None:
        self._watches.stop()

    def _open(self, request: StreamRequest) -> Stream | Answer:
        """On a request thread, which for a change waits for the commit."""
        began, caller = time.perf_counter(), NOBODY
        result: Stream | Answer
        try:
            caller = self._authentication.caller(request.headers.get("authorization"))
            result = self._answer(request)
        except Exception as error:  # noqa: BLE001 - every error has its Status
            result = refusal(status_of(error, request.path))
        self._request_log.answered(
            method=request.method,
            path=request.path,
            route=_route(request.path),
            status=int(HTTPStatus.OK if isinstance(result, Stream) else result.status),
            seconds=time.perf_counter() - began,
            caller=caller,
        )
        return result

    def _answer(self, request: StreamRequest) -> Stream | Answer:
        page = _PAGES.get(request.path)
        if page is not None:
            if request.method != "GET":
                raise method_not_allowed(("GET",))
            return page(request)
        parameters = read_parameters(request.query)
        if request.path == CLASSES_PATH:
            return self._collection(request, parameters)
        name = request.path.removeprefix(f"{CLASSES_PATH}/")
        if name == request.path or not name or "/" in name:
            raise nothing_here()
        return self._class(request, parameters, name)

    def _collection(self, request: StreamRequest, parameters: Parameters) -> Stream | Answer:
        match request.method:
            case "GET" if parameters.watch:
                return self._watch(request, parameters)
            case "GET":
                return self._requests.list_all(request, parameters)
            case "POST":
                return self._requests.create(request, parameters)
        raise method_not_allowed(_COLLECTION_ALLOWED)

    def _class(self, request: StreamRequest, parameters: Parameters, name: str) -> Answer:
        match request.method:
            case "GET":
                return self._requests.get(request, parameters, name)
            case "DELETE":
                return self._requests.delete(request, parameters, name)
            case "PUT":
                return self._requests.replace(request, parameters, name)
            case "PATCH":
                return self._requests.patch(request, parameters, name)
        raise method_not_allowed(_CLASS_ALLOWED)

    def _watch(self, request: StreamRequest, parameters: Parameters) -> Stream:
        """Raises StatusError: with 410 the client is to list anew."""
        form, chosen, after = form_of(request, parameters), parameters.chosen, parameters.resource_version
        initial, bookmarks = parameters.initial_events, parameters.bookmarks
        head = self._history.head()
        if after is not None:
            if after > head:
                raise from_the_future(after, head)
            if not initial and not self._history.reaches(after, head):
                raise expired(f"too old resource version: {after} ({head})")
        if initial is not None:
            # It is said whether everything comes first; else that is so where no version is.
            after = None if initial else after or head
        wanted = Wanted(
            form,
            chosen,
            after,
            bookmarks,
            initial_end=bool(initial) and bookmarks,
            seconds=parameters.timeout_seconds,
        )
        return self._watches.open(wanted, head)


def _core(request: StreamRequest) -> Answer:
    return _discovery(request, core=True)


def _groups(request: StreamRequest) -> Answer:
    return _discovery(request, core=False)


def _discovery(request: StreamRequest, *, core: bool) -> Answer:
    form = read_discovery_version(request.headers.get("accept", ""))
    if form is None:
        return answer(discovery.core_versions() if core else discovery.groups())
    document = discovery.aggregated(form, core=core)
    return answer(document, content_type=discovery.aggregated_type(form))


def _json(document: Callable[[], object]) -> Page:
    def page(request: StreamRequest) -> Answer:
        check_accept(request.headers.get("accept", ""))
        return answer(document())

    return page


def _openapi(document: Callable[[], bytes]) -> Page:
    def page(request: StreamRequest) -> Answer:
        check_accept(request.headers.get("accept", ""))
        body = document()
        headers = [("Content-Type", JSON), ("Content-Length", str(len(body))), ("Cache-Control", "no-cache")]
        return Answer(HTTPStatus.OK, headers, body)

    return page


_PAGES: dict[str, Page] = {
    "/api": _core,
    "/apis": _groups,
    GROUP_PATH: _json(discovery.group),
    VERSION_PATH: _json(discovery.resources),
    "/version": _json(discovery.version),
    openapi.OPENAPI: _openapi(openapi.index),
    openapi.GROUP_DOCUMENT: _openapi(openapi.group_document),
    CORE_EVENTS_PATH: _json(discovery.no_events),
}


def _matches(request: StreamRequest) -> bool:
    path = request.path
    if path.startswith("/api/"):
        # The native API's path too; `involvedObject` is a word of kubectl alone.
        return path == CORE_EVENTS_PATH and any(
            name == "fieldSelector" and value.startswith("involvedObject.")
            for name, value in parse_qsl(request.query)
        )
    return path in {"/api", "/apis", "/version"} or path.startswith(("/apis/", "/openapi/"))


def _route(path: str) -> str:
    """The row that answers it, under which it is counted: it names no class."""
    if path in _PAGES or path == CLASSES_PATH:
        return path
    return _ONE_CLASS if path.startswith(f"{CLASSES_PATH}/") else NO_ROUTE
