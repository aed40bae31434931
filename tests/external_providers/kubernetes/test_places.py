"""Namespaces as places: quotas first, then the nodes."""

from collections.abc import Sequence

import pytest

from external_providers.base import Place
from external_providers.kubernetes.nodes import read_node
from external_providers.kubernetes.places import make_places, read_namespace
from external_providers.kubernetes.pods import read_pod
from external_providers.kubernetes.quotas import read_quota
from tests.kubernetes.objects import Document, namespace, node, pod, quota, taint

Gi = 2**30
LARGE = {"cpu": "8", "memory": "32Gi", "pods": "110"}


def places(
    *namespaces: Document,
    quotas: Sequence[Document] = (),
    nodes: Sequence[Document] = (),
    pods: Sequence[Document] = (),
    tolerated: Sequence[str] = (),
) -> dict[str, Place]:
    kept = [found for document in pods if (found := read_pod(document)) is not None]
    read_nodes = [read_node(document, tolerated) for document in nodes]
    made = make_places(map(read_namespace, namespaces), map(read_quota, quotas), read_nodes, kept)
    return {place.name: place for place in made}


def test_a_namespace_without_a_quota_has_what_the_nodes_have() -> None:
    found = places(
        namespace("a"),
        nodes=[node("n1", LARGE), node("n2", {"cpu": "3900m", "memory": "16Gi", "pods": "10"})],
        pods=[
            pod("a", "p", {"cpu": "1", "memory": "1Gi"}, node="n1"),
            pod("b", "p", {"cpu": "500m"}, node="n2"),
        ],
    )["a"]
    assert found.total == {"k8s.vcore": 11900, "k8s.memory": 48 * Gi, "k8s.pods": 120}
    assert found.used == {"k8s.vcore": 1500, "k8s.memory": Gi, "k8s.pods": 2}


def test_what_no_quota_speaks_of_comes_from_the_nodes_and_is_said() -> None:
    found = places(
        namespace("a"),
        quotas=[quota("a", "compute", {"cpu": "2"}, {"cpu": "1"}), quota("b", "other", {"memory": "1"}, {})],
        nodes=[node("n1", LARGE)],
        pods=[pod("a", "p", {"cpu": "1"}, node="n1")],
    )["a"]
    assert found.total == {"k8s.vcore": 2000, "k8s.memory": 32 * Gi, "k8s.pods": 110}
    assert found.used == {"k8s.vcore": 1000, "k8s.memory": 0, "k8s.pods": 1}
    assert found.details["source"] == {
        "k8s.vcore": "quota compute",
        "k8s.memory": "1 nodes",
        "k8s.pods": "1 nodes",
    }


def test_scoped_quotas_are_left_out_and_said() -> None:
    scoped = quota("a", "batch", {"cpu": "1"}, {"cpu": "1"}, scopes=["NotTerminating"])
    found = places(namespace("a"), quotas=[scoped], nodes=[node("n1", LARGE)])["a"]
    assert found.total["k8s.vcore"] == 8000
    assert found.details["scoped_quotas_left_out"] == ["batch"]


@pytest.mark.parametrize(
    "closed",
    [
        node("n2", LARGE, ready=False),
        node("n2", LARGE, unschedulable=True),
        node("n2", LARGE, taints=[taint("node.kubernetes.io/disk-pressure")], ready=False),
    ],
    ids=["not ready", "cordoned", "not well"],
)
def test_a_node_that_takes_no_pods_has_nothing_but_its_pods_will_need_room(closed: Document) -> None:
    found = places(
        namespace("a"), nodes=[node("n1", LARGE), closed], pods=[pod("a", "p", {"cpu": "1"}, node="n2")]
    )["a"]
    assert found.total["k8s.vcore"] == 8000
    assert found.used["k8s.vcore"] == 1000


def test_a_node_that_is_kept_for_others_is_left_out_with_its_pods() -> None:
    master = node("n2", LARGE, taints=[taint("node-role.kubernetes.io/control-plane")])
    pods = [pod("kube-system", "apiserver", {"cpu": "250m"}, node="n2")]
    found = places(namespace("a"), nodes=[node("n1", LARGE), master], pods=pods)["a"]
    assert found.total["k8s.vcore"] == 8000
    assert found.used.get("k8s.vcore", 0) == 0


def test_a_taint_that_is_tolerated_or_only_a_preference_keeps_nobody_away() -> None:
    tainted = node("n1", LARGE, taints=[taint("gpu"), taint("old", "PreferNoSchedule")])
    assert places(namespace("a"), nodes=[tainted], tolerated=["gpu"])["a"].total["k8s.vcore"] == 8000
    assert places(namespace("a"), nodes=[tainted])["a"].total["k8s.vcore"] == 0


def test_pods_that_wait_for_a_node_are_counted() -> None:
    found = places(
        namespace("a"), nodes=[node("n1", LARGE)], pods=[pod("a", "p", {"cpu": "1"}, phase="Pending")]
    )["a"]
    assert found.used["k8s.vcore"] == 1000
    assert found.details["pods_without_node"] == 1


def test_a_namespace_that_is_being_deleted_takes_nothing_new() -> None:
    found = places(namespace("a"), namespace("b", phase="Terminating"))
    assert (found["a"].open, found["b"].open) == (True, False)


def test_a_cluster_without_nodes_has_nothing() -> None:
    assert places(namespace("a"))["a"].total == {"k8s.vcore": 0, "k8s.memory": 0, "k8s.pods": 0}


def test_sums_do_not_overflow() -> None:
    huge = {"cpu": "4E", "memory": "4E", "pods": "1"}
    found = places(namespace("a"), nodes=[node(f"n{number}", huge) for number in range(4)])["a"]
    assert found.total["k8s.memory"] == 2**62
