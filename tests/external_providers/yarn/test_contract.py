"""The provider keeps to what every provider has to keep to."""

from collections.abc import Iterator
from typing import Any

import pytest

from external_providers.testkit import Config, ProviderContract, Subject, http_hangs, http_troubles
from external_providers.yarn import YarnProvider
from tests.external_providers.yarn.documents import application, applications, capacity, share
from tests.external_providers.yarn.fake_rm import APPS, METRICS, SCHEDULER, FakeRm, metrics, reply

REPLIES = {
    SCHEDULER: reply(capacity(share("etl", 50.0, 100.0, share("daily", 25.0, 50.0, maxApplications=10)))),
    METRICS: metrics(1000, 10),
    APPS: reply(applications(application("app_1", "root.etl.daily", applicationTags="rm-1"))),
}


def config(*addresses: str) -> Config:
    found: dict[str, Any] = {"addresses": list(addresses), "user": "alice", "password": "a-secret-word"}
    return found


class TestOneResourceManager(ProviderContract):
    @pytest.fixture
    def subject(self) -> Iterator[Subject]:
        provider = YarnProvider()
        with FakeRm(REPLIES) as manager:
            yield Subject(
                provider, config(manager.url), troubles=http_troubles(config), hangs=http_hangs(config)
            )
        provider.close()


class TestTwoResourceManagers(ProviderContract):
    @pytest.fixture
    def subject(self) -> Iterator[Subject]:
        provider = YarnProvider()
        with FakeRm() as standby, FakeRm(REPLIES) as active:
            standby.stand_by()

            def beside(url: str) -> Config:
                return config(standby.url, url)

            yield Subject(
                provider, beside(active.url), troubles=http_troubles(beside), hangs=http_hangs(beside)
            )
        provider.close()
