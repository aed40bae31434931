"""Resource classes: a grant by class beside one that names its node, and the reading of a status."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from itertools import count, cycle

from benchmarks import traffic
from benchmarks.growth import medians
from benchmarks.report import Cell, Findings, Ratio, Table
from benchmarks.rounds import alternate
from benchmarks.setting import Setting
from rm_service.domain import operations as op
from rm_service.domain.outcomes import Done
from rm_service.domain.resource_classes import read_spec
from rm_service.ledger.audit import audit
from rm_service.ledger.ids import new_id
from rm_service.ledger.ledger import Ledger
from rm_service.services.resource_classes import ResourceClasses

FEW, MANY = 100, 10_000
DEVICES = 8
CLASSES = 50
MODELS = 20
"""Device signatures: each model has its memory."""
BATCH, BATCHES, ALONE = 100, 20, 200
TIMES, SAME = 2.0, 1.2
DAY = 86_400
CHUNK = 500

BY_NODE, BY_CLASS = "an application that names its node", "one that asks for a class"


def measure(setting: Setting) -> Findings:
    """Two clusters with 8 devices a node, 50 classes over them, half of the devices held."""
    with ExitStack() as stack:
        few, many = (
            stack.enter_context(closing(_cluster(stack.enter_context(setting.database()), nodes)))
            for nodes in (FEW, MANY)
        )
        ways: dict[str, Callable[[], float]] = {}
        for ledger, nodes in ((few, FEW), (many, MANY)):
            for what, made in ((BY_NODE, _by_node(nodes)), (BY_CLASS, _by_class())):
                ways[f"{what}, {nodes:,} nodes, batches of {BATCH}"] = partial(_granted, ledger, made, BATCH)
                ways[f"{what}, {nodes:,} nodes, alone"] = partial(_granted, ledger, made, 1)
            ways[f"status of {CLASSES} classes, {nodes:,} nodes"] = partial(_status, ledger)
        found = medians(alternate(ways, 3 * setting.rounds))
        checked = audit(many.readers)
        assert checked.consistent, checked.differences[:5]
    rows: list[tuple[Cell, ...]] = [(name, value) for name, value in found.items()]
    ratios = [
        Ratio(
            f"by class to by node, {MANY:,} nodes, {way}",
            found[f"{BY_CLASS}, {MANY:,} nodes, {way}"] / found[f"{BY_NODE}, {MANY:,} nodes, {way}"],
            TIMES,
            at_least=False,
        )
        for way in (f"batches of {BATCH}", "alone")
    ]
    status = f"status of {CLASSES} classes, {{:,}} nodes"
    ratios.append(
        Ratio(
            f"the status with {MANY:,} nodes to that with {FEW:,}",
            found[status.format(MANY)] / found[status.format(FEW)],
            SAME,
            at_least=False,
        )
    )
    return Findings(
        f"Resource classes, {DEVICES} devices a node",
        [Table(("what", "us"), rows)],
        ratios,
        [
            "Each is granted and released again, untimed; both charge the labels of the default rules.",
            f"Audited at the end: consistent; {checked.labels_checked:,} labels.",
        ],
    )


def _cluster(url: str, nodes: int) -> Ledger:
    ledger = traffic.open_ledger(url)
    classes = ResourceClasses(ledger)
    for number in range(CLASSES):
        least = f"{8 * (number % MODELS) + 8}G"
        kind = {"key": "Kind", "operator": "In", "values": ["gpu"]}
        memory = {"key": "memory", "operator": "GtEq", "values": [least]}
        spec = read_spec({"resourceSelector": [{"matchExpressions": [kind, memory]}]})
        assert isinstance(classes.create(f"class-{number}", spec), Done)
    for first in range(0, nodes, CHUNK):
        registered = [_register(number) for number in range(first, min(first + CHUNK, nodes))]
        assert all(isinstance(outcome, Done) for outcome in ledger.submit(registered))
    made = _by_class()
    for _ in range(nodes * DEVICES // 2 // CHUNK + 1):
        ledger.submit([next(made) for _ in range(min(CHUNK, nodes * DEVICES // 2))])
    return ledger


def _register(number: int) -> op.RegisterNode:
    devices = [
        {
            "name": f"gpu{place}",
            "count": 1,
            "attributes": {"Kind": "gpu", "memory": f"{8 * ((number + place) % MODELS) + 8}G"},
        }
        for place in range(DEVICES)
    ]
    return op.RegisterNode(_node(number), "LoadInstance", {"memory": traffic.PLENTY}, devices=devices)


def _node(number: int) -> str:
    return f"n{number:05}"


def _tags(number: int) -> dict[str, str]:
    return {"user": f"u{number % 100}", "creator": "IDE", "engineType": "spark-3.3", "queue": "root.a"}


def _by_node(nodes: int) -> Iterator[op.Apply]:
    for number in count():
        tags = {**_tags(number), "node": _node(number * 7919 % nodes)}
        yield op.Apply(new_id(), tags, {"memory": 1}, lock_seconds=DAY, id_is_new=True)


def _by_class() -> Iterator[op.Apply]:
    for number, name in zip(count(), cycle(f"class-{each}" for each in range(CLASSES)), strict=False):
        placement = op.Placement(classes=((name, 1000),))
        yield op.Apply(
            new_id(), _tags(number), {"memory": 1}, lock_seconds=DAY, placement=placement, id_is_new=True
        )


def _granted(ledger: Ledger, made: Iterator[op.Apply], size: int) -> float:
    """Microseconds of one grant, handed in by so many at a time."""
    rounds = BATCHES if size > 1 else ALONE
    spent, granted = 0.0, 0
    for _ in range(rounds):
        operations: Sequence[op.Apply] = [next(made) for _ in range(size)]
        begun = time.perf_counter()
        outcomes = ledger.submit(operations)
        spent += time.perf_counter() - begun
        assert all(isinstance(outcome, Done) for outcome in outcomes), outcomes[0]
        granted += size
        ledger.submit([op.Release(operation.id) for operation in operations])
    return spent / granted * 1e6


def _status(ledger: Ledger) -> float:
    """Microseconds of reading how all classes stand."""
    classes = ResourceClasses(ledger)
    begun = time.perf_counter()
    for _ in range(10):
        assert len(classes.standings().items) == CLASSES
    return (time.perf_counter() - begun) / 10 * 1e6
