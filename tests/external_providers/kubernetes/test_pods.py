"""What a pod asks for, counted as Kubernetes counts it, and what is kept of it."""

from typing import Any

import pytest

from external_providers.base import MalformedError
from external_providers.kubernetes.pods import read_pod
from tests.kubernetes.objects import Document, container, pod, sidecar

Gi = 2**30


def requested(document: Document) -> dict[str, int]:
    kept = read_pod(document)
    assert kept is not None
    return dict(kept.requested)


def of_containers(*containers: Document, **spec: Any) -> Document:
    return pod("a", "p", containers=list(containers), **spec)


def test_containers_run_side_by_side_and_add_up() -> None:
    document = of_containers(
        container("one", {"cpu": "500m", "memory": "1Gi"}), container("two", {"cpu": "1", "memory": "1Gi"})
    )
    assert requested(document) == {"k8s.vcore": 1500, "k8s.memory": 2 * Gi, "k8s.pods": 1}


def test_a_pod_that_requests_nothing_is_a_pod() -> None:
    assert requested(pod("a", "p")) == {"k8s.pods": 1}


def test_init_containers_run_one_after_another_before_the_others() -> None:
    document = of_containers(
        container("main", {"cpu": "1", "memory": "1Gi"}),
        initContainers=[
            container("first", {"cpu": "3", "memory": "1"}),
            container("second", {"memory": "512Mi"}),
        ],
    )
    assert requested(document) == {"k8s.vcore": 3000, "k8s.memory": Gi, "k8s.pods": 1}


def test_a_sidecar_runs_beside_what_starts_after_it() -> None:
    document = of_containers(
        container("main", {"cpu": "1"}),
        initContainers=[
            container("before", {"cpu": "2500m"}),
            sidecar("proxy", {"cpu": "500m"}),
            container("after", {"cpu": "1800m"}),
        ],
    )
    assert requested(document)["k8s.vcore"] == 2500  # main + proxy is 1500, after + proxy is 2300


def test_sidecars_and_containers_together_may_be_the_peak() -> None:
    document = of_containers(
        container("main", {"cpu": "2"}),
        initContainers=[sidecar("proxy", {"cpu": "500m"}), container("setup", {"cpu": "1"})],
    )
    assert requested(document)["k8s.vcore"] == 2500


def test_the_overhead_of_the_runtime_comes_on_top() -> None:
    document = of_containers(container("main", {"cpu": "1"}), overhead={"cpu": "250m", "memory": "120Mi"})
    assert requested(document) == {"k8s.vcore": 1250, "k8s.memory": 120 * 2**20, "k8s.pods": 1}


def test_what_the_whole_pod_requests_stands_for_its_containers() -> None:
    document = of_containers(
        container("main", {"cpu": "1", "memory": "1Gi"}),
        resources={"requests": {"cpu": "4"}},
        overhead={"cpu": "100m"},
    )
    assert requested(document) == {"k8s.vcore": 4100, "k8s.memory": Gi, "k8s.pods": 1}


@pytest.mark.parametrize(
    "status",
    [{"allocatedResources": {"cpu": "2"}}, {"resources": {"requests": {"cpu": "2"}}}],
    ids=["allocated", "running"],
)
def test_a_container_that_shrinks_in_place_counts_until_it_has_shrunk(status: dict[str, Any]) -> None:
    document = of_containers(container("main", {"cpu": "1"}))
    document["status"]["containerStatuses"] = [{"name": "main", **status}]
    assert requested(document)["k8s.vcore"] == 2000


def test_fractions_are_rounded_up() -> None:
    document = of_containers(container("main", {"cpu": "100u", "memory": "100m"}))
    assert requested(document) == {"k8s.vcore": 1, "k8s.memory": 1, "k8s.pods": 1}


def test_an_absurd_request_does_not_overflow() -> None:
    document = of_containers(container("one", {"memory": "9E"}), container("two", {"memory": "9E"}))
    assert requested(document)["k8s.memory"] == 2**48


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_nothing_is_kept_of_a_pod_that_has_ended(phase: str) -> None:
    assert read_pod(pod("a", "p", {"cpu": "1"}, phase=phase)) is None


def test_lists_that_are_null_are_empty() -> None:
    assert requested(pod("a", "p", containers=None, initContainers=None)) == {"k8s.pods": 1}


@pytest.mark.parametrize(
    ("document", "field"),
    [
        (pod("a", "p", {"cpu": "much"}), "pod a/p, container main.requests.cpu"),
        (pod("a", "p", containers={}), "pod a/p.containers"),
        (pod("", "p"), "metadata.namespace"),
        (pod("a", ""), "pod.metadata.name"),
        ({"metadata": None}, "pod.metadata.name"),
        ({"metadata": []}, "pod.metadata"),
    ],
)
def test_a_pod_that_no_server_would_show_is_malformed_and_names_the_field(
    document: Document, field: str
) -> None:
    with pytest.raises(MalformedError, match=field.replace(".", r"\.")):
        read_pod(document)
