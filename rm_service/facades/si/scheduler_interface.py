"""The Scheduler Interface as a whole: what stands behind its gRPC server and its HTTP twin."""

from pathlib import Path

from rm_service.facades.si.answer_feed import AnswerFeed
from rm_service.facades.si.handlers import SchedulerHandlers
from rm_service.facades.si.http_twin import HttpTwin
from rm_service.facades.si.intake import KINDS_OF, Intake
from rm_service.facades.si.presence import Presence
from rm_service.hosting.authentication import Authentication
from rm_service.hosting.grpc_server import GrpcServer
from rm_service.hosting.request_log import RequestLog
from rm_service.hosting.streams import StreamRoute
from rm_service.ledger.answers import AnswerLog
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.tailer import Tailer
from rm_service.services.looks import Before
from rm_service.services.si.scheduler import SchedulerService

OFF = "off"


class SchedulerInterface:
    """Start it before the HTTP server, whose stream route it gives; stop it after.

    `bind` is where gRPC is served, or `off`. `max_message` is in bytes. `before`: as SchedulerService has it.
    """

    def __init__(  # noqa: PLR0913 - each is a setting of its own
        self,
        ledger: Ledger,
        tailer: Tailer,
        authentication: Authentication,
        *,
        bind: str,
        resync_seconds: int,
        pause_seconds: float,
        policies: Path | None,
        max_message: int,
        reuse_port: bool,
        request_log: RequestLog,
        before: Before = lambda _: (),
    ) -> None:
        self._scheduler = SchedulerService(
            ledger, resync_seconds=resync_seconds, policies=policies, before=before
        )
        log = AnswerLog(ledger.readers)
        self._presence = Presence(self._streaming, self._scheduler.note_presence, pause_seconds=pause_seconds)
        self._feed = AnswerFeed(log, tailer, KINDS_OF, self._presence.heard, self._scheduler.registered)
        intake = Intake(self._scheduler, log.spoken, self._presence.heard)
        self.route: StreamRoute = HttpTwin(intake, self._feed, authentication, request_log).route
        self._server: GrpcServer | None = None
        if bind != OFF:
            self._server = _grpc_server(
                intake, self._feed, authentication, bind=bind, max_message=max_message, reuse_port=reuse_port
            )

    @property
    def address(self) -> tuple[str, int] | None:
        """Host and port of gRPC, from `start` on; None where it is off."""
        return None if self._server is None else self._server.address

    @property
    def open_streams(self) -> int:
        """Streams of answers that are open, over gRPC and HTTP."""
        return len(self._feed)

    def start(self) -> None:
        """Raises OSError if the address cannot be had."""
        self._feed.start()
        self._presence.start()
        if self._server is not None:
            self._server.start()

    def stop(self, grace: float) -> None:
        """End the streams, and write down what they delivered."""
        if self._server is not None:
            self._server.stop(grace)
        self._presence.stop()
        self._feed.stop()
        self._scheduler.close()

    def _streaming(self) -> list[str]:
        return self._feed.rm_ids()


def _grpc_server(
    intake: Intake,
    feed: AnswerFeed,
    authentication: Authentication,
    *,
    bind: str,
    max_message: int,
    reuse_port: bool,
) -> GrpcServer:
    handlers = SchedulerHandlers(intake, feed, authentication)
    return GrpcServer(
        [handlers.handler],
        bind=bind,
        max_message=max_message,
        reuse_port=reuse_port,
        on_stop=handlers.end_streams,
    )
