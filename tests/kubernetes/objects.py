"""Objects of the Kubernetes API, as small as a server accepts them: for the real one and for the fake."""

from collections.abc import Mapping, Sequence
from typing import Any

Document = dict[str, Any]
Quantities = Mapping[str, str]

IMAGE = "none"


def namespace(name: str, *, labels: Quantities | None = None, phase: str = "Active") -> Document:
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": dict(labels or {})},
        "status": {"phase": phase},
    }


def node(
    name: str,
    allocatable: Quantities,
    *,
    ready: bool = True,
    unschedulable: bool = False,
    taints: Sequence[Document] = (),
) -> Document:
    spec: Document = {"taints": list(taints)} if taints else {}
    if unschedulable:
        spec["unschedulable"] = True
    condition = {"type": "Ready", "status": "True" if ready else "Unknown", "reason": "Said", "message": ""}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "spec": spec,
        "status": {
            "capacity": dict(allocatable),
            "allocatable": dict(allocatable),
            "conditions": [
                {"type": "MemoryPressure", "status": "False", "reason": "Said", "message": ""},
                condition,
            ],
        },
    }


def taint(key: str, effect: str = "NoSchedule") -> Document:
    return {"key": key, "effect": effect}


def quota(
    space: str,
    name: str,
    hard: Quantities,
    used: Quantities | None = None,
    *,
    status_hard: Quantities | None = None,
    scopes: Sequence[str] = (),
) -> Document:
    """`used` None: nobody has counted yet."""
    status = {} if used is None else {"hard": dict(status_hard or hard), "used": dict(used)}
    return {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": name, "namespace": space},
        "spec": {"hard": dict(hard)} | ({"scopes": list(scopes)} if scopes else {}),
        "status": status,
    }


def container(name: str, requests: Quantities | None = None, **more: object) -> Document:
    resources = {"requests": dict(requests)} if requests else {}
    return {"name": name, "image": IMAGE, "resources": resources, **more}


def sidecar(name: str, requests: Quantities) -> Document:
    return container(name, requests, restartPolicy="Always")


def pod(
    space: str,
    name: str,
    requests: Quantities | None = None,
    *,
    node: str = "",
    phase: str = "Running",
    labels: Quantities | None = None,
    annotations: Quantities | None = None,
    **spec: object,
) -> Document:
    """A pod of one container, unless `spec` says more."""
    on = {"nodeName": node} if node else {}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": space,
            "labels": dict(labels or {}),
            "annotations": dict(annotations or {}),
        },
        "spec": {"containers": [container("main", requests)], **on, **spec},
        "status": {"phase": phase},
    }
