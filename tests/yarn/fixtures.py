"""A real YARN for the tests of a module. Import `yarn_cluster` (and what it needs) where it is used."""

from collections.abc import Iterator

import pytest

from tests.yarn.build import require_tools
from tests.yarn.cluster import YarnCluster

__all__ = ["yarn_cluster"]


@pytest.fixture(scope="module", params=["capacity", "absolute", "fair"])
def yarn_cluster(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[YarnCluster]:
    """A cluster with each scheduler in turn; another choice: `indirect=True` and the schedulers' names."""
    require_tools()
    with YarnCluster(request.param, tmp_path_factory.mktemp("yarn")) as cluster:
        yield cluster
        print(cluster.log_tail())  # noqa: T201 - pytest shows it with a failure
