"""A client of the Scheduler Interface: one resource manager's registration and its three streams, over gRPC.

Import it only where it is used: grpcio is large.
"""

import queue
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Generic, TypeVar

import grpc
from google.protobuf.message import Message

from rm_service.api_client import LOOPBACK, UnreachableError
from rm_service.commands.replay_drivers import DriveError
from rm_service.facades.si.proto import si_pb2 as si

SERVICE = "si.v1.Scheduler"
PATIENCE_SECONDS = 60.0
UNREACHABLE = {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED}
NO_LIMIT = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]

Request = TypeVar("Request", bound=Message)
Response = TypeVar("Response", bound=Message)
Metadata = tuple[tuple[str, str | bytes], ...]


class SiStream(Generic[Request, Response]):
    """One stream. A thread reads its answers, so that none is lost and a silent service is noticed."""

    def __init__(
        self, streams: "SiStreams", method: str, request: type[Request], response: type[Response]
    ) -> None:
        self._streams = streams
        self._requests: queue.SimpleQueue[Request | None] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Response | Exception] = queue.SimpleQueue()
        call = streams.channel.stream_stream(
            f"/{SERVICE}/{method}",
            request_serializer=request.SerializeToString,
            response_deserializer=response.FromString,
        )
        self._call = call(iter(self._requests.get, None), metadata=streams.metadata)
        threading.Thread(target=self._read, name=f"si-{method}", daemon=True).start()

    def send(self, request: Request) -> None:
        """Returns at once."""
        self._requests.put(request)

    def receive(self) -> Response:
        """The next answer. Raises UnreachableError, DriveError when the service has ended the stream."""
        try:
            answer = self._answers.get(timeout=PATIENCE_SECONDS)
        except queue.Empty:
            self._streams.broken = True
            reason = f"no answer within {PATIENCE_SECONDS:.0f} s"
            raise UnreachableError(self._streams.address, reason) from None
        if isinstance(answer, Exception):
            raise self._streams.failure(answer) from answer
        return answer

    def close(self) -> None:
        self._requests.put(None)
        self._call.cancel()  # type: ignore[no-untyped-call]

    def _read(self) -> None:
        try:
            for answer in self._call:
                self._answers.put(answer)
            self._answers.put(EOFError("the service has ended the stream"))
        except grpc.RpcError as error:
            self._answers.put(error)


class SiStreams:
    """Registers a resource manager, then opens its streams. `address` is `host:port`, without TLS."""

    allocations: SiStream[si.AllocationRequest, si.AllocationResponse]
    applications: SiStream[si.ApplicationRequest, si.ApplicationResponse]
    nodes: SiStream[si.NodeRequest, si.NodeResponse]

    def __init__(self, address: str, rm_id: str, token: str | None = None) -> None:
        self.address = address
        self.rm_id = rm_id
        # A proxy of the surroundings does not lead to this machine.
        direct = address.rpartition(":")[0].strip("[]") in LOOPBACK
        options = [*NO_LIMIT, ("grpc.enable_http_proxy", int(not direct))]
        self.channel = grpc.insecure_channel(address, options=options)
        self.metadata: Metadata = (("rm-id", rm_id),)
        if token:
            self.metadata += (("authorization", f"Bearer {token}"),)
        self.broken = False
        """Whether the connection has failed: nothing that is sent arrives any more."""
        self._open: list[SiStream[Any, Any]] = []

    def register(self, config: str, extra: Mapping[str, str]) -> None:
        """Register under this queue configuration. Raises UnreachableError, DriveError."""
        method = "RegisterResourceManager"
        call = self.channel.unary_unary(
            f"/{SERVICE}/{method}",
            request_serializer=si.RegisterResourceManagerRequest.SerializeToString,
            response_deserializer=si.RegisterResourceManagerResponse.FromString,
        )
        request = si.RegisterResourceManagerRequest(rmID=self.rm_id, config=config, extraConfig=extra)
        try:
            call(request, timeout=PATIENCE_SECONDS, metadata=self.metadata)
        except grpc.RpcError as error:
            raise self.failure(error) from error
        self.allocations = SiStream(self, "UpdateAllocation", si.AllocationRequest, si.AllocationResponse)
        self.applications = SiStream(self, "UpdateApplication", si.ApplicationRequest, si.ApplicationResponse)
        self.nodes = SiStream(self, "UpdateNode", si.NodeRequest, si.NodeResponse)
        self._open = [self.allocations, self.applications, self.nodes]

    def failure(self, error: Exception) -> Exception:
        """What to raise for an error of a call, after which nothing more is sent."""
        self.broken = True
        if not isinstance(error, grpc.Call):
            return UnreachableError(self.address, str(error))
        details = error.details() or "no reason given"
        if error.code() in UNREACHABLE:
            return UnreachableError(self.address, details)
        return DriveError(f"resource manager {self.rm_id}", error.code().name.lower(), details)

    def close(self) -> None:
        """End the streams and the connection."""
        for stream in self._open:
            with suppress(grpc.RpcError):
                stream.close()
        self.channel.close()
