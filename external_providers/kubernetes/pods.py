"""Pods: what each asks for, counted as Kubernetes' scheduler and quotas count it."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from external_providers.base import MalformedError
from external_providers.kubernetes.documents import Document, mapping, name_of, objects, text
from external_providers.kubernetes.identity import PODS, REQUESTED
from external_providers.kubernetes.quantities import MOST, amounts
from rm_service.domain.amounts import Amounts

APPLICATION = "rm-service/application"
"""The label, or annotation, by which a pod says which application of ours it belongs to."""

SPARK = "spark-app-selector"
JOBS = ("batch.kubernetes.io/job-name", "job-name")

WORD = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")
"""What a label may hold; an annotation may hold anything."""

MOST_OF_ONE = 2**48
"""Anybody who may create a pod may ask for `9E` in it. What is more than this counts as this, so that many
together are still a number."""

TERMINAL = frozenset({"Succeeded", "Failed"})


@dataclass(frozen=True, slots=True)
class Pod:
    """What is kept of a pod."""

    namespace: str
    name: str
    node: str
    """Empty while it is bound to none."""
    phase: str
    requested: Amounts
    application: str
    """The id of ours that it names, or nothing."""
    spark: str
    job: str


def read_pod(item: Document) -> Pod | None:
    """What is kept of a pod; nothing of one that has ended. Raises MalformedError."""
    name = name_of(item, "pod")
    metadata = mapping(item, "metadata", "pod")
    where = f"pod {text(metadata, 'namespace', 'pod.metadata')}/{name}"
    phase = text(mapping(item, "status", where), "phase", f"{where}.status")
    if phase in TERMINAL:
        return None
    spec = mapping(item, "spec", where)
    labels = mapping(metadata, "labels", where)
    annotations = mapping(metadata, "annotations", where)
    namespace = text(metadata, "namespace", where)
    if not namespace:
        raise MalformedError(f"{where}.metadata.namespace: is missing")
    return Pod(
        namespace=namespace,
        name=name,
        node=text(spec, "nodeName", where),
        phase=phase,
        requested={**_requested(item, where), PODS: 1},
        application=_application(labels, where) or _application(annotations, where),
        spark=text(labels, SPARK, where),
        job=next((found for key in JOBS if (found := text(labels, key, where))), ""),
    )


def _application(words: Document, where: str) -> str:
    """The id of ours in labels or annotations; what can be none is none."""
    found = text(words, APPLICATION, where)
    return found if WORD.fullmatch(found) else ""


def _requested(item: Document, where: str) -> dict[str, int]:
    """What the pod needs at its peak, its overhead included.

    Init containers run one after another, before the others; a sidecar is an init container that is restarted
    always, and stays. What the pod as a whole requests stands for what its containers do.
    """
    spec = mapping(item, "spec", where)
    statuses = _in_place(item, where)
    running: dict[str, int] = {}
    for container in objects(spec, "containers", where):
        running = _sum(running, _container(container, statuses, where))
    sidecars: dict[str, int] = {}
    peak: dict[str, int] = {}
    for container in objects(spec, "initContainers", where):
        own = _container(container, statuses, where)
        if container.get("restartPolicy") == "Always":
            sidecars = _sum(sidecars, own)
            peak = _larger(peak, sidecars)
        else:
            peak = _larger(peak, _sum(sidecars, own))
    needed = _larger(_sum(running, sidecars), peak)
    whole = _requests(spec, f"{where}.spec")
    overhead = amounts(mapping(spec, "overhead", where), REQUESTED, "up", f"{where}.spec.overhead")
    peak_of_all = _sum(needed | whole, overhead)
    return {dimension: min(amount, MOST_OF_ONE) for dimension, amount in peak_of_all.items()}


def _container(container: Document, in_place: Mapping[str, dict[str, int]], where: str) -> dict[str, int]:
    """While a container is resized in place, it counts for the larger of what it asks for and what it has."""
    name = text(container, "name", where)
    return _larger(_requests(container, f"{where}, container {name}"), in_place.get(name, {}))


def _in_place(item: Document, where: str) -> dict[str, dict[str, int]]:
    """By container: what the node has allocated to it."""
    status = mapping(item, "status", where)
    found: dict[str, dict[str, int]] = {}
    for kind in ("containerStatuses", "initContainerStatuses"):
        for container in objects(status, kind, where):
            here = f"{where}.status.{kind}"
            allocated = mapping(container, "allocatedResources", here)
            found[text(container, "name", here)] = _larger(
                amounts(allocated, REQUESTED, "up", here), _requests(container, here)
            )
    return found


def _requests(parent: Document, where: str) -> dict[str, int]:
    resources = mapping(parent, "resources", where)
    return amounts(mapping(resources, "requests", where), REQUESTED, "up", f"{where}.requests")


def _sum(left: Amounts, right: Amounts) -> dict[str, int]:
    return {name: min(left.get(name, 0) + right.get(name, 0), MOST) for name in {*left, *right}}


def _larger(left: Amounts, right: Amounts) -> dict[str, int]:
    return {name: max(left.get(name, 0), right.get(name, 0)) for name in {*left, *right}}
