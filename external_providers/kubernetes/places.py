"""Namespaces as places: what their quotas allow, and for what no quota speaks of what the nodes have."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from external_providers.base import Place
from external_providers.kubernetes.documents import Document, mapping, name_of, text
from external_providers.kubernetes.identity import KUBERNETES
from external_providers.kubernetes.nodes import Node
from external_providers.kubernetes.pods import Pod
from external_providers.kubernetes.quantities import MOST
from external_providers.kubernetes.quotas import Quota, tightest
from rm_service.domain.amounts import Amounts


@dataclass(frozen=True, slots=True)
class Namespace:
    """What is kept of a namespace."""

    name: str
    active: bool


def read_namespace(item: Document) -> Namespace:
    """What is kept of a namespace. Raises MalformedError."""
    name = name_of(item, "namespace")
    phase = text(mapping(item, "status", f"namespace {name}"), "phase", f"namespace {name}.status")
    return Namespace(name, active=phase != "Terminating")


@dataclass(frozen=True, slots=True)
class Cluster:
    """What there is in a cluster, all namespaces together."""

    total: Amounts
    used: Amounts
    nodes: int
    """How many are counted in `total`."""


def survey(nodes: Collection[Node], pods: Iterable[Pod]) -> Cluster:
    """What ready nodes have, and what pods ask for: also those that wait, and those on a node that is not
    well, since they will need room elsewhere; not those on nodes that are kept for others.
    """
    apart = {node.name for node in nodes if node.apart}
    counted = [node for node in nodes if node.open]
    return Cluster(
        total=_sum(node.allocatable for node in counted),
        used=_sum(pod.requested for pod in pods if pod.node not in apart),
        nodes=len(counted),
    )


def make_places(
    namespaces: Iterable[Namespace], quotas: Iterable[Quota], nodes: Collection[Node], pods: Sequence[Pod]
) -> list[Place]:
    """One place for each namespace."""
    cluster = survey(nodes, pods)
    quotas_in: dict[str, list[Quota]] = {}
    for quota in quotas:
        quotas_in.setdefault(quota.namespace, []).append(quota)
    pods_in: dict[str, list[Pod]] = {}
    for pod in pods:
        pods_in.setdefault(pod.namespace, []).append(pod)
    return [
        _place(namespace, quotas_in.get(namespace.name, []), pods_in.get(namespace.name, []), cluster)
        for namespace in namespaces
    ]


def _place(namespace: Namespace, quotas: Sequence[Quota], pods: Sequence[Pod], cluster: Cluster) -> Place:
    requested = _sum(pod.requested for pod in pods)
    limits = tightest(quotas, requested)
    total: dict[str, int] = {}
    used: dict[str, int] = {}
    sources: dict[str, str] = {}
    for dimension in sorted(KUBERNETES.dimensions):
        limit = limits.get(dimension)
        total[dimension] = limit.total if limit else cluster.total.get(dimension, 0)
        used[dimension] = limit.used if limit else cluster.used.get(dimension, 0)
        sources[dimension] = f"quota {limit.quota}" if limit else f"{cluster.nodes} nodes"
    details: dict[str, object] = {
        "source": sources,
        "requested": requested,
        "pods_without_node": sum(not pod.node for pod in pods),
    }
    if scoped := sorted(quota.name for quota in quotas if quota.scoped):
        details["scoped_quotas_left_out"] = scoped
    return Place(namespace.name, total, used, open=namespace.active, details=details)


def _sum(vectors: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Exact until the end, then at most MOST."""
    found: dict[str, int] = {}
    for vector in vectors:
        for dimension, amount in vector.items():
            found[dimension] = found.get(dimension, 0) + amount
    return {dimension: min(amount, MOST) for dimension, amount in found.items()}
