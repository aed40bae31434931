"""Several ResourceManagers stand in for each other: the active one is found, remembered, and found again."""

from collections.abc import Iterator

import pytest

from external_providers.base import DeniedError, ExternalResourceRequest, MalformedError, UnreachableError
from external_providers.yarn import YarnProvider
from tests.external_providers.yarn.documents import applications, capacity, share
from tests.external_providers.yarn.fake_rm import (
    APPS,
    INFO,
    METRICS,
    SCHEDULER,
    FakeRm,
    Reply,
    info,
    metrics,
    reply,
    request,
)

ANSWERS = {
    SCHEDULER: reply(capacity(share("etl", 50.0, 100.0))),
    METRICS: metrics(1000, 10),
    APPS: reply(applications()),
}


WORD = "hunter2"


@pytest.fixture
def provider() -> Iterator[YarnProvider]:
    provider = YarnProvider()
    yield provider
    provider.close()


@pytest.fixture
def one() -> Iterator[FakeRm]:
    with FakeRm(ANSWERS) as manager:
        yield manager


@pytest.fixture
def two() -> Iterator[FakeRm]:
    with FakeRm(ANSWERS) as manager:
        manager.stand_by()
        yield manager


@pytest.fixture
def both(one: FakeRm, two: FakeRm) -> ExternalResourceRequest:
    return request(one.url, two.url)


def take_over(active: FakeRm, standby: FakeRm, location: str = "") -> None:
    """They change places."""
    standby.replies = {INFO: info(), **ANSWERS}
    active.stand_by(location)
    active.asked.clear()
    standby.asked.clear()


def test_a_single_one_is_asked_twice_for_any_number_of_queues(provider: YarnProvider, one: FakeRm) -> None:
    many = [share(f"q{number}", 0.1, 50.0) for number in range(1_000)]
    one.replies[SCHEDULER] = reply(capacity(*many))
    assert len(provider.places(request(one.url))) == 1_001
    assert one.paths == [SCHEDULER, METRICS]


def test_the_applications_of_all_queues_are_one_question(provider: YarnProvider, one: FakeRm) -> None:
    assert provider.applications(request(one.url)) == []
    (asked,) = one.asked
    assert asked.path == APPS
    assert asked.query == (
        "states=NEW,NEW_SAVING,SUBMITTED,ACCEPTED,RUNNING&deSelects=resourceRequests,timeouts,"
        "appNodeLabelExpression,amNodeLabelExpression,resourceInfo"
    )


def test_the_active_one_is_looked_for_once(
    provider: YarnProvider, one: FakeRm, two: FakeRm, both: ExternalResourceRequest
) -> None:
    other_way_round = request(two.url, one.url)
    assert {place.name for place in provider.places(other_way_round)} == {"root", "root.etl"}
    provider.places(other_way_round)
    assert two.paths == [INFO]
    assert one.paths == [INFO, SCHEDULER, METRICS, SCHEDULER, METRICS]


def test_one_that_now_stands_by_leads_to_the_other(
    provider: YarnProvider, one: FakeRm, two: FakeRm, both: ExternalResourceRequest
) -> None:
    provider.places(both)
    take_over(one, two)
    assert len(provider.places(both)) == 2
    assert SCHEDULER in two.paths


def test_a_redirect_to_one_of_our_addresses_is_followed(
    provider: YarnProvider, one: FakeRm, two: FakeRm, both: ExternalResourceRequest
) -> None:
    provider.places(both)
    take_over(one, two, location=f"{two.url}/ws/v1/cluster/scheduler")
    assert len(provider.places(both)) == 2
    assert INFO not in two.paths  # it was told, and had not to be looked for


def test_one_that_is_gone_leads_to_the_other(
    provider: YarnProvider, one: FakeRm, two: FakeRm, both: ExternalResourceRequest
) -> None:
    provider.places(both)
    take_over(one, two)
    one.close()
    assert len(provider.places(both)) == 2
    assert provider.health(both).detail.startswith(two.url)


def test_one_that_fails_leads_to_the_other(
    provider: YarnProvider, one: FakeRm, two: FakeRm, both: ExternalResourceRequest
) -> None:
    provider.places(both)
    take_over(one, two)
    one.replies = {INFO: Reply(status=500), SCHEDULER: Reply(status=500)}
    assert len(provider.places(both)) == 2


def test_one_that_is_silent_leaves_the_other_its_time(
    provider: YarnProvider, one: FakeRm, two: FakeRm
) -> None:
    two.replies = {INFO: Reply(silent=True)}
    assert len(provider.places(request(two.url, one.url, seconds=2))) == 2


def test_an_active_one_that_falls_silent_leaves_the_other_its_time(
    provider: YarnProvider, one: FakeRm, two: FakeRm
) -> None:
    both = request(one.url, two.url, seconds=2)
    provider.places(both)
    take_over(one, two)
    one.replies = dict.fromkeys((INFO, SCHEDULER, METRICS, APPS), Reply(silent=True))
    assert len(provider.places(both)) == 2  # by the same look
    assert one.paths == [SCHEDULER]


def test_one_that_was_silent_is_tried_last(provider: YarnProvider, one: FakeRm, two: FakeRm) -> None:
    one.replies = {INFO: Reply(silent=True)}
    two.replies = {INFO: info(), **ANSWERS}
    both = request(one.url, two.url, seconds=2)
    assert len(provider.places(both)) == 2
    assert one.paths == [INFO]
    assert provider.health(both).detail.startswith(two.url)
    assert one.paths == [INFO]


def test_one_that_answers_again_is_tried_in_its_turn(
    provider: YarnProvider, one: FakeRm, two: FakeRm
) -> None:
    one.replies[INFO] = Reply(status=500)
    two.replies = {INFO: info(), **ANSWERS}
    both = request(one.url, two.url)
    provider.places(both)
    take_over(two, one)
    provider.places(both)
    assert provider.health(both).detail.startswith(one.url)
    assert two.paths == [SCHEDULER, INFO]  # while the other was behind it; not since


def test_none_that_is_active_is_told_with_the_state_of_each(
    provider: YarnProvider, one: FakeRm, two: FakeRm, both: ExternalResourceRequest
) -> None:
    one.stand_by()
    two.close()
    with pytest.raises(UnreachableError) as caught:
        provider.places(both)
    assert f"{one.url} is STANDBY" in str(caught.value)
    assert f"{two.url}: Connection refused" in str(caught.value)


def test_a_denial_goes_before_silence(
    provider: YarnProvider, one: FakeRm, two: FakeRm, both: ExternalResourceRequest
) -> None:
    one.replies = {INFO: Reply(status=401)}
    two.close()
    with pytest.raises(DeniedError):
        provider.places(both)


def test_a_redirect_elsewhere_is_not_followed(provider: YarnProvider, one: FakeRm) -> None:
    with FakeRm(ANSWERS) as stranger:
        one.replies[SCHEDULER] = Reply(
            status=302, headers={"Location": f"{stranger.url}/ws/v1/cluster/scheduler"}
        )
        with pytest.raises(MalformedError, match=f"redirects to {stranger.url}, where we do not follow"):
            provider.places(request(one.url, user="u", password=WORD))
        assert stranger.asked == []


def test_a_standby_that_names_a_stranger_is_not_followed(
    provider: YarnProvider, one: FakeRm, two: FakeRm
) -> None:
    with FakeRm(ANSWERS) as stranger:
        one.stand_by(location=f"{stranger.url}/cluster")
        with pytest.raises(UnreachableError):
            provider.places(request(one.url, two.url, user="u", password=WORD))
        assert stranger.asked == []


def test_one_that_waits_for_an_active_one_stands_by(provider: YarnProvider, one: FakeRm) -> None:
    page = Reply(
        b"There is no active RM right now.", headers={"Refresh": "3; url=/", "Content-Type": "text/plain"}
    )
    one.replies[SCHEDULER] = page
    with pytest.raises(UnreachableError, match="stands by"):
        provider.places(request(one.url))


def test_before_there_was_high_availability_everyone_was_active(provider: YarnProvider, one: FakeRm) -> None:
    old = reply({"clusterInfo": {"state": "STARTED", "resourceManagerVersion": "2.2.0"}})
    one.replies[INFO] = old
    assert provider.health(request(one.url)).ok


def test_health_names_address_version_and_state(
    provider: YarnProvider, both: ExternalResourceRequest, one: FakeRm
) -> None:
    health = provider.health(both)
    assert (health.ok, health.detail) == (True, f"{one.url}: YARN 3.4.2, STARTED")


def test_a_changed_configuration_counts_at_once(provider: YarnProvider, one: FakeRm) -> None:
    provider.places(request(one.url))
    provider.places(request(one.url, user="u", password=WORD))
    assert [asked.headers["Authorization"] is None for asked in one.asked] == [True, True, False, False]


def test_two_records_do_not_share_anything(provider: YarnProvider, one: FakeRm) -> None:
    with FakeRm(ANSWERS | {METRICS: metrics(7, 7)}) as other:
        first = provider.places(request(one.url, name="c1"))
        second = provider.places(request(other.url, name="c2"))
    assert first[0].total["yarn.vcore"] == 10_000
    assert second[0].total["yarn.vcore"] == 7_000


def test_leaf_names_are_looked_up_once(provider: YarnProvider, one: FakeRm) -> None:
    one.replies[APPS] = reply({"apps": {"app": {"id": "app_1", "queue": "etl", "state": "RUNNING"}}})
    assert [app.place for app in provider.applications(request(one.url))] == ["root.etl"]
    provider.applications(request(one.url))
    assert one.paths == [APPS, SCHEDULER, METRICS, APPS]
