"""What the service tells about itself: structured logs, and metrics for Prometheus."""

import logging
import sys
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.process_collector import ProcessCollector

LATENCIES = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
"""Upper bounds of the buckets in seconds."""
REQUEST_ID: ContextVar[str | None] = ContextVar("request_id", default=None)
"""The id of the request that this thread answers; every line logged meanwhile carries it."""
_SECRETS = frozenset({"authorization", "token", "password", "secret"})


def set_up_logging(level: str, form: str) -> None:
    """Log to standard error as lines for people (`console`) or as JSON (`json`), libraries included."""
    shared: list[Any] = [
        _with_request_id,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        _without_secrets,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.PositionalArgumentsFormatter(),
            structlog.processors.StackInfoRenderer(),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.make_filtering_bound_logger(level),
        cache_logger_on_first_use=True,
    )
    last: list[Any] = [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    if form == "console":
        # Without the values of variables: one of them may be a secret.
        plain = structlog.dev.plain_traceback
        last = [structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=plain)]
    formatter = structlog.stdlib.ProcessorFormatter(
        processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *last],
        foreign_pre_chain=shared,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(formatter)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for noisy in ("apscheduler", "alembic"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


def _with_request_id(_logger: object, _method: str, event: Any) -> Any:  # noqa: ANN401 - structlog's own types
    request_id = REQUEST_ID.get()
    if request_id is not None:
        event["request_id"] = request_id
    return event


def _without_secrets(_logger: object, _method: str, event: Any) -> Any:  # noqa: ANN401 - structlog's own types
    for name in event:
        if name.lower() in _SECRETS:
            event[name] = "(hidden)"
    return event


class Metrics:
    """The counters of one process. Each method may be called from any thread."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        registry = self._registry
        self._requests = Counter(
            "rm_http_requests", "Requests answered", ["method", "path", "status"], registry=registry
        )
        self._seconds = Histogram(
            "rm_http_request_seconds",
            "Time to answer",
            ["method", "path"],
            buckets=LATENCIES,
            registry=registry,
        )
        self._operations = Counter(
            "rm_operations",
            "Operations decided, by what became of them",
            ["operation", "outcome"],
            registry=registry,
        )
        self._commits = Counter("rm_ledger_commits", "Batches committed", registry=registry)
        self._sweeps = Counter("rm_sweeps", "Sweeps, by how they ended", ["result"], registry=registry)
        self._swept = Counter("rm_swept", "What sweeps ended", ["kind"], registry=registry)
        self._requests_of: dict[tuple[str, str, int], tuple[Any, Any]] = {}
        self._operations_of: dict[tuple[str, str], Any] = {}

    def request(self, method: str, path: str, status: int, seconds: float) -> None:
        """One request was answered; `path` is a row of the table of endpoints, not what was asked."""
        key = (method, path, status)
        found = self._requests_of.get(key)
        if found is None:
            found = (self._requests.labels(method, path, status), self._seconds.labels(method, path))
            self._requests_of[key] = found
        found[0].inc()
        found[1].observe(seconds)

    def operation(self, operation: str, outcome: str, count: int = 1) -> None:
        """Operations were decided: done, repeated, or refused with a code."""
        key = (operation, outcome)
        found = self._operations_of.get(key)
        if found is None:
            found = self._operations_of[key] = self._operations.labels(operation, outcome)
        found.inc(count)

    def commit(self) -> None:
        """One batch was committed."""
        self._commits.inc()

    def sweep(self, **ended: int) -> None:
        """One sweep got through, and ended so many of each kind."""
        self._sweeps.labels("done").inc()
        for kind, count in ended.items():
            self._swept.labels(kind).inc(count)

    def sweep_failed(self) -> None:
        """One sweep did not get through."""
        self._sweeps.labels("failed").inc()

    @property
    def registry(self) -> CollectorRegistry:
        """Where others add what they count."""
        return self._registry

    def gauge(self, name: str, description: str, value: Callable[[], float]) -> None:
        """Show a number that is asked for whenever somebody looks."""
        Gauge(name, description, registry=self._registry).set_function(value)

    def text(self) -> bytes:
        """Everything in the text format of Prometheus."""
        return generate_latest(self._registry)
