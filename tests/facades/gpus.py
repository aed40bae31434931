"""Nodes with GPUs and the classes that select them, for tests of the API."""

from collections.abc import Mapping
from typing import Any

import pytest

from rm_service.domain.resource_classes import read_spec
from rm_service.ledger.ledger import Ledger
from rm_service.services.resource_classes import ResourceClasses
from tests.facades.conftest import Api, Json

ON_SQLITE = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
"""For what does not depend on the database."""
PREFIX = "scheduler.alpha.kubernetes.io/resClass"
BIG = [("Kind", "In", ["nvidia-gpu"]), ("memory", "GtEq", ["30G"])]
ANY = [("Kind", "In", ["nvidia-gpu"])]
BIG_GPU = {"name": "gpu0", "count": 2, "attributes": {"Kind": "nvidia-gpu", "memory": "40G"}}
SMALL_GPU = {"name": "gpu1", "count": 2, "attributes": {"Kind": "nvidia-gpu", "memory": "16G"}}
NIC = {"name": "nic0", "attributes": {"Kind": "nic", "speed": "40GBPS"}}


def create(ledger: Ledger, name: str, expressions: list[tuple[str, str, list[str]]]) -> None:
    matching = [{"key": key, "operator": operator, "values": values} for key, operator, values in expressions]
    ResourceClasses(ledger).create(name, read_spec({"resourceSelector": [{"matchExpressions": matching}]}))


@pytest.fixture
def gpus(api: Api, ledger: Ledger) -> Api:
    """The API with the classes `big` and `any`, and two big and two small GPUs on h1."""
    create(ledger, "big", BIG)
    create(ledger, "any", ANY)
    register(api, "h1", BIG_GPU, SMALL_GPU, NIC, status=201)
    return api


def register(api: Api, instance: str, *devices: Mapping[str, Any], status: int = 200) -> Json:
    body = {"total": {"memory": "8Gi"}, "devices": devices}
    return api.put(f"/nodes/{instance}", body, status=status)


def ask(api: Api, classes: object, status: int = 201, **changes: object) -> Json:
    return api.post("/applications", {"tags": {"user": "alice"}, "classes": classes} | changes, status=status)


def quantities(document: Json) -> dict[tuple[str, str], str]:
    """Of each class and device how much was given."""
    return {(each["class"], each["device"]): each["quantity"] for each in document["devices"]}


def standing(api: Api, name: str) -> tuple[str, str, str]:
    found = api.get(f"/classes/{name}")
    return found["allocatable"], found["requested"], found["free"]


def free(api: Api, instance: str = "h1") -> dict[str, tuple[int, str]]:
    return {
        each["name"]: (each["free"], each["largest_fraction"])
        for each in api.get(f"/nodes/{instance}")["free_devices"]
    }
