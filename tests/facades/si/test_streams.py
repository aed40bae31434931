"""Streams of resource managers over gRPC: whose they are, what they are answered, how they end."""

from collections.abc import Iterator

import grpc
import pytest

from rm_service.domain import answers
from rm_service.domain.events import Kind
from rm_service.facades.si import answer_feed
from rm_service.facades.si.proto import si_pb2 as si
from rm_service.facades.si.proto import si_v0_pb2 as si_v0
from rm_service.facades.si.streams import UNDER_WAY
from rm_service.hosting.authentication import Authentication
from rm_service.ledger.errors import LedgerClosedError, LedgerUnavailableError, OutcomeUnknownError
from rm_service.services.si.errors import RegistrationRefusedError
from rm_service.services.si.requests import Dialect
from tests.facades.si.desk import PATIENCE, Caller, Conversation, Desk, WrittenOutbox, request, until

MUCH = [[f"{'n' * 2_000}{number}-{place}" for place in range(100)] for number in range(60)]
"""Nodes: together more than the buffers of the transport hold."""
METHODS = ["UpdateAllocation", "UpdateApplication", "UpdateNode", "Update"]


@pytest.fixture
def rm(desk: Desk) -> Caller:
    """A caller whose `rm` is registered."""
    caller = desk.caller()
    caller.register("rm")
    return caller


def listening(desk: Desk, rm: Caller) -> list[Conversation]:
    """A stream of each method, all of which are being given answers."""
    streams = [rm.stream(method, rm_id="rm") for method in METHODS]
    desk.outbox.grant("rm", "k")
    desk.outbox.commit((Kind.APPLICATION_PHASE, "rm", answers.accepted_application("a")))
    desk.outbox.accept_nodes("rm", "n")
    for stream in streams:
        stream.hear()
    return streams


class TestRequests:
    @pytest.mark.parametrize("method", METHODS)
    def test_every_method_takes_requests_in_their_order(self, desk: Desk, rm: Caller, method: str) -> None:
        stream = rm.stream(method)
        for number in range(200):
            stream.say(request(method, "rm", f"n{number}"))
        until(lambda: len(desk.scheduler.updates) == 200)
        said = [
            named
            for update in desk.scheduler.updates
            for named in (
                *(each.node for each in update.nodes),
                *(each.key for each in update.asks),
                *(each.application for each in update.applications),
            )
        ]
        assert said == [f"n{number}" for number in range(200)]

    def test_a_bounded_number_waits_for_commits(self, desk: Desk, rm: Caller) -> None:
        desk.scheduler.hold = True
        stream = rm.stream("UpdateNode")
        for number in range(UNDER_WAY + 10):
            stream.say(request("UpdateNode", "rm", f"n{number}"))
        until(lambda: len(desk.scheduler.updates) == UNDER_WAY)
        for _ in range(10):
            desk.scheduler.held.get(timeout=PATIENCE).set_result(None)
        until(lambda: len(desk.scheduler.updates) == UNDER_WAY + 10)

    def test_what_a_message_uses_says_which_dialect_it_is(self, desk: Desk, rm: Caller) -> None:
        stream = rm.stream("UpdateAllocation")
        stream.say(si.AllocationRequest(rmID="rm", allocations=[si.Allocation(allocationKey="k")]))
        stream.say(request("UpdateAllocation", "rm", "ask"))
        stream.say(si.AllocationRequest(rmID="rm"))
        until(lambda: len(desk.scheduler.updates) == 3)
        seen = [update.dialect for update in desk.scheduler.updates]
        assert seen == [Dialect.NEWEST, Dialect.SEED, Dialect.SEED]

    def test_a_stream_is_that_of_its_first_message(self, desk: Desk, rm: Caller) -> None:
        rm.register("other")
        stream = rm.stream("UpdateNode")
        stream.say(request("UpdateNode", "rm", "n1"))
        stream.say(request("UpdateNode", "other", "n2"))
        code, detail = stream.end()
        assert code == "INVALID_ARGUMENT"
        assert '"rm"' in detail
        assert '"other"' in detail
        assert [update.rm_id for update in desk.scheduler.updates] == ["rm"]

    @pytest.mark.parametrize(
        ("method", "message"), [("UpdateAllocation", "AllocationRequest"), ("Update", "UpdateRequest")]
    )
    def test_a_stream_before_the_registration_is_told_so(self, desk: Desk, method: str, message: str) -> None:
        stream = desk.caller().stream(method)
        stream.say(request(method, "x", "n1"))
        assert stream.end() == ("FAILED_PRECONDITION", f'received {message}, but RmID "x" not registered')

    def test_who_listens_before_the_registration_is_told_so(self, desk: Desk) -> None:
        assert desk.caller().stream("UpdateNode", rm_id="x").end()[0] == "FAILED_PRECONDITION"

    @pytest.mark.parametrize("method", METHODS)
    def test_a_message_names_its_sender(self, rm: Caller, method: str) -> None:
        stream = rm.stream(method)
        stream.say(request(method, ""))
        code, detail = stream.end()
        assert (code, "rmID" in detail) == ("INVALID_ARGUMENT", True)

    def test_bytes_that_are_no_message_end_the_stream_with_a_reason(self, rm: Caller) -> None:
        stream = rm.stream("UpdateNode")
        stream.say(b"\xff\xff\xff")
        assert stream.end() == ("INVALID_ARGUMENT", "this is no NodeRequest")

    def test_a_message_beyond_the_limit_ends_the_stream(self, desk: Desk, rm: Caller) -> None:
        stream = rm.stream("UpdateNode")
        stream.say(request("UpdateNode", "rm", "n" * (desk.max_message + 1)))
        assert stream.end()[0] == "RESOURCE_EXHAUSTED"

    @pytest.mark.parametrize(
        ("error", "code", "says"),
        [
            (LedgerUnavailableError("host db:5432 is away"), "UNAVAILABLE", "nothing was changed"),
            (OutcomeUnknownError(), "UNAVAILABLE", "outcome is not known"),
            (LedgerClosedError(), "UNAVAILABLE", "stopping"),
            (ZeroDivisionError("secret"), "INTERNAL", "log"),
        ],
    )
    def test_what_cannot_be_committed_ends_the_stream(
        self, desk: Desk, rm: Caller, error: Exception, code: str, says: str
    ) -> None:
        desk.scheduler.hold = True
        stream = rm.stream("UpdateNode")
        stream.say(request("UpdateNode", "rm", "n1"))
        desk.scheduler.held.get(timeout=PATIENCE).set_exception(error)
        ended, detail = stream.end()
        assert (ended, says in detail) == (code, True)
        assert str(error) not in detail or code == "UNAVAILABLE"

    def test_who_says_nothing_and_leaves_is_let_go(self, rm: Caller) -> None:
        stream = rm.stream("UpdateNode")
        stream.has_no_more_to_say()
        assert stream.end() == ("OK", "")


class TestRegistration:
    def test_the_answer_is_empty(self, desk: Desk) -> None:
        request = si_v0.RegisterResourceManagerRequest(rmID="old", version="0.11", policyGroup="queues")
        assert desk.caller().send(request.SerializeToString()) == b""

    @pytest.mark.parametrize(
        ("error", "code"),
        [
            (RegistrationRefusedError("queue root.a: not known"), "INVALID_ARGUMENT"),
            (LedgerUnavailableError("away"), "UNAVAILABLE"),
        ],
    )
    def test_a_refusal_has_its_reason(self, desk: Desk, error: Exception, code: str) -> None:
        desk.scheduler.refusal = error
        with pytest.raises(grpc.RpcError) as refused:
            desk.caller().register("rm")
        assert refused.value.code().name == code
        assert refused.value.details()

    @pytest.mark.parametrize("sent", [b"", b"\xff\xff"])
    def test_without_a_name_there_is_none(self, desk: Desk, sent: bytes) -> None:
        with pytest.raises(grpc.RpcError) as refused:
            desk.caller().send(sent)
        assert refused.value.code() is grpc.StatusCode.INVALID_ARGUMENT


class TestTokens:
    @pytest.fixture
    def desk(self, outbox: WrittenOutbox) -> Iterator[Desk]:
        gate = Authentication(True, {"good": "shim"}.get)
        with Desk(outbox, authentication=gate) as desk:
            yield desk

    def test_with_a_token_in_force_all_is_well(self, desk: Desk) -> None:
        caller = desk.caller(("authorization", "Bearer good"))
        caller.register("rm")
        stream = caller.stream("UpdateNode", rm_id="rm")
        desk.outbox.accept_nodes("rm", "n1")
        assert stream.hear_nodes(1) == ["n1"]

    @pytest.mark.parametrize("sent", [None, "Bearer bad", "good"])
    def test_without_one_nothing_is_answered(self, desk: Desk, sent: str | None) -> None:
        caller = desk.caller(*([] if sent is None else [("authorization", sent)]))
        with pytest.raises(grpc.RpcError) as refused:
            caller.register("rm")
        assert refused.value.code() is grpc.StatusCode.UNAUTHENTICATED
        assert caller.stream("UpdateNode", rm_id="rm").end()[0] == "UNAUTHENTICATED"


class TestAnswers:
    def test_each_stream_is_given_its_own_kind(self, desk: Desk, rm: Caller) -> None:
        nodes, allocations = (rm.stream(each, rm_id="rm") for each in ("UpdateNode", "UpdateAllocation"))
        everything = rm.stream("Update", rm_id="rm")
        last = desk.outbox.accept_nodes("rm", "n1")
        desk.outbox.grant("rm", "k1")
        response = nodes.hear()
        assert ([each.nodeID for each in response.accepted], response.rmRow) == (["n1"], last)
        assert [each.allocationKey for each in allocations.hear().new] == ["k1"]
        heard = everything.hear()
        assert [each.nodeID for each in heard.acceptedNodes] == ["n1"]
        assert nodes.hears_nothing()

    def test_what_was_answered_before_anybody_listened_is_kept(self, desk: Desk, rm: Caller) -> None:
        desk.outbox.accept_nodes("rm", *(f"n{number}" for number in range(1_200)))
        stream = rm.stream("UpdateNode", rm_id="rm")
        desk.outbox.accept_nodes("rm", "last")
        assert stream.hear_nodes(1_201) == [*(f"n{number}" for number in range(1_200)), "last"]

    def test_nobody_hears_what_others_are_told(self, desk: Desk, rm: Caller) -> None:
        rm.register("other")
        stream = rm.stream("UpdateNode", rm_id="rm")
        desk.outbox.accept_nodes("other", "theirs")
        desk.outbox.accept_nodes("rm", "ours")
        assert stream.hear_nodes(1) == ["ours"]

    def test_what_another_replica_committed_is_heard(self, desk: Desk, rm: Caller) -> None:
        stream = rm.stream("UpdateNode", rm_id="rm")
        for number in range(5):
            desk.outbox.accept_nodes("rm", f"n{number}", foreign=number % 2 == 0)
        assert stream.hear_nodes(5) == [f"n{number}" for number in range(5)]

    def test_a_stream_goes_on_behind_the_last_row_that_was_handed_on(self, desk: Desk, rm: Caller) -> None:
        first = rm.stream("UpdateNode", rm_id="rm")
        desk.outbox.accept_nodes("rm", "n1", "n2")
        assert first.hear_nodes(2) == ["n1", "n2"]
        first.leave()
        until(lambda: len(desk.feed) == 0)
        desk.outbox.accept_nodes("rm", "n3")
        assert rm.stream("UpdateNode", rm_id="rm").hear_nodes(1) == ["n3"]

    def test_where_it_was_is_written_down(self, desk: Desk, rm: Caller) -> None:
        stream = rm.stream("UpdateNode", rm_id="rm")
        last = desk.outbox.accept_nodes("rm", "n1", "n2")
        stream.hear_nodes(2)
        until(lambda: desk.outbox.delivered("rm", "node") == last)

    def test_another_process_goes_on_where_this_one_stopped(self, desk: Desk, rm: Caller) -> None:
        first = rm.stream("UpdateNode", rm_id="rm")
        last = desk.outbox.accept_nodes("rm", "n1")
        first.hear_nodes(1)
        first.leave()
        until(lambda: desk.outbox.delivered("rm", "node") == last)
        with Desk(desk.outbox) as later:
            stream = later.caller().stream("UpdateNode", rm_id="rm")
            later.outbox.accept_nodes("rm", "n2")
            assert stream.hear_nodes(1) == ["n2"]

    def test_a_client_says_where_to_go_on(self, desk: Desk, rm: Caller) -> None:
        first = rm.stream("UpdateNode", rm_id="rm")
        rows = [desk.outbox.accept_nodes("rm", name) for name in ("n1", "n2", "n3")]
        first.hear_nodes(3)
        again = rm.stream("UpdateNode", rm_id="rm", rm_after=str(rows[0]))
        assert again.hear_nodes(2) == ["n2", "n3"]

    @pytest.mark.parametrize("after", ["x", "-1", "", "9" * 30, "1000000"])
    def test_it_must_be_the_number_of_a_row(self, rm: Caller, after: str) -> None:
        assert rm.stream("UpdateNode", rm_id="rm", rm_after=after).end()[0] == "INVALID_ARGUMENT"

    def test_a_newer_stream_takes_over(self, desk: Desk, rm: Caller) -> None:
        older = rm.stream("UpdateNode", rm_id="rm")
        row = desk.outbox.accept_nodes("rm", "n1")
        assert older.hear_nodes(1) == ["n1"]
        newer = rm.stream("UpdateNode", rm_id="rm", rm_after=str(row - 1))
        assert newer.hear_nodes(1) == ["n1"]
        desk.outbox.accept_nodes("rm", "n2")
        assert newer.hear_nodes(1) == ["n2"]
        assert older.hears_nothing()
        older.say(request("UpdateNode", "rm", "n3"))
        until(lambda: len(desk.scheduler.updates) == 1)

    def test_a_client_that_has_no_more_to_say_still_listens(self, desk: Desk, rm: Caller) -> None:
        stream = rm.stream("UpdateNode")
        stream.say(request("UpdateNode", "rm", "n1"))
        stream.has_no_more_to_say()
        until(lambda: desk.scheduler.updates)
        desk.outbox.accept_nodes("rm", "n1")
        assert stream.hear_nodes(1) == ["n1"]


class TestSlowReaders:
    def test_one_that_does_not_read_loses_nothing_and_harms_nobody(
        self, desk: Desk, rm: Caller, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(answer_feed, "MOST_BUFFERED", 500)
        monkeypatch.setattr(answer_feed, "PAGE", 100)
        rm.register("other")
        slow, quick = rm.stream("UpdateNode", rm_id="rm"), rm.stream("UpdateNode", rm_id="other")
        slow.stop_reading()
        for number in range(len(MUCH)):
            desk.outbox.accept_nodes("rm", *MUCH[number])
            desk.outbox.accept_nodes("other", f"n{number}")
            assert quick.hear_nodes(1) == [f"n{number}"]
        assert desk.feed.deliveries.noted(("rm", "node")) < desk.tailer.head() - 2_000, "it is stuck"
        slow.go_on_reading()
        assert slow.hear_nodes(len(MUCH) * 100) == [node for nodes in MUCH for node in nodes]

    def test_one_that_leaves_without_having_read_is_let_go(self, desk: Desk, rm: Caller) -> None:
        stream = rm.stream("UpdateNode", rm_id="rm")
        stream.stop_reading()
        for nodes in MUCH:
            desk.outbox.accept_nodes("rm", *nodes)
        stream.leave()
        until(lambda: len(desk.feed) == 0)


class TestRegisteredAnew:
    @pytest.mark.parametrize("foreign", [False, True])
    def test_the_streams_of_before_end(self, desk: Desk, rm: Caller, *, foreign: bool) -> None:
        streams = listening(desk, rm)
        desk.outbox.register("rm", foreign=foreign)
        *newer, old = streams
        for stream in newer:
            code, detail = stream.end()
            assert (code, detail.startswith("RESYNC")) == ("ABORTED", True)
        last = old.hear()
        while last.rmRow:
            last = old.hear()
        assert last.action == si_v0.UpdateResponse.RESYNC
        assert old.end() == ("OK", "")

    def test_those_of_the_new_registration_stay_and_begin_with_it(self, desk: Desk, rm: Caller) -> None:
        desk.outbox.accept_nodes("rm", "of before")
        rm.register("rm")
        stream = rm.stream("UpdateNode", rm_id="rm")
        desk.outbox.accept_nodes("rm", "n1")
        assert stream.hear_nodes(1) == ["n1"]

    def test_others_are_not_disturbed(self, desk: Desk, rm: Caller) -> None:
        rm.register("other")
        stream = rm.stream("UpdateNode", rm_id="other")
        until(lambda: len(desk.feed) == 1)
        rm.register("rm")
        desk.outbox.accept_nodes("other", "n1")
        assert stream.hear_nodes(1) == ["n1"]

    def test_one_that_does_not_read_is_told_when_it_does(self, desk: Desk, rm: Caller) -> None:
        stuck: list[Conversation] = [rm.stream(method, rm_id="rm") for method in ("UpdateNode", "Update")]
        for stream in stuck:
            stream.stop_reading()
        desk.outbox.accept_nodes("rm", "first")
        for stream in stuck:
            stream.hear()
        for nodes in MUCH:
            desk.outbox.accept_nodes("rm", *nodes)
        rm.register("rm")
        until(lambda: len(desk.feed) == 0)
        for stream in stuck:
            stream.go_on_reading()
            assert stream.end()[0] == "ABORTED"


class TestTheEnd:
    def test_when_the_server_stops_its_streams_say_so(self, desk: Desk, rm: Caller) -> None:
        streams = listening(desk, rm)
        desk.grpc.stop(5.0)
        for stream in streams:
            assert stream.end() == ("UNAVAILABLE", "the service is stopping")
        until(lambda: len(desk.feed) == 0)
