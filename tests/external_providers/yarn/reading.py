"""What the parser makes of documents, in YARN's units so that numbers are easily compared."""

import json
from typing import Any

from external_providers.base import Place
from external_providers.yarn import queues, schedulers
from external_providers.yarn.json_tolerance import Object, read
from tests.external_providers.yarn.documents import CLUSTER

MIB = 2**20


def parsed(document: object) -> Object:
    """As it comes over the wire; bytes are there already."""
    return read(document if isinstance(document, bytes) else json.dumps(document).encode())


def places(document: object, cluster: object = CLUSTER) -> dict[str, Place]:
    metrics = parsed(cluster)
    tree = schedulers.tree(parsed(document), schedulers.cluster_total(metrics))
    return {place.name: place for place in queues.places(tree, schedulers.cluster_use(metrics))}


def mb(amounts: Any) -> tuple[int, int]:
    """MiB and vcores; a fraction of either would not be equal to any."""
    memory, vcore = amounts["yarn.memory"], amounts["yarn.vcore"]
    assert memory % MIB == 0
    assert vcore % 1000 == 0
    return memory // MIB, vcore // 1000
