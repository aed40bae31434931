"""One process of the service: settings in, everything wired, started, and stopped without losing requests."""

from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import structlog
from flask import Flask
from sqlalchemy import func, select

from rm_service.domain.providers import StalePolicy
from rm_service.facades.http.http_app import create_app
from rm_service.facades.http.native_api import Services, native_endpoints, stream_routes
from rm_service.facades.http.system_pages import add_system_pages
from rm_service.facades.kubernetes.kubernetes_api import KubernetesApi
from rm_service.facades.si.scheduler_interface import SchedulerInterface
from rm_service.hosting.authentication import Authentication
from rm_service.hosting.request_log import RequestLog
from rm_service.hosting.server import HttpServer
from rm_service.ledger import tables
from rm_service.ledger.database import reader_engine
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.ledger.schema import check_revision
from rm_service.ledger.sweeper import MISSED_SWEEPS, Sweeper, SweepReport, SweepSettings
from rm_service.ledger.tailer import Tailer
from rm_service.services.applications import Applications
from rm_service.services.books import Books
from rm_service.services.engines import Engines
from rm_service.services.external.external_resources import ExternalResources
from rm_service.services.external.keys import Keys
from rm_service.services.external.metrics import ProviderMetrics
from rm_service.services.limit_sources.http_source import http_limit_sources
from rm_service.services.limit_sources.limit_sources import LimitSources, SourceSettings
from rm_service.services.limit_sources.metrics import SourceMetrics
from rm_service.services.limits import Limits
from rm_service.services.nodes import Nodes
from rm_service.services.observed import ObservedLedger
from rm_service.services.readiness import Readiness
from rm_service.services.resource_classes import ResourceClasses
from rm_service.services.tokens import Tokens
from rm_service.settings import Settings
from rm_service.telemetry import Metrics

GRACE_SECONDS = 15.0
"""How long requests that were accepted may take when the service stops."""

_log = structlog.get_logger(__name__)


class NoTokenError(RuntimeError):
    """Requests need a token, and there is none in force: nobody could ask anything."""

    def __init__(self, bind: str) -> None:
        self.bind = bind
        super().__init__(
            f"requests to {bind} need a token and there is none:"
            " make one with `rm-service token create NAME`, or set RM_AUTH=none to let everybody in"
        )


def ledger_settings(settings: Settings) -> LedgerSettings:
    """What the ledger needs to be told."""
    return LedgerSettings(
        settings.database_url,
        settings.wait_age_seconds,
        settings.si_echo_seconds,
        settings.si_completing_seconds,
        outage_seconds=MISSED_SWEEPS * settings.sweep_seconds,
        rules=settings.rules,
    )


def limit_sources_of(ledger: Ledger, settings: Settings, metrics: Metrics) -> LimitSources | None:
    """Who keeps the limits as a configuration service says; None: there is no such service."""
    if settings.limits_url is None:
        return None
    source_settings = SourceSettings(
        key_sets=settings.limits_keys,
        refresh_seconds=settings.limits_refresh_seconds,
        stale_seconds=settings.limits_stale_seconds,
        stale_policy=StalePolicy(settings.limits_stale_policy),
        timeout_seconds=settings.limits_timeout_seconds,
    )
    return http_limit_sources(
        ledger,
        settings.limits_url,
        source_settings,
        token_file=settings.limits_token_file,
        metrics=SourceMetrics(metrics.registry),
    )


def services_of(
    ledger: Ledger,
    settings: Settings,
    external: ExternalResources,
    limit_sources: LimitSources | None = None,
) -> Services:
    """The use cases on one ledger."""
    unknown_limits = None if limit_sources is None else limit_sources.unknown
    return Services(
        applications=Applications(
            ledger,
            settings.lock_seconds,
            external.observing.before,
            unknown_limits,
            settings.device_strategy,
        ),
        nodes=Nodes(ledger, settings.node_silence_seconds),
        engines=Engines(ledger, settings.engine_silence_seconds),
        limits=Limits(ledger),
        books=Books(ledger),
        external=external,
        classes=ResourceClasses(ledger),
    )


def check_database(settings: Settings) -> None:
    """Whether the service could work on its database.

    Raises WrongRevisionError, NoTokenError, and SQLAlchemyError if it cannot be reached.
    """
    readers = reader_engine(settings.database_url)
    try:
        check_revision(readers)
        if settings.needs_token and not Tokens(readers).any_in_force():
            raise NoTokenError(settings.open_bind)
    finally:
        readers.dispose()


@dataclass(slots=True)
class Service:
    """The service on a database that `check_database` was content with. `start` once, `stop` once."""

    settings: Settings
    metrics: Metrics = field(default_factory=Metrics)
    ledger: Ledger = field(init=False)
    tokens: Tokens = field(init=False)
    sweeper: Sweeper = field(init=False)
    tailer: Tailer = field(init=False)
    external: ExternalResources = field(init=False)
    limit_sources: LimitSources | None = field(init=False)
    wsgi_app: Flask = field(init=False)
    scheduler_interface: SchedulerInterface = field(init=False)
    kubernetes: KubernetesApi = field(init=False)
    server: HttpServer = field(init=False)

    def __post_init__(self) -> None:
        settings = self.settings
        self.ledger = ObservedLedger(ledger_settings(settings), self.metrics.operation)
        self.ledger.on_commit(lambda _: self.metrics.commit())
        self.tokens = Tokens(self.ledger.readers)
        self.sweeper = Sweeper(
            self.ledger,
            SweepSettings(
                settings.sweep_seconds,
                settings.checkpoint_seconds,
                settings.si_pause_seconds,
                settings.si_stop_seconds,
                release_stopped=settings.si_when_stopped == "release",
            ),
            on_sweep=self._swept,
            on_failure=lambda _error: self.metrics.sweep_failed(),
        )
        self.tailer = Tailer(self.ledger)
        authentication = Authentication(settings.needs_token, self.tokens.name_of)
        request_log = RequestLog(self.metrics.request)
        self.external = ExternalResources(
            self.ledger,
            Keys.of_file(settings.secret_key_file),
            metrics=ProviderMetrics(self.metrics.registry),
        )
        self.limit_sources = limit_sources_of(self.ledger, settings, self.metrics)
        services = services_of(self.ledger, settings, self.external, self.limit_sources)
        endpoints = native_endpoints(services)
        self.wsgi_app = create_app(
            endpoints, authentication, max_body=settings.max_body_bytes, request_log=request_log
        )
        readiness = Readiness(self.ledger.readers, self.sweeper.last_success, settings.sweep_seconds)
        add_system_pages(self.wsgi_app, endpoints, checks=readiness.checks, metrics=self.metrics.text)
        self.scheduler_interface = SchedulerInterface(
            self.ledger,
            self.tailer,
            authentication,
            bind=settings.grpc_bind,
            resync_seconds=settings.si_resync_seconds,
            pause_seconds=settings.si_pause_seconds,
            policies=Path(settings.si_policies) if settings.si_policies else None,
            max_message=settings.grpc_max_message_bytes,
            reuse_port=settings.workers > 1,
            request_log=request_log,
            before=self.external.observing.before,
        )
        self.kubernetes = KubernetesApi(
            services.classes,
            self.tailer,
            authentication,
            request_log,
            max_body=settings.max_body_bytes,
        )
        self.server = HttpServer(
            self.wsgi_app,
            bind=settings.http_bind,
            threads=settings.http_threads,
            max_body=settings.max_body_bytes,
            reuse_port=settings.workers > 1,
            streams=[
                *stream_routes(self.ledger, self.tailer, services.applications, authentication),
                self.scheduler_interface.route,
                self.kubernetes.route,
            ],
        )
        self._add_gauges()

    def start(self) -> None:
        """Serve. Raises LedgerUnavailableError, ValueError for the rules, OSError for the address."""
        with ExitStack() as undone:
            undone.callback(self.ledger.close)
            self.ledger.open()
            undone.callback(self.tailer.stop)
            self.tailer.start()
            undone.callback(self.sweeper.stop)
            self.sweeper.start()
            undone.callback(self.external.stop)
            self.external.start()
            if self.limit_sources is not None:
                undone.callback(self.limit_sources.stop)
                self.limit_sources.start()
            self.scheduler_interface.start()
            undone.callback(self.scheduler_interface.stop, 0.0)
            undone.callback(self.kubernetes.stop)
            self.kubernetes.start()
            self.server.start()
            undone.pop_all()

    def stop(self) -> None:
        """Take no new requests, answer those that were accepted, then end everything behind them."""
        self.server.stop(GRACE_SECONDS)
        self.scheduler_interface.stop(GRACE_SECONDS)
        self.kubernetes.stop()
        if self.limit_sources is not None:
            self.limit_sources.stop()
        self.external.stop()
        self.sweeper.stop()
        self.tailer.stop()
        self.ledger.close()

    def _swept(self, report: SweepReport) -> None:
        self.metrics.sweep(
            applications=report.applications + report.stranded, nodes=report.nodes, engines=report.engines
        )

    def _add_gauges(self) -> None:
        gauge = self.metrics.gauge
        gauge("rm_ledger_queue", "Requests that stand before the writer", self.ledger.waiting)
        gauge("rm_http_open_streams", "Streams that are open", lambda: self.server.open_streams)
        streams = self.scheduler_interface
        gauge("rm_si_open_streams", "Streams of the Scheduler Interface", lambda: streams.open_streams)
        gauge("rm_class_watches", "Watches of resource classes", lambda: self.kubernetes.open_watches)
        gauge("rm_labels", "Labels that anything was ever charged to", self._count_labels)

    def _count_labels(self) -> float:
        with self.ledger.readers.connect() as connection:
            return float(connection.execute(select(func.count()).select_from(tables.label)).scalar_one())
