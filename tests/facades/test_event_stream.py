"""Live events, seen from the other end of a socket, with a real ledger behind."""

import threading
from collections.abc import Sequence

import pytest

from rm_service.domain import operations as op
from rm_service.ledger.outbox import PAGE
from rm_service.ledger.queries.events import LabelledEvent
from tests.facades.live import EVENTS, PATIENCE, Clients, Service, ids


class TestStream:
    def test_what_happens_is_seen_as_it_is_in_the_list(self, service: Service, clients: Clients) -> None:
        events = clients().stream()
        id_ = service.apply(user="alice")
        message = events.next()
        assert message.event == "application.locked"
        assert message.data["seq"] == message.id
        assert message.data["subject"] == id_
        assert message.data["tags"] == {"user": "alice"}
        assert {"user": "alice"} in message.data["labels"]

    def test_without_a_number_it_begins_now(self, service: Service, clients: Clients) -> None:
        service.apply(user="before")
        events = clients().stream()
        service.apply(user="after")
        assert events.next().data["tags"] == {"user": "after"}

    def test_it_tells_caches_and_proxies_to_keep_out(self, clients: Clients) -> None:
        headers = clients().stream().response.headers
        assert headers["Content-Type"] == "text/event-stream; charset=utf-8"
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Accel-Buffering"] == "no"

    @pytest.mark.parametrize("resume", [("?after=2", {}), ("", {"Last_Event_ID": "2"}), ("?cursor=2", {})])
    def test_it_resumes_after_a_number(
        self, service: Service, clients: Clients, resume: tuple[str, dict[str, str]]
    ) -> None:
        service.apply_many(5)
        query, headers = resume
        assert ids(clients().stream(query, **headers).take(2)) == [3, 4]

    def test_the_header_of_a_returning_client_wins(self, service: Service, clients: Clients) -> None:
        service.apply_many(5)
        assert clients().stream("?after=0", Last_Event_ID="4").next().id == 5

    def test_a_long_history_comes_whole_and_goes_over_into_the_present(
        self, service: Service, clients: Clients
    ) -> None:
        for _ in range(5):
            service.apply_many(PAGE)
        events = clients().stream("?after=0")
        first = events.take(100)
        service.apply_many(50)
        rest = events.take(1 + 5 * PAGE + 50 - 100)
        assert ids([*first, *rest]) == list(range(1, 5 * PAGE + 52))
        service.apply()
        assert events.next().id == 5 * PAGE + 52

    def test_who_joins_in_the_middle_of_a_page_gets_only_the_rest_of_it(
        self, service: Service, clients: Clients
    ) -> None:
        first = clients().stream()
        blocked, go_on = threading.Event(), threading.Event()

        def block(_: Sequence[LabelledEvent]) -> None:
            blocked.set()
            go_on.wait(PATIENCE)

        service.tailer.subscribe(block, service.tailer.head())
        service.apply()
        assert blocked.wait(PATIENCE)
        service.apply_many(5)  # the next page begins before the second stream does
        second = clients().stream()
        service.apply(user="last")
        go_on.set()
        assert [first.take(7)[-1].data["tags"], second.next().data["tags"]] == [{"user": "last"}] * 2

    def test_a_client_that_comes_back_misses_nothing_and_sees_nothing_twice(
        self, service: Service, clients: Clients
    ) -> None:
        events = clients().stream("?after=1")
        service.apply_many(10)
        seen = ids(events.take(4))
        events.response.close()
        service.apply_many(10)
        again = clients().stream(Last_Event_ID=str(seen[-1]))
        assert seen + ids(again.take(16)) == list(range(2, 22))

    def test_while_nothing_happens_it_says_that_it_lives(self, clients: Clients) -> None:
        assert clients().stream().comment() == ": keep-alive"

    def test_a_selector_and_a_kind_choose(self, service: Service, clients: Clients) -> None:
        alices = clients().stream("?selector=user%3Dalice")
        nodes = clients().stream("?kind=node.")
        service.apply(user="bob")
        service.ledger.submit([op.RegisterNode("h1", "Memory", {"memory": 1})])
        service.apply(user="alice")
        assert alices.next().data["tags"] == {"user": "alice"}
        assert nodes.next().event == "node.registered"

    def test_history_is_chosen_from_in_the_same_way(self, service: Service, clients: Clients) -> None:
        service.apply(user="alice")
        service.apply_many(3 * PAGE)
        service.apply(user="alice")
        found = clients().stream("?after=0&selector=user%3Dalice").take(2)
        assert ids(found) == [2, 3 + 3 * PAGE]

    def test_each_event_is_encoded_once_for_all(self, service: Service, clients: Clients) -> None:
        streams = [clients().stream() for _ in range(10)]
        filtered = [clients().stream("?kind=application") for _ in range(10)]
        service.apply()  # from here on all have caught up
        (began,) = {events.next().id for events in [*streams, *filtered]}
        service.encoded.clear()
        for _ in range(3):
            service.apply()
        assert {tuple(ids(events.take(3))) for events in [*streams, *filtered]} == {
            (began + 1, began + 2, began + 3)
        }
        assert service.encoded == [began + 1, began + 2, began + 3]

    def test_what_no_stream_shows_is_not_encoded(self, service: Service, clients: Clients) -> None:
        events = clients().stream("?kind=node")
        service.apply_many(20)
        service.ledger.submit([op.RegisterNode("h1", "Memory", {"memory": 1})])
        message = events.next()
        assert message.event == "node.registered"
        assert service.encoded == [message.id]

    def test_the_end_of_the_server_is_a_clean_end(self, service: Service, clients: Clients) -> None:
        events = clients().stream()
        service.server.stop(grace=1.0)
        assert events.ended()


class TestRefusals:
    @pytest.mark.parametrize(
        ("query", "name"),
        [
            ("?after=x", "after"),
            ("?after=-1", "after"),
            ("?after=99999", "after"),
            ("?after=1&after=2", "after"),
            ("?cursor=x", "cursor"),
            ("?selector=a%3D%3D%3D", "selector"),
            ("?since=1", "since"),
        ],
    )
    def test_what_cannot_be_is_named(self, clients: Clients, query: str, name: str) -> None:
        status, problem = clients().problem(EVENTS + query)
        assert status == 422
        assert problem["code"] == "invalid_fields"
        assert list(problem["errors"]) == [name]

    def test_a_dead_last_event_id_is_named(self, clients: Clients) -> None:
        status, problem = clients().problem(EVENTS, Last_Event_ID="nonsense")
        assert status == 422
        assert list(problem["errors"]) == ["Last-Event-ID"]

    def test_who_may_not_ask_is_told_so(self, clients: Clients) -> None:
        status, problem = clients().problem(EVENTS, Authorization="Bearer wrong")
        assert (status, problem["code"]) == (401, "unauthorized")

    def test_who_wants_json_is_not_streamed_to(self, clients: Clients) -> None:
        assert clients().get(EVENTS, Accept="application/json").status == 404, "it went to the application"
