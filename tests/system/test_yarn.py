"""A real YARN, read by its provider: both schedulers, applications, a ResourceManager that goes and comes."""

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from tenacity import retry, retry_if_exception_type, stop_after_delay, wait_fixed

from external_providers.base import (
    ExternalApplication,
    ExternalResourceRequest,
    Place,
    ProviderRecord,
    UnreachableError,
)
from external_providers.yarn import YarnProvider
from tests.yarn.cluster import YarnCluster
from tests.yarn.fixtures import yarn_cluster

__all__ = ["yarn_cluster"]

# The first test of all may have to fetch Hadoop.
pytestmark = [pytest.mark.system, pytest.mark.timeout(400)]

MIB = 2**20
QUEUES = {"root", "root.default", "root.etl", "root.etl.adhoc", "root.etl.daily"}
# Of 16384 MiB and 32 vcores: what conf/ says, bounded by what is above.
TOTALS: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "capacity": {"root.default": (8192, 16), "root.etl.daily": (16384, 32), "root.etl.adhoc": (8192, 16)},
    "absolute": {"root.default": (8192, 10), "root.etl.daily": (16384, 30), "root.etl.adhoc": (6144, 12)},
    "fair": {"root.default": (8192, 16), "root.etl.daily": (16384, 30), "root.etl.adhoc": (6144, 12)},
}
GUARANTEED: Mapping[str, Mapping[str, tuple[int, int]]] = {
    "capacity": {"root.default": (3276, 6), "root.etl.adhoc": (3276, 6)},
    "absolute": {"root.default": (3072, 6), "root.etl.daily": (9216, 18), "root.etl.adhoc": (3072, 6)},
    "fair": {"root.etl.daily": (4096, 4)},  # half of what etl has by its weight; the vcores are its minimum
}

_tags = itertools.count(1)

# What YARN says follows what happened in it a moment later, and nothing tells us when.
eventually = retry(
    retry=retry_if_exception_type(AssertionError),
    stop=stop_after_delay(60),
    wait=wait_fixed(0.1),
    reraise=True,
)


class Reader:
    """The provider, asked about one cluster."""

    def __init__(self, web: str) -> None:
        self.provider = YarnProvider()
        self._matched = self.provider.parser.parse(ProviderRecord("yarn", "c1", {"addresses": [web]}))

    @property
    def request(self) -> ExternalResourceRequest:
        return ExternalResourceRequest(self._matched, 20)

    def places(self) -> dict[str, Place]:
        return {place.name: place for place in self.provider.places(self.request)}

    def applications(self) -> Sequence[ExternalApplication]:
        return self.provider.applications(self.request)

    def application(self, identity: str) -> ExternalApplication | None:
        return next((app for app in self.applications() if app.id == identity), None)


@pytest.fixture
def reader(yarn_cluster: YarnCluster) -> Iterator[Reader]:
    reader = Reader(yarn_cluster.web)
    yield reader
    reader.provider.close()


@pytest.fixture
def held(yarn_cluster: YarnCluster) -> Iterator[tuple[str, str]]:
    """An application with three containers of 1 GiB and 2 vcores, and its tag."""
    tag = f"rm-{next(_tags)}"
    identity = yarn_cluster.submit("root.etl.daily", megabytes=1024, vcores=2, containers=3, tag=tag)
    yarn_cluster.await_containers(identity)
    yield identity, tag
    yarn_cluster.finish(identity)


def amounts(megabytes: int, vcores: int, apps: int | None = None) -> dict[str, int]:
    held = {"yarn.memory": megabytes * MIB, "yarn.vcore": vcores * 1000}
    return held if apps is None else held | {"yarn.apps": apps}


def without_apps(vector: Mapping[str, Any]) -> dict[str, Any]:
    return {name: amount for name, amount in vector.items() if name != "yarn.apps"}


def test_every_queue_has_its_configured_total(yarn_cluster: YarnCluster, reader: Reader) -> None:
    places = reader.places()
    assert set(places) == QUEUES
    assert without_apps(places["root"].total) == amounts(16384, 32)
    for name, total in TOTALS[yarn_cluster.scheduler].items():
        assert (name, without_apps(places[name].total)) == (name, amounts(*total))
    for name, share in GUARANTEED[yarn_cluster.scheduler].items():
        assert (name, places[name].guaranteed) == (name, amounts(*share))
    assert all(place.open for place in places.values())


def test_a_queue_counts_the_applications_that_it_takes(yarn_cluster: YarnCluster, reader: Reader) -> None:
    most = reader.places()["root.etl.adhoc"].total["yarn.apps"]
    assert most == {"capacity": 7, "absolute": 1875, "fair": 7}[yarn_cluster.scheduler]


def test_an_application_is_listed_with_what_it_holds(reader: Reader, held: tuple[str, str]) -> None:
    identity, tag = held
    found = reader.application(identity)
    assert found == ExternalApplication(
        id=identity,
        place="root.etl.daily",
        allocated=amounts(3072, 6, apps=1),
        state="RUNNING",
        user="alice",
        name=f"held for {tag}",
        kind="rm-test",
        tags=frozenset({tag}),
    )


def test_what_an_application_holds_is_used_in_its_queue_and_above(
    yarn_cluster: YarnCluster, reader: Reader
) -> None:
    before = reader.places()
    identity = yarn_cluster.submit("root.etl.adhoc", megabytes=1024, vcores=1, containers=2, tag="rm-grows")
    yarn_cluster.await_containers(identity)
    during = reader.places()
    yarn_cluster.finish(identity)
    for name in ("root", "root.etl", "root.etl.adhoc"):
        assert _difference(during[name], before[name]) == amounts(2048, 2, apps=1)
    assert during["root.default"].used == before["root.default"].used
    assert reader.application(identity) is None
    assert {name: place.used for name, place in reader.places().items()} == {
        name: place.used for name, place in before.items()
    }


def test_what_does_not_fit_is_pending(yarn_cluster: YarnCluster, reader: Reader) -> None:
    identity = yarn_cluster.submit("root.default", megabytes=4096, vcores=1, containers=3, tag="rm-too-much")

    @eventually
    def two_of_three() -> None:
        place = reader.places()["root.default"]
        assert without_apps(place.used) == amounts(8192, 2)
        if yarn_cluster.scheduler == "fair":  # which asks no further than the queue's maximum in memory
            assert place.pending["yarn.vcore"] == 1000
        else:
            assert without_apps(place.pending) == amounts(4096, 1)

    two_of_three()
    yarn_cluster.finish(identity)


def test_a_resource_manager_that_is_away_is_unreachable_and_back_as_it_was(
    yarn_cluster: YarnCluster, reader: Reader, held: tuple[str, str]
) -> None:
    identity, _ = held
    before = reader.application(identity)
    used = reader.places()["root.etl.daily"].used

    yarn_cluster.stop_resource_manager()
    with pytest.raises(UnreachableError, match="refused"):
        reader.places()
    with pytest.raises(UnreachableError, match="refused"):
        reader.applications()
    assert not reader.provider.health(reader.request).ok
    yarn_cluster.start_resource_manager()

    assert reader.provider.health(reader.request).ok

    @eventually
    def as_before() -> None:
        assert reader.application(identity) == before
        assert reader.places()["root.etl.daily"].used == used

    as_before()


def test_health_says_who_answers_and_which_version(yarn_cluster: YarnCluster, reader: Reader) -> None:
    health = reader.provider.health(reader.request)
    assert health.ok
    assert health.detail.startswith(f"{yarn_cluster.web}: YARN 3.")


def _difference(later: Place, earlier: Place) -> dict[str, int]:
    return {name: amount - earlier.used[name] for name, amount in later.used.items()}
