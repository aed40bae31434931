"""Finding room: under every label of an application and, if it asks for a node, on one."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any

from rm_service.domain.accounts import Account, Shortfall
from rm_service.domain.amounts import NOTHING, Amounts, without_ports
from rm_service.domain.class_book import Supply
from rm_service.domain.device_changes import node_of
from rm_service.domain.device_choice import choose_devices, class_amounts, unknown_class
from rm_service.domain.device_selection import Held
from rm_service.domain.devices import amounts_of
from rm_service.domain.judging import Judgement, Rank, judge, not_registered
from rm_service.domain.lookup import Room
from rm_service.domain.operations import Placement
from rm_service.domain.outcomes import Refused
from rm_service.domain.tags import Tags
from rm_service.domain.view import View

MAX_NODES = 256
"""How many nodes with room are tried for one application whose other labels refuse them."""


def write_placement(placement: Placement) -> dict[str, Any]:
    """A placement as an application's row keeps it."""
    document: dict[str, Any] = {"selector": placement.selector, "strategy": placement.strategy}
    if placement.partition:
        document["partition"] = placement.partition
    if placement.weights:
        document["weights"] = placement.weights
    if placement.image:
        document["image"] = placement.image
    if placement.classes:
        document["classes"] = [list(each) for each in placement.classes]
        document["devices"] = placement.devices
    return document


def read_placement(document: Mapping[str, Any]) -> Placement:
    """The placement that `write_placement` turned into this document."""
    weights = tuple([(name, weight) for name, weight in document.get("weights", ())])
    return Placement(
        document["selector"],
        document["strategy"],
        document.get("partition", ""),
        weights,
        document.get("image", ""),
        tuple([(name, milli) for name, milli in document.get("classes", ())]),
        document.get("devices", "first_fit"),
    )


@dataclass(slots=True)
class Finding:
    """Where an application may be charged, or why nowhere."""

    label_ids: tuple[int, ...]
    tags: Tags
    """Its tags, with `node` when one was chosen."""
    judgement: Judgement = field(default_factory=Judgement)
    refusal: Refused | None = None
    """It names a capacity under which nothing is registered, or a class that nobody has created."""
    devices: tuple[Held, ...] = ()
    """The units that the chosen node gives."""


def find_among(
    view: View,
    choices: Sequence[Tags],
    placement: Placement | None,
    resource: Amounts,
    rank: Rank,
    turn_of: int | None = None,
) -> Finding:
    """Find room under the first of these tags where there is some, judged anew for each of them.

    One where a threshold would be passed comes after all others. If there is none the answer is that of the
    first, with what stands in the way of any.
    """
    first = find_room(view, choices[0], placement, resource, rank, turn_of)
    if len(choices) == 1:
        return first
    passed: Finding | None = None
    refused: list[Finding] = []
    for tags in choices:
        found = first if tags is choices[0] else find_room(view, tags, placement, resource, rank, turn_of)
        if found.refusal is not None or found.judgement.blocked:
            refused.append(found)
        elif not any(account.passes_threshold(resource) for account in view.accounts_of(found.label_ids)):
            return found
        else:
            passed = passed or found
    if passed is not None:
        return passed
    possible = [found for found in refused if found.refusal is None]
    if not possible:
        return first
    judgement = Judgement()
    for found in possible:
        judgement.add(found.judgement)
    judgement.blocked = list(dict.fromkeys(judgement.blocked))
    return Finding(first.label_ids, first.tags, judgement)


def find_room(
    view: View,
    tags: Tags,
    placement: Placement | None,
    resource: Amounts,
    rank: Rank,
    turn_of: int | None = None,
) -> Finding:
    """Judge an application on all of its labels, those of a chosen node included."""
    label_ids = view.lookup.labels_of(tags)
    accounts = view.accounts_of(label_ids)
    refusal = not_registered(accounts)
    if refusal is not None:
        return Finding(label_ids, tags, refusal=refusal)
    found = Finding(label_ids, tags, judge(view, accounts, resource, rank, turn_of))
    if placement is None:
        return found
    unknown = unknown_class(view, placement)
    if unknown is not None:
        return Finding(label_ids, tags, refusal=unknown)
    pool = view.accounts[view.lookup.pool_of(placement)]
    queue = judge(view, [pool], resource, rank, turn_of)
    if found.judgement.blocked or queue.blocked:
        found.judgement.add(queue)
        if "node" not in tags and next(view.lookup.nodes_for(placement, resource), None) is None:
            found.judgement.block(pool, _nowhere(view, pool, placement, resource))
        return found
    return _choose(view, found, pool, placement, resource, rank, turn_of)


def _choose(
    view: View,
    found: Finding,
    pool: Account,
    placement: Placement,
    resource: Amounts,
    rank: Rank,
    turn_of: int | None,
) -> Finding:
    """The first node, in the order of the strategy, under whose labels there is room too."""
    unregistered: Refused | None = None
    refused = Judgement()
    judged = set(found.label_ids)
    passed: list[str] = []
    nodes = _able(view, _nodes(view, found.tags, placement, resource), placement, passed)
    for node in islice(nodes, MAX_NODES):
        tags = {**found.tags, "node": node}
        label_ids = view.lookup.labels_of(tags)
        devices: tuple[Held, ...] = ()
        if placement.classes:
            chosen = choose_devices(view, label_ids, placement)
            if isinstance(chosen, list):
                refused.shortfalls = refused.shortfalls or chosen
                continue
            devices = chosen
            label_ids = view.lookup.labels_of(tags, amounts_of(devices))
        accounts = view.accounts_of(tuple([each for each in label_ids if devices or each not in judged]))
        missing = not_registered(accounts)
        judgement = judge(view, accounts, {**resource, **amounts_of(devices)}, rank, turn_of)
        if missing is None and not judgement.blocked:
            return Finding(label_ids, tags, judgement, devices=devices)
        if missing is not None:
            unregistered = missing
        elif not refused.blocked:
            refused = judgement
    if unregistered is not None and not refused.blocked:
        return Finding(found.label_ids, found.tags, refusal=unregistered)
    shortfalls = refused.shortfalls or _overlapping(view, found.tags, passed, placement)
    shortfalls = shortfalls or _nowhere(view, pool, placement, resource)
    found.judgement.block(pool, shortfalls)
    found.judgement.out_of_turn = refused.out_of_turn
    return found


def _able(
    view: View, nodes: Iterable[tuple[str, Supply | None]], placement: Placement, passed: list[str]
) -> Iterator[str]:
    """The nodes that can give all the classes; the first of the others is put into `passed`.

    Of one class the index knows exactly who has it, of several only who has each. So many are passed by as
    there are: it costs little, no row is read, and the one behind them may be the only one.
    """
    if len(placement.classes) <= 1:
        yield from (node for node, _ in nodes)
        return
    search = view.lookup.classes().search(placement.classes)
    for node, supply in nodes:
        if supply is None or search.met_by(supply.shape):
            yield node
        elif not passed:
            passed.append(node)


def _overlapping(view: View, tags: Tags, passed: list[str], placement: Placement) -> list[Shortfall]:
    """What is short on the first node that was passed by; its row was not read then."""
    for node in passed:
        chosen = choose_devices(view, view.lookup.labels_of({**tags, "node": node}), placement)
        if isinstance(chosen, list):
            return chosen
    return []


def _nodes(
    view: View, tags: Tags, placement: Placement, resource: Amounts
) -> Iterable[tuple[str, Supply | None]]:
    """The node that is named, if it matches the selector; else those with room in the strategy's order.

    With each what its devices have left, unless only its row tells.
    """
    named = tags.get("node")
    if named is None:
        return ((node.instance, node.supply) for node in view.lookup.nodes_for(placement, resource))
    if not placement.selector:
        return ((named, None),)
    matching = view.lookup.nodes_for(replace(placement, classes=()), NOTHING)
    return ((node.instance, node.supply) for node in matching if node.instance == named)


def can_never_give(view: View, tags: Tags, placement: Placement) -> bool:
    """Whether no node that matches has the devices for all these classes, even if nobody held any of them.

    It says no of one class on any node: the most that a node has of it tells that (`Lookup.rooms`).
    """
    if not placement.classes or (len(placement.classes) == 1 and "node" not in tags):
        return False
    search = view.lookup.classes().search(placement.classes)
    anyone = Placement(placement.selector, partition=placement.partition)
    for node, known in _nodes(view, tags, anyone, NOTHING):
        supply = known
        if supply is None:
            account = node_of(view, view.lookup.labels_of({**tags, "node": node}))
            supply = Supply(() if account is None else account.balance.devices or ())
        if search.met_by(supply.emptied):
            return False
    return True


def _nowhere(view: View, pool: Account, placement: Placement, resource: Amounts) -> list[Shortfall]:
    """Why no node was found: per dimension the most that any matching node has left."""
    matching, rooms = view.lookup.rooms(placement, resource)
    reason = "no_node_fits" if matching else "no_node_matches"
    known = {room.dimension: room for room in rooms}
    found = []
    wanted = {**without_ports(resource), **class_amounts(placement)}
    for dimension, amount in wanted.items() or [("", 0)]:
        room = known.get(dimension) or Room(dimension, 0, 0)
        found.append(Shortfall(pool.label.tags, dimension, amount, room.left, room.total, 0, 0, 0, reason))
    return [shortfall for shortfall in found if shortfall.left < shortfall.requested] or found
