"""Answers of ResourceManagers, as the versions write them: only the fields that are read, and some beside."""

from collections.abc import Mapping, Sequence
from typing import Any

Document = dict[str, Any]

CLUSTER = {"clusterMetrics": {"totalMB": 100_000, "totalVirtualCores": 100, "availableMB": -5}}


def capacity(*queues: Document, **root: Any) -> Document:
    """A capacity scheduler with these queues beneath the root."""
    info = {"type": "capacityScheduler", "queueName": "root", "capacity": 100.0, "maxCapacity": 100.0}
    return _scheduler(info | {"queues": {"queue": list(queues)}} | root)


def share(
    name: str, guaranteed: float | str, most: float | str | None, *children: Document, **more: Any
) -> Document:
    """A queue as Hadoop 2 writes it: shares of the cluster, the name without its path."""
    queue: Document = {
        "queueName": name,
        "absoluteCapacity": guaranteed,
        "absoluteMaxCapacity": most,
        "state": "RUNNING",
        "resourcesUsed": resource(0, 0),
        "numApplications": 0,
    }
    if children:
        queue["queues"] = {"queue": list(children)}
    return queue | more


def amount(path: str, guaranteed: Document, most: Document, *children: Document, **more: Any) -> Document:
    """A queue as Hadoop 3 writes it: what its share comes to, the name with its path."""
    effective = {"queuePath": path, "minEffectiveCapacity": guaranteed, "maxEffectiveCapacity": most}
    # The shares are there too, and say nothing of queues that are configured in amounts.
    return share(path.rpartition(".")[2], 0.0, 0.0, *children) | effective | more


def usage(pending: Document, partition: str = "") -> Document:
    return {"partitionName": partition, "used": resource(1, 1), "pending": pending}


def fair(*queues: Document, **root: Any) -> Document:
    """A fair scheduler with these queues beneath the root."""
    top = fair_queue("root", resource(100_000, 100), *queues) | root
    return _scheduler({"type": "fairScheduler", "rootQueue": top})


def fair_queue(name: str, most: Document, *children: Document, **more: Any) -> Document:
    queue: Document = {
        "queueName": name,
        "maxApps": 2**31 - 1,
        "minResources": resource(0, 0),
        "maxResources": most,
        "usedResources": resource(0, 0),
        "demandResources": resource(0, 0),
        "steadyFairResources": resource(0, 0),
    }
    queue |= (
        {"childQueues": {"queue": list(children)}} if children else {"numActiveApps": 0, "numPendingApps": 0}
    )
    return queue | more


def resource(megabytes: object, vcores: object) -> Document:
    return {"memory": megabytes, "vCores": vcores}


def application(identity: str, queue: str, **more: Any) -> Document:
    return {
        "id": identity,
        "user": "alice",
        "name": "a job",
        "queue": queue,
        "state": "RUNNING",
        "applicationType": "SPARK",
        "applicationTags": "",
        "allocatedMB": 1024,
        "allocatedVCores": 1,
        **more,
    }


def applications(*found: Document) -> Document:
    return {"apps": {"app": list(found)}}


def _scheduler(info: Mapping[str, Any] | Sequence[Any]) -> Document:
    return {"scheduler": {"schedulerInfo": info}}
