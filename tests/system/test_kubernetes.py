"""The Kubernetes provider against a real API server: what it stores is what the provider shows."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from external_providers.base import DeniedError, ExternalResourceRequest, ProviderRecord, UnreachableError
from external_providers.kubernetes import KubernetesProvider, api
from tests.kubernetes import objects
from tests.kubernetes.apiserver import ApiServer
from tests.kubernetes.objects import container, namespace, node, pod, quota, sidecar, taint
from tests.kubernetes.programs import find_programs, version

# The first test may build the server.
pytestmark = [pytest.mark.system, pytest.mark.timeout(3600)]

PROVIDER = KubernetesProvider()
READER = "token-of-the-reader"
LIMITED = "token-of-the-limited"
STRANGER = "token-of-a-stranger"
Gi = 2**30


def role(name: str, resources: list[str], users: list[str]) -> list[objects.Document]:
    """A role that lists `resources` everywhere, and who has it."""
    rbac = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [""], "resources": resources, "verbs": ["list"]}]
    subjects = [{"kind": "User", "apiGroup": rbac, "name": user} for user in users]
    return [
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": rules,
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": name},
            "subjects": subjects,
        },
    ]


SPARK = {"spark-app-selector": "spark-1", "rm-service/application": "42"}

NONE = {"requests.cpu": "0", "requests.memory": "0"}

CLUSTER = [
    *role("rm-reader", ["namespaces", "resourcequotas", "nodes", "pods"], ["reader", "certified"]),
    *role("rm-limited", ["namespaces", "resourcequotas", "nodes"], ["limited"]),
    namespace("etl", labels={"team": "data"}),
    namespace("web"),
    namespace("infra"),
    node("n1", {"cpu": "8", "memory": "32Gi", "pods": "110"}),
    node("n2", {"cpu": "3900m", "memory": "15Gi", "pods": "50"}),
    node("gone", {"cpu": "64", "memory": "64Gi", "pods": "110"}, ready=False),
    node("closed", {"cpu": "64", "memory": "64Gi", "pods": "110"}, unschedulable=True),
    node("master", {"cpu": "4", "memory": "8Gi", "pods": "110"}, taints=[taint("control-plane")]),
    quota("etl", "wide", {"requests.cpu": "10", "requests.memory": "20Gi"}, NONE),
    quota("etl", "tight", {"cpu": "6", "pods": "9"}, {"cpu": "0", "pods": "0"}),
    quota("etl", "short", {"pods": "2"}, {"pods": "0"}, scopes=["Terminating"]),
    pod("etl", "driver", {"cpu": "1", "memory": "2Gi"}, node="n1", labels=SPARK),
    pod("etl", "executor", {"cpu": "2", "memory": "4Gi"}, node="n2", labels=SPARK),
    pod(
        "web",
        "front",
        node="n1",
        initContainers=[
            sidecar("proxy", {"cpu": "100m", "memory": "64Mi"}),
            container("setup", {"cpu": "700m"}),
        ],
        containers=[container("main", {"cpu": "500m", "memory": "1Gi"})],
    ),
    pod("web", "waiting", {"cpu": "250m"}, phase="Pending", labels={"job-name": "nightly"}),
    pod("web", "done", {"cpu": "3"}, node="n1", phase="Succeeded"),
    pod("infra", "of-the-master", {"cpu": "1"}, node="master"),
]


@pytest.fixture(scope="module")
def api_server() -> Iterator[ApiServer]:
    """A real API server with a small cluster's objects."""
    users = {READER: "reader", LIMITED: "limited", STRANGER: "stranger"}
    with ApiServer(find_programs(), users) as server:
        for document in CLUSTER:
            server.create(document)
        yield server


@pytest.fixture
def server(api_server: ApiServer) -> ApiServer:
    """The same, running, whatever the test before did to it."""
    api_server.start()
    return api_server


def ask(server: ApiServer, *, token: str = READER, **config: Any) -> ExternalResourceRequest:
    config = {"server": server.url, "ca_file": str(server.ca_file), "token": token, **config}
    return ExternalResourceRequest(PROVIDER.parser.parse(ProviderRecord("kubernetes", "c1", config)), 20)


def test_a_namespace_has_what_its_tightest_quotas_allow(server: ApiServer) -> None:
    etl = {place.name: place for place in PROVIDER.places(ask(server))}["etl"]
    assert etl.total == {"k8s.vcore": 6000, "k8s.memory": 20 * Gi, "k8s.pods": 9}
    # The server itself counted the pods into the quotas when it let them in.
    assert etl.used == {"k8s.vcore": 3000, "k8s.memory": 6 * Gi, "k8s.pods": 2}
    assert etl.details["scoped_quotas_left_out"] == ["short"]


def test_a_namespace_without_a_quota_has_what_the_nodes_have(server: ApiServer) -> None:
    web = {place.name: place for place in PROVIDER.places(ask(server))}["web"]
    assert web.total == {"k8s.vcore": 11900, "k8s.memory": 47 * Gi, "k8s.pods": 160}
    # etl: 3000 in 2 pods; front: setup beside its proxy needs 800; waiting: 250. Not done, not of the master.
    assert web.used == {"k8s.vcore": 4050, "k8s.memory": 7 * Gi + 64 * 2**20, "k8s.pods": 4}
    assert web.details["pods_without_node"] == 1


def test_applications_are_pods_that_belong_together(server: ApiServer) -> None:
    found = {each.id: each for each in PROVIDER.applications(ask(server, namespaces=["etl", "web"]))}
    assert set(found) == {"etl/application/42", "web/pod/front", "web/job/nightly"}
    spark = found["etl/application/42"]
    assert (spark.place, spark.kind, spark.name, spark.state) == ("etl", "spark", "spark-1", "Running")
    assert spark.allocated == {"k8s.vcore": 3000, "k8s.memory": 6 * Gi, "k8s.pods": 2}
    assert spark.tags == {"rm-42"}
    assert found["web/job/nightly"].state == "Pending"


def test_a_pod_that_comes_and_goes_is_seen(server: ApiServer) -> None:
    before, applications = PROVIDER.places(ask(server)), PROVIDER.applications(ask(server))
    server.create(pod("infra", "more", {"cpu": "1500m"}, node="n1"))
    used = {place.name: place.used["k8s.vcore"] for place in PROVIDER.places(ask(server))}
    assert used["infra"] == 1500 + {place.name: place.used["k8s.vcore"] for place in before}["infra"]
    assert "infra/pod/more" in {each.id for each in PROVIDER.applications(ask(server))}
    server.delete("Pod", "more", "infra")
    assert (PROVIDER.places(ask(server)), PROVIDER.applications(ask(server))) == (before, applications)


def test_a_label_selector_chooses_the_namespaces(server: ApiServer) -> None:
    request = ask(server, namespaces="team in (data, other)")
    assert [place.name for place in PROVIDER.places(request)] == ["etl"]
    assert {each.place for each in PROVIDER.applications(request)} == {"etl"}


def test_lists_are_continued_page_by_page(server: ApiServer, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = PROVIDER.places(ask(server)), PROVIDER.applications(ask(server))
    monkeypatch.setattr(api, "PAGE_ITEMS", 1)
    assert (PROVIDER.places(ask(server)), PROVIDER.applications(ask(server))) == whole


def test_a_namespace_that_is_being_deleted_takes_nothing_new(server: ApiServer) -> None:
    server.create(namespace("leaving"))
    server.delete("Namespace", "leaving")  # nobody is there to finish it
    places = {place.name: place for place in PROVIDER.places(ask(server))}
    assert (places["leaving"].open, places["web"].open) == (False, True)


def test_health_says_the_version(server: ApiServer) -> None:
    health = PROVIDER.health(ask(server))
    assert (health.ok, health.detail) == (True, f"Kubernetes {version()}")


def test_a_right_that_is_missing_is_named(server: ApiServer) -> None:
    with pytest.raises(DeniedError, match="may not list pods"):
        PROVIDER.places(ask(server, token=LIMITED))
    with pytest.raises(DeniedError, match="may not list namespaces"):
        PROVIDER.places(ask(server, token=STRANGER))


def test_a_token_that_nobody_knows_is_denied(server: ApiServer) -> None:
    with pytest.raises(DeniedError, match="does not accept the credentials"):
        PROVIDER.places(ask(server, token="unknown"))  # noqa: S106 - an example
    assert not PROVIDER.health(ask(server, token="unknown")).ok  # noqa: S106 - an example


def test_a_kubeconfig_with_a_client_certificate_leads_in(server: ApiServer, tmp_path: Path) -> None:
    client = server.authority.client("certified")
    (tmp_path / "client.crt").write_text(client.certificate)
    (tmp_path / "client.key").write_text(client.key)
    user = {"client-certificate": "client.crt", "client-key": "client.key"}
    cluster = {"server": server.url, "certificate-authority": str(server.ca_file)}
    document = {
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
    }
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(document))
    record = ProviderRecord("kubernetes", "c1", {"kubeconfig": str(path)})
    found = PROVIDER.places(ExternalResourceRequest(PROVIDER.parser.parse(record), 20))
    assert {"etl", "web"} <= {place.name for place in found}


def test_a_server_that_is_away_is_unreachable_and_answers_again_when_it_is_back(server: ApiServer) -> None:
    before = PROVIDER.places(ask(server))
    server.stop()
    with pytest.raises(UnreachableError, match="refused"):
        PROVIDER.places(ask(server))
    assert not PROVIDER.health(ask(server)).ok
    server.start()
    assert PROVIDER.places(ask(server)) == before
