"""The gRPC server, seen from the other end of a channel."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import grpc
import pytest

from rm_service.hosting.bind import BadBindError
from rm_service.hosting.grpc_server import GrpcServer

PATIENCE = 10.0  # seconds that a test waits for what must happen


async def _echo(data: bytes, _context: object) -> bytes:
    return data


class Desk:
    """What stands behind the server: an echo, and a stream that ends when it is told to."""

    def __init__(self) -> None:
        self.ending = asyncio.Event()
        self.handler = grpc.method_handlers_generic_handler(
            "desk",
            {
                "echo": grpc.unary_unary_rpc_method_handler(_echo),
                "wait": grpc.stream_stream_rpc_method_handler(self._wait),
                "for_ever": grpc.stream_stream_rpc_method_handler(self._for_ever),
            },
        )

    async def _wait(self, _requests: object, context: Any) -> None:
        await context.write(b"begun")
        await self.ending.wait()
        await context.write(b"ended")

    async def _for_ever(self, _requests: object, context: Any) -> None:
        await context.write(b"begun")
        await asyncio.Event().wait()


@contextmanager
def serving(**settings: Any) -> Iterator[tuple[GrpcServer, grpc.Channel]]:
    desk = Desk()
    bind: str = settings.pop("bind", "127.0.0.1:0")
    server = GrpcServer([desk.handler], bind=bind, on_stop=desk.ending.set, **settings)
    server.start()
    host, port = server.address
    with grpc.insecure_channel(f"{host}:{port}", [("grpc.max_send_message_length", -1)]) as channel:
        yield server, channel
    server.stop(PATIENCE)


def echo(channel: grpc.Channel, data: bytes) -> bytes:
    answer: bytes = channel.unary_unary("/desk/echo", None, None)(data, timeout=PATIENCE)
    return answer


def test_it_answers_on_a_free_port() -> None:
    with serving() as (server, channel):
        assert server.address[1] > 0
        assert echo(channel, b"hello") == b"hello"


def test_a_message_beyond_the_limit_is_refused_and_the_next_one_answered() -> None:
    with serving(max_message=1000) as (_, channel):
        with pytest.raises(grpc.RpcError) as refused:
            echo(channel, b"x" * 1001)
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert echo(channel, b"x" * 1000) == b"x" * 1000


def test_an_unknown_method_is_unimplemented() -> None:
    with serving() as (_, channel), pytest.raises(grpc.RpcError) as refused:
        channel.unary_unary("/desk/nothing", None, None)(b"", timeout=PATIENCE)
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


def test_when_it_stops_streams_may_end_in_their_own_way() -> None:
    with serving() as (server, channel):
        stream: Any = channel.stream_stream("/desk/wait", None, None)(iter([]), timeout=PATIENCE)
        assert next(stream) == b"begun"
        server.stop(PATIENCE)
        assert list(stream) == [b"ended"]


def test_what_outlives_the_grace_is_cut_off() -> None:
    with serving() as (server, channel):
        stream: Any = channel.stream_stream("/desk/for_ever", None, None)(iter([]), timeout=PATIENCE)
        assert next(stream) == b"begun"
        server.stop(0.1)
        with pytest.raises(grpc.RpcError):
            next(stream)


def test_an_address_that_is_taken_is_refused() -> None:
    with serving() as (server, _):
        host, port = server.address
        with pytest.raises(OSError, match=str(port)):
            GrpcServer([Desk().handler], bind=f"{host}:{port}").start()


def test_processes_may_share_a_port() -> None:
    with serving(reuse_port=True) as (server, _):
        host, port = server.address
        with serving(bind=f"{host}:{port}", reuse_port=True) as (_, channel):
            assert echo(channel, b"hello") == b"hello"


@pytest.mark.parametrize("bind", ["8311", "host:", "host:x", ""])
def test_a_bind_is_host_and_port(bind: str) -> None:
    with pytest.raises(BadBindError):
        GrpcServer([], bind=bind)
