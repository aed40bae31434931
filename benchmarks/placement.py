"""Placement: what choosing a node costs as nodes become many. The index alone, without a database."""

import random
import time
from dataclasses import dataclass, field
from functools import partial
from statistics import median

from benchmarks.report import Cell, Findings, Ratio, Table
from benchmarks.rounds import alternate
from benchmarks.setting import Setting
from rm_service.domain import operations as op
from rm_service.domain.accounts import Account, Balance, Label
from rm_service.domain.amounts import Amounts, negative
from rm_service.domain.label_rules import Kind, LabelRule
from rm_service.domain.placement import STRATEGIES, NodeIndex
from rm_service.domain.registrations import Node
from rm_service.process import set_up_process

SIZES = (100, 1_000, 10_000)
TARGET = 2.0
FULL = 0.95
TURNOVERS = 5_000
GIB = 2**30
TOTAL = {"memory": 64 * GIB, "vcore": 32_000}
RULE = LabelRule("node", frozenset({"node"}), Kind.CAPACITY)


@dataclass(frozen=True, slots=True)
class Costs:
    """What one cluster cost, in us: a node put, an ask while it fills, one while it is full."""

    put: float
    filling: float
    full: float


def measure(setting: Setting) -> Findings:
    """Fill clusters of three sizes by every strategy, then let something go and ask for as much anew."""
    set_up_process()  # as `rm-service serve` does
    sides = {(strategy, size): partial(costs, strategy, size) for strategy in STRATEGIES for size in SIZES}
    names = {f"{strategy}, {size:,} nodes": side for (strategy, size), side in sides.items()}
    measured = [
        Costs(*(median(values) for values in zip(*((c.put, c.filling, c.full) for c in found), strict=True)))
        for found in alternate(names, setting.rounds).values()
    ]
    by_side = dict(zip(sides, measured, strict=True))
    few, many = SIZES[0], SIZES[-1]
    pairs = {strategy: (by_side[strategy, few], by_side[strategy, many]) for strategy in STRATEGIES}
    ratios = [
        Ratio(
            f"an ask on {many:,} nodes to one on {few:,}, {strategy}",
            large.filling / small.filling,
            TARGET,
            at_least=False,
        )
        for strategy, (small, large) in pairs.items()
    ]
    when_full = ", ".join(
        f"{strategy} {large.full / small.full:.2f} x" for strategy, (small, large) in pairs.items()
    )
    rows: list[tuple[Cell, ...]] = [
        (name, 1e6 / found.filling, 1e6 / found.full, found.put)
        for name, found in zip(names, measured, strict=True)
    ]
    registered = median(found.put for (_, size), found in by_side.items() if size == many)
    return Findings(
        "Placement",
        [Table(("side", "asks/s filling", "asks/s full", "us a node put"), rows)],
        ratios,
        [
            f"Asks of every size fill the nodes to {FULL:.0%}; each changes what its node has left.",
            "When they are full, something is let go and as much is asked for: two changes an ask.",
            f"When full, {many:,} nodes cost more than {few:,} by: {when_full}.",
            "Measured is the processor's time: nothing waits here.",
            f"Putting {many:,} nodes into the index takes {registered * many / 1e6:.2f} s.",
        ],
    )


def costs(strategy: str, size: int) -> Costs:
    """Fill one cluster, then keep it full."""
    cluster = Cluster(op.Placement("zone in (a,b)", strategy))
    begun = time.thread_time()
    for number in range(size):
        cluster.add(number)
    put = time.thread_time() - begun
    asks = cluster.fill()
    filling, cluster.seconds = cluster.seconds, 0.0
    for _ in range(TURNOVERS):
        cluster.ask(cluster.let_go())
    return Costs(put / size * 1e6, filling / asks * 1e6, cluster.seconds / TURNOVERS * 1e6)


@dataclass(slots=True)
class Cluster:
    """Nodes, what runs on them, and the seconds spent in the index."""

    placement: op.Placement
    index: NodeIndex = field(default_factory=NodeIndex)
    accounts: dict[int, Account] = field(default_factory=dict)
    running: list[tuple[int, Amounts]] = field(default_factory=list)
    memory: int = 0
    seconds: float = 0.0
    chance: random.Random = field(default_factory=lambda: random.Random(1))

    def add(self, number: int) -> None:
        """A new node, in one of two zones."""
        instance = f"host-{number}:9101"
        label = Label(number, f"node={instance}", {"node": instance}, RULE)
        account = Account(label, None, Balance(number, {}, {}, total=TOTAL))
        self.accounts[number] = account
        attributes = {"rack": f"r{number % 40}", "os": "linux", "arch": "amd64"}
        zone = {"zone": "ab"[number % 2]}
        self.index.put(Node(number, instance, number, "LoadInstance", zone, attributes, (), 0), account)

    def fill(self) -> int:
        """Ask until memory is nearly used up; how many asks that took."""
        asks = 0
        while self.memory < FULL * TOTAL["memory"] * len(self.accounts):
            self.ask({"memory": self.chance.randint(1, 16) * GIB, "vcore": self.chance.randint(1, 6) * 1_000})
            asks += 1
        return asks

    def ask(self, request: Amounts) -> None:
        """Take room on a node; where there is none, find out how much there is."""
        begun = time.thread_time()
        chosen = next(self.index.fitting(self.placement, request), None)
        if chosen is None:
            self.index.rooms(self.placement, request)
        self.seconds += time.thread_time() - begun
        if chosen is not None:
            self.running.append((chosen.label_id, request))
            self._post(chosen.label_id, request)

    def let_go(self) -> Amounts:
        """End something that runs; what it held."""
        at = self.chance.randrange(len(self.running))
        self.running[at], self.running[-1] = self.running[-1], self.running[at]
        label_id, held = self.running.pop()
        self._post(label_id, negative(held))
        return held

    def _post(self, label_id: int, amounts: Amounts) -> None:
        account = self.accounts[label_id]
        account.post({}, amounts, 1)
        self.memory += amounts["memory"]
        begun = time.thread_time()
        self.index.follow([account])
        self.seconds += time.thread_time() - begun
