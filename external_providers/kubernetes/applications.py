"""Pods by the application that they belong to."""

from collections.abc import Iterable
from hashlib import sha256

from external_providers.base import ExternalApplication
from external_providers.kubernetes.pods import Pod
from external_providers.kubernetes.quantities import MOST
from rm_service.domain.amounts import Amounts

MAX_ID = 256
"""What the ledger takes as a name. Pods may have longer ones."""


def group(pods: Iterable[Pod]) -> list[ExternalApplication]:
    """One application for those that name the same application of ours, else of the same Spark application,
    else of the same job; a pod that belongs to nothing is one by itself.
    """
    groups: dict[str, list[Pod]] = {}
    for pod in pods:
        groups.setdefault(_id(pod), []).append(pod)
    return [_application(members, own) for own, members in groups.items()]


def _application(pods: list[Pod], own: str) -> ExternalApplication:
    allocated: dict[str, int] = {}
    for pod in pods:
        _add(allocated, pod.requested)
    first = min(pods, key=lambda pod: pod.name)
    return ExternalApplication(
        id=own,
        place=first.namespace,
        allocated=allocated,
        state="Running" if any(pod.phase == "Running" for pod in pods) else "Pending",
        name=first.spark or first.job or first.name,
        kind="spark" if first.spark else "job" if first.job else "pod",
        tags=frozenset({f"rm-{first.application}"}) if first.application else frozenset(),
    )


def _id(pod: Pod) -> str:
    """Unique in the cluster, whatever labels a tenant writes: namespace, kind and name."""
    if pod.application:
        return f"{pod.namespace}/application/{pod.application}"
    if pod.spark:
        return f"{pod.namespace}/spark/{pod.spark}"
    if pod.job:
        return f"{pod.namespace}/job/{pod.job}"
    own = f"{pod.namespace}/pod/{pod.name}"
    return own if len(own) <= MAX_ID else own[: MAX_ID - 17] + "~" + sha256(own.encode()).hexdigest()[:16]


def _add(allocated: dict[str, int], requested: Amounts) -> None:
    for dimension, amount in requested.items():
        allocated[dimension] = min(allocated.get(dimension, 0) + amount, MOST)
