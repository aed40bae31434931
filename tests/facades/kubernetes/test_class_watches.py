"""Watches of resource classes, seen from the other end of a socket, with a real ledger behind."""

from collections.abc import Iterator

import pytest

from rm_service.facades.kubernetes import class_history, class_watches
from rm_service.ledger.errors import LedgerUnavailableError
from rm_service.ledger.ledger import Ledger
from tests.facades.kubernetes.served import BIG, CLASSES, GPU, TABLE, OpenWatch, Served
from tests.facades.live import until

LARGE = {"Kind": "nvidia-gpu", "memory": "40G"}
SMALL = {"Kind": "nvidia-gpu", "memory": "16G"}


@pytest.fixture
def stocked(served: Served) -> Served:
    """With six GPUs, four of them large, and a class for all of them."""
    served.node("n1", gpu=(4, LARGE), old=(2, SMALL))
    served.create("any", GPU)
    return served


class TestFromTheBeginning:
    @pytest.mark.parametrize("query", ["", "resourceVersion=0"])
    def test_what_is_there_comes_first_and_then_what_changes(
        self, served_on_each: Served, watch: OpenWatch, query: str
    ) -> None:
        served = served_on_each
        served.node("n1", gpu=(4, LARGE))
        served.create("any", GPU)
        watching = watch(served, query)
        assert watching.told() == ("ADDED", "any", "4", "0")
        granted = served.grant(any=1000)
        assert watching.told() == ("MODIFIED", "any", "4", "1")
        served.release(granted)
        assert watching.told() == ("MODIFIED", "any", "4", "0")
        served.node("n2", gpu=(2, LARGE))
        assert watching.told() == ("MODIFIED", "any", "6", "0")
        served.create("big", GPU, BIG)
        assert watching.told() == ("ADDED", "big", "6", "0")
        served.delete("any")
        assert watching.told() == ("DELETED", "any", "6", "0")

    def test_an_event_has_the_whole_object(self, stocked: Served, watch: OpenWatch) -> None:
        watching = watch(stocked)
        kind, told = watching.next()
        assert (kind, told) == ("ADDED", stocked.get(f"{CLASSES}/any"))

    def test_the_end_of_the_beginning_is_told_to_who_asks_for_it(
        self, stocked: Served, watch: OpenWatch
    ) -> None:
        query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
        watching = watch(stocked, query)
        assert watching.told()[:2] == ("ADDED", "any")
        metadata = watching.bookmark()["metadata"]
        assert metadata["annotations"] == {"k8s.io/initial-events-end": "true"}
        assert int(metadata["resourceVersion"]) == stocked.version()

    def test_who_wants_none_of_it_is_told_what_comes(self, stocked: Served, watch: OpenWatch) -> None:
        watching = watch(stocked, "sendInitialEvents=false")
        stocked.create("later")
        assert watching.told()[:2] == ("ADDED", "later")


class TestFromAVersion:
    def test_nothing_that_was_listed_is_repeated(self, served_on_each: Served, watch: OpenWatch) -> None:
        served = served_on_each
        served.node("n1", gpu=(4, LARGE))
        served.create("any", GPU)
        served.create("big", GPU, BIG)
        version = served.version()
        served.idle_events(10)
        first = watch(served, f"resourceVersion={version}")
        second = watch(served, f"resourceVersion={served.version()}")
        served.create("later", GPU)
        assert [each.told()[:2] for each in (first, second)] == [("ADDED", "later")] * 2

    def test_what_happened_since_is_told(self, served_on_each: Served, watch: OpenWatch) -> None:
        served = served_on_each
        served.node("n1", gpu=(4, LARGE))
        for name in ("kept", "gone", "anew"):
            served.create(name, GPU)
        version = served.version()
        served.create("passing")
        for name in ("gone", "anew", "passing"):
            served.delete(name)
        served.create("anew", GPU, BIG)
        served.grant(kept=1000)
        watching = watch(served, f"resourceVersion={version}")
        told = {watching.told() for _ in range(4)}
        assert told == {
            ("DELETED", "gone", "0", "0"),
            ("DELETED", "anew", "0", "0"),
            ("ADDED", "anew", "4", "1"),
            ("MODIFIED", "kept", "4", "1"),
        }

    def test_the_same_while_others_watch(self, stocked: Served, watch: OpenWatch) -> None:
        first = watch(stocked)
        first.next()
        version = stocked.version()
        stocked.create("later", GPU)
        assert first.told()[1] == "later"
        again = watch(stocked, f"resourceVersion={version}")
        assert again.told()[:2] == ("ADDED", "later"), "and not `any`, which has not changed"
        stocked.delete("any")
        assert [each.told()[:2] for each in (first, again)] == [("DELETED", "any")] * 2

    def test_who_was_cut_off_among_changes_that_belong_together_misses_none(
        self, stocked: Served, watch: OpenWatch
    ) -> None:
        stocked.create("big", GPU, BIG)
        watching = watch(stocked, f"resourceVersion={stocked.version()}")
        stocked.grant(big=1000)
        (_, first), (_, second) = watching.next(), watching.next()
        versions = [int(each["metadata"]["resourceVersion"]) for each in (first, second)]
        assert versions == [stocked.version() - 1, stocked.version()]
        again = watch(stocked, f"resourceVersion={versions[0]}")
        assert {again.told() for _ in range(2)} == {
            ("MODIFIED", "any", "6", "1"),
            ("MODIFIED", "big", "4", "1"),
        }

    def test_a_version_from_another_world_has_expired(self, stocked: Served) -> None:
        version = stocked.version()
        status = stocked.refused("GET", f"{CLASSES}?watch=1&resourceVersion={version + 1}")
        assert (status["code"], status["reason"]) == (410, "Expired")
        assert status["message"] == f"Too large resource version: {version + 1}, current: {version}"

    def test_a_version_too_far_back_has_expired(
        self, stocked: Served, watch: OpenWatch, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        version = stocked.version()
        stocked.idle_events(10)
        monkeypatch.setattr(class_history, "MAX_BEHIND", 9)
        status = stocked.refused("GET", f"{CLASSES}?watch=1&resourceVersion={version}")
        assert (status["code"], status["reason"]) == (410, "Expired")
        assert "too old resource version" in status["message"]
        watch(stocked, f"resourceVersion={version + 1}")

    def test_of_too_many_events_it_is_taken_for_granted_that_they_matter(
        self, stocked: Served, watch: OpenWatch, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        version = stocked.version()
        stocked.idle_events(10)
        monkeypatch.setattr(class_history, "LOOKED_AT", 5)
        assert watch(stocked, f"resourceVersion={version}").told()[:2] == ("MODIFIED", "any")


class TestWhatIsShown:
    def test_selectors_choose(self, stocked: Served, watch: OpenWatch) -> None:
        stocked.create("one", GPU, labels={"team": "a"})
        by_label = watch(stocked, "labelSelector=team%3Da")
        by_name = watch(stocked, "fieldSelector=metadata.name%3Dany")
        assert (by_label.told()[1], by_name.told()[1]) == ("one", "any")
        stocked.grant(any=1000)
        assert (by_label.told(), by_name.told()) == (
            ("MODIFIED", "one", "6", "1"),
            ("MODIFIED", "any", "6", "1"),
        )

    def test_a_table_has_a_row_for_each_event(self, stocked: Served, watch: OpenWatch) -> None:
        watching = watch(stocked, "includeObject=Object", accept=TABLE)
        assert watching.row() == ("ADDED", ["any", "6", "0", "6", 0])
        stocked.grant(any=2000)
        assert watching.row() == ("MODIFIED", ["any", "6", "2", "4", 0])
        stocked.delete("any")
        assert watching.row() == ("DELETED", ["any", "6", "2", "4", 0])

    def test_a_class_made_anew_is_another_one(self, stocked: Served, watch: OpenWatch) -> None:
        watching = watch(stocked)
        _, first = watching.next()
        with stocked.held_reading(lambda: stocked.create("other")):
            stocked.delete("any")
            stocked.create("any", GPU, BIG)
        told = [each for each in (watching.next() for _ in range(3)) if each[1]["metadata"]["name"] == "any"]
        assert [kind for kind, _ in told] == ["DELETED", "ADDED"]
        assert told[0][1]["metadata"]["uid"] == first["metadata"]["uid"] != told[1][1]["metadata"]["uid"]


class TestHowItLasts:
    @pytest.fixture
    def quick(self, own_ledger: Ledger) -> Iterator[Served]:
        """With keep-alives often."""
        with Served(own_ledger, keep_alive_seconds=0.2) as served:
            yield served

    def test_bookmarks_say_how_far_it_has_come(self, quick: Served, watch: OpenWatch) -> None:
        quick.create("a")
        watching = watch(quick, f"resourceVersion={quick.version()}&allowWatchBookmarks=true")
        quick.idle_events(5)
        version = quick.version()
        while int((told := watching.bookmark())["metadata"]["resourceVersion"]) < version:
            pass
        assert told == {
            "apiVersion": "resourceclass.rm/v1alpha1",
            "kind": "ResourceClass",
            "metadata": {"resourceVersion": str(version)},
        }

    def test_a_bookmark_of_a_table_has_no_rows(self, quick: Served, watch: OpenWatch) -> None:
        watching = watch(quick, "allowWatchBookmarks=true", accept=TABLE)
        assert watching.bookmark()["rows"] == []

    def test_it_ends_when_its_time_is_over(self, served: Served, watch: OpenWatch) -> None:
        short, long = watch(served, "timeoutSeconds=1"), watch(served, "timeoutSeconds=99999999999999")
        assert short.has_ended()
        served.create("a")
        assert long.told()[1] == "a"

    def test_its_end_says_how_far_it_has_come(self, served: Served, watch: OpenWatch) -> None:
        watching = watch(served, "timeoutSeconds=1&allowWatchBookmarks=true")
        assert int(watching.bookmark()["metadata"]["resourceVersion"]) == served.version()
        assert watching.has_ended()

    def test_the_end_of_the_server_is_a_clean_end(self, served: Served, watch: OpenWatch) -> None:
        watching = watch(served)
        served.server.stop(grace=1.0)
        assert watching.has_ended()


class TestCost:
    def test_many_watches_and_many_events_share_few_readings(self, stocked: Served, watch: OpenWatch) -> None:
        watches = [watch(stocked) for _ in range(20)]
        assert {each.told() for each in watches} == {("ADDED", "any", "6", "0")}
        before = len(stocked.classes.readings)
        with stocked.held_reading(lambda: stocked.grant(any=1000)):
            for _ in range(50):
                stocked.release(stocked.grant(any=1000))
            stocked.grant(any=2000)
        assert {each.told() for each in watches} == {("MODIFIED", "any", "6", "3")}
        stocked.delete("any")
        assert {each.told() for each in watches} == {("DELETED", "any", "6", "3")}
        # Held, one for each page of events since, one for the deletion of 104 events.
        assert len(stocked.classes.readings) - before <= 10

    def test_what_no_class_has_to_do_with_is_not_read_for(self, stocked: Served, watch: OpenWatch) -> None:
        watching = watch(stocked)
        watching.next()
        before = len(stocked.classes.readings)
        stocked.idle_events(20)
        stocked.create("later")
        assert watching.told()[1] == "later"
        assert len(stocked.classes.readings) == before + 1

    def test_without_watches_nothing_is_read(self, stocked: Served, watch: OpenWatch) -> None:
        watching = watch(stocked)
        watching.next()
        watching.leave()
        until(lambda: stocked.api.open_watches == 0)
        before = len(stocked.classes.readings)
        stocked.grant(any=1000)
        assert watch(stocked).told() == ("ADDED", "any", "6", "1")
        assert len(stocked.classes.readings) == before + 1


class TestTrouble:
    def test_a_database_that_was_away_is_asked_again(
        self, stocked: Served, watch: OpenWatch, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(class_watches, "RETRY_SECONDS", 0.01)
        watching = watch(stocked)
        watching.next()
        stocked.classes.faults.extend([LedgerUnavailableError("gone")] * 2)
        stocked.grant(any=1000)
        assert watching.told() == ("MODIFIED", "any", "6", "1")
        assert not stocked.classes.faults

    def test_a_defect_ends_the_watches_and_not_what_comes_after(
        self, stocked: Served, watch: OpenWatch
    ) -> None:
        watching = watch(stocked)
        watching.next()
        stocked.classes.faults.append(RuntimeError("a defect"))
        stocked.grant(any=1000)
        assert watching.has_ended()
        assert watch(stocked).told() == ("ADDED", "any", "6", "1")
