"""A replay in which GPUs are devices that tasks ask for by resource class.

Each node has its cards as one device (`gpu`, with the attributes `Kind`, `model` and `memory`). There is a
class for each model, one for cards with at least 16 GB, and one for shares of any card.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence

from sqlalchemy import Connection, select

from rm_service.commands.replay_drivers import DriveError, EmbeddedDriver
from rm_service.commands.replay_run import Replay, Step
from rm_service.commands.trace import GPU_DIMENSION, TraceNode, TraceTask
from rm_service.domain import operations as op
from rm_service.domain.amounts import Amounts
from rm_service.domain.application import HOLDING
from rm_service.domain.device_attributes import Attributes, read_attributes
from rm_service.domain.device_selection import UNIT
from rm_service.domain.devices import read_held
from rm_service.domain.outcomes import Refused
from rm_service.domain.resource_classes import ResourceClassSpec, match, read_spec
from rm_service.domain.view import LOST
from rm_service.ledger import tables
from rm_service.services.resource_classes import ResourceClasses

CHECK_EVERY = 100
"""After so many steps what the classes say is compared with a recomputation."""

DEVICE = "gpu"

MEMORY = {
    "T4": "16G",
    "P100": "16G",
    "V100M16": "16G",
    "V100M32": "32G",
    "A10": "24G",
    "G2": "12G",
    "G3": "40G",
}
"""The memory of a card by its model. G2 and G3 are undisclosed: theirs are assumed, and on purpose one is
below and one above 16 GB."""

UNKNOWN_MEMORY = "16G"
"""That of any other model."""

AT_LEAST_16G = "gpu.16g"
SHARED = "gpu.shared"

Stands = dict[str, tuple[int, int]]
"""Allocatable and requested by class, in thousandths."""


def model_class(*models: str) -> str:
    """The class of the cards of these models."""
    return ".".join(["gpu.model", *[re.sub("[^a-z0-9]+", "-", model.lower()).strip("-") for model in models]])


def devices_of(node: TraceNode) -> list[dict[str, object]]:
    """A node's cards as it registers them."""
    if not node.gpus or node.model is None:
        return []
    attributes = {"Kind": DEVICE, "model": node.model, "memory": MEMORY.get(node.model, UNKNOWN_MEMORY)}
    return [{"name": DEVICE, "count": node.gpus, "attributes": attributes}]


def classes_of(task: TraceTask) -> dict[str, int]:
    """What a task asks of which class, in thousandths of a card.

    A share of one card: the class of shares, whole cards: those with at least 16 GB; or those of the models
    that it names. Raises DriveError for a share of each of several cards, for which there is no class.
    """
    if not task.gpus:
        return {}
    asked = task.resource.get(GPU_DIMENSION, 0)
    if asked == 0:
        return {}
    share = asked // task.gpus
    if share < UNIT and task.gpus > 1:
        raise DriveError(f"task {task.name}", "no_class", "asks for a share of each of several cards")
    if task.models:
        return {model_class(*task.models): asked}
    return {SHARED if share < UNIT else AT_LEAST_16G: asked}


class ClassDriver(EmbeddedDriver):
    """Drives a ledger of its own, with classes."""

    def __init__(self) -> None:
        super().__init__()
        self._classes = ResourceClasses(self.ledger)
        self._specs: dict[str, ResourceClassSpec] = {}
        self._create(AT_LEAST_16G, ("Kind", "In", [DEVICE]), ("memory", "GtEq", ["16G"]))
        self._create(SHARED, ("Kind", "In", [DEVICE]))

    def registration(self, node: TraceNode, trace: str) -> op.RegisterNode:
        """Memory and cores as amounts, the cards as devices."""
        plain = super().registration(node, trace)
        if node.model is not None:
            self._create_model_class(node.model)
        total = {name: amount for name, amount in node.total.items() if name != GPU_DIMENSION}
        return op.RegisterNode(
            plain.instance,
            plain.resource_type,
            total,
            tags=plain.tags,
            attributes=plain.attributes,
            devices=devices_of(node),
        )

    def asked(self, task: TraceTask, trace: str) -> tuple[op.Placement, Amounts]:
        """Its cards by class, on any node of the trace."""
        if task.models:
            self._create_model_class(*task.models)
        resource = {name: amount for name, amount in task.resource.items() if name != GPU_DIMENSION}
        return op.Placement(f"trace={trace}", "first_fit", classes=tuple(classes_of(task).items())), resource

    def stands(self) -> Stands:
        """What the ledger says of every class."""
        return {
            each.resource_class.name: (each.status.allocatable, each.status.requested)
            for each in self._classes.standings().items
        }

    def recomputed(self) -> Stands:
        """The same, reckoned anew from the nodes and what the live applications hold of their devices."""
        with self.ledger.readers.connect() as connection:
            devices = dict(_devices(connection))
            there_is = Counter[str]()
            held = Counter[str]()
            for model, _, milli in devices.values():
                there_is[model] += milli
            for node, device, milli in _held(connection):
                held[devices[node, device][0]] += milli
        attributes = {model: known for model, known, _ in devices.values()}
        stands = {}
        for name, spec in self._specs.items():
            models = [model for model, known in attributes.items() if match(spec, known).selected]
            stands[name] = sum(there_is[model] for model in models), sum(held[model] for model in models)
        return stands

    def _create_model_class(self, *models: str) -> None:
        if model_class(*models) not in self._specs:
            self._create(model_class(*models), ("Kind", "In", [DEVICE]), ("model", "In", list(models)))

    def _create(self, name: str, *expressions: tuple[str, str, list[str]]) -> None:
        asked = [{"key": key, "operator": sign, "values": values} for key, sign, values in expressions]
        spec = read_spec({"resourceSelector": [{"matchExpressions": asked}]})
        outcome = self._classes.create(name, spec)
        if isinstance(outcome, Refused):
            raise DriveError(f"class {name}", outcome.code, outcome.detail)
        self._specs[name] = spec


class ClassReplay(Replay):
    """A replay that compares what the classes say with a recomputation, every now and then and at the end."""

    driver: ClassDriver

    def _take(self, steps: Sequence[Step], advance: Callable[[int], object]) -> None:
        for start in range(0, len(steps), CHECK_EVERY):
            super()._take(steps[start : start + CHECK_EVERY], advance)
            self._compare()

    def _give_all_back(self) -> None:
        super()._give_all_back()
        self._compare()

    def _compare(self) -> None:
        """Raises DriveError for the first class that says something else."""
        says, is_so = self.driver.stands(), self.driver.recomputed()
        self.record.class_checks += 1
        for name, expected in is_so.items():
            if says.get(name) != expected:
                detail = f"says {says.get(name)}, a recomputation {expected} (allocatable, requested)"
                raise DriveError(f"class {name}", "difference", detail)


def _devices(connection: Connection) -> Iterator[tuple[tuple[str, str], tuple[str, Attributes, int]]]:
    """What is registered: by node and device its model, its attributes, and its units in thousandths."""
    node, balance = tables.node, tables.balance
    columns = select(node.c.instance, node.c.devices, balance.c.closed)
    rows = connection.execute(columns.join(balance, balance.c.label_id == node.c.label_id))
    for row in rows:
        for document in row.devices:
            attributes = read_attributes(document["attributes"], "attributes")
            there_is = 0 if row.closed == LOST else document["count"] * UNIT
            yield (row.instance, document["name"]), (attributes["model"].text, attributes, there_is)


def _held(connection: Connection) -> Iterator[tuple[str, str, int]]:
    """What live applications hold: node, device, thousandths."""
    row = tables.application.c
    live = select(row.tags, row.devices).where(row.finished_at.is_(None), row.state.in_(HOLDING))
    for application in connection.execute(live):
        for held in read_held(application.devices):
            yield application.tags["node"], held.device, held.milli
