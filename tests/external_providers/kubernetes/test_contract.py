"""What every provider has to keep to, of this one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from external_providers.kubernetes import KubernetesProvider
from external_providers.testkit import ProviderContract, Subject, http_hangs, http_troubles
from tests.external_providers.kubernetes.asking import Keys
from tests.external_providers.kubernetes.fake_api import FakeApi
from tests.kubernetes.objects import namespace, node, pod, quota

TOKEN = "very-secret"  # noqa: S105 - an example


class TestKubernetes(ProviderContract):
    @pytest.fixture
    def subject(self, tmp_path: Path, keys: Keys) -> Iterator[Subject]:
        objects = [
            namespace("a"),
            namespace("b", phase="Terminating"),
            node("n1", {"cpu": "8", "memory": "32Gi", "pods": "110"}),
            quota("a", "q", {"requests.cpu": "4"}, {"requests.cpu": "1"}),
            quota("a", "scoped", {"requests.cpu": "1"}, scopes=["BestEffort"]),
            pod("a", "p", {"cpu": "1"}, node="n1", labels={"rm-service/application": "7"}),
            pod("b", "p", {"cpu": "2"}, labels={"rm-service/application": "7"}),
        ]
        with FakeApi(*objects, token=TOKEN, tls=keys.server_side(tmp_path)) as served:
            config = {
                "server": served.url,
                "token": TOKEN,
                "ca_data": keys.authority.certificate,
                "namespaces": ["a", "b"],
                "tolerations": ["gpu"],
            }
            yield Subject(
                KubernetesProvider(),
                config,
                troubles=http_troubles(lambda url: {"server": url}),
                hangs=http_hangs(lambda url: {"server": url}),
            )
