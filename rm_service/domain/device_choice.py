"""Choosing devices of a node for who asks for resource classes, and saying why there are none."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from typing import TypeVar

from rm_service.domain.accounts import Account, Shortfall
from rm_service.domain.amounts import Amounts
from rm_service.domain.application import HOLDING, Application
from rm_service.domain.class_book import CLASS, ClassBook
from rm_service.domain.client_operations import Ask, BookAllocation, Placement
from rm_service.domain.device_changes import node_of
from rm_service.domain.device_selection import (
    UNIT,
    ClassesError,
    Device,
    Held,
    Wish,
    choose,
    free_units,
    largest_fraction,
)
from rm_service.domain.outcomes import Code, Refused
from rm_service.domain.view import View


def class_amounts(placement: Placement) -> Amounts:
    """What is asked of each class, as amounts of dimensions that only shortfalls have."""
    return {f"{CLASS}{name}": milli for name, milli in placement.classes}


Named = TypeVar("Named", Ask, BookAllocation)


def by_class(asked: Named, book: ClassBook, known: Sequence[Application] = ()) -> Named:
    """What is asked for or reported, with the classes that its resource names as such: so many whole devices.

    That is how the Scheduler Interface has them. What the `known` applications of the same name asked for as
    a class stays one, and what they hold as an amount stays an amount, whichever classes there are by now.
    """
    names = _names_of_classes(book, known) if known else book.classes.keys()
    if not names or names.isdisjoint(asked.resource):
        return asked
    classes = tuple(
        [(name, amount * UNIT) for name, amount in asked.resource.items() if name in names and amount]
    )
    pool = "" if asked.tags.get("nodePool") == "shared" else asked.tags.get("partition", "")
    placement = replace(asked.placement or Placement(partition=pool), classes=classes)
    if isinstance(asked, Ask):
        placement = replace(placement, devices=asked.devices)
    resource = {name: amount for name, amount in asked.resource.items() if name not in names}
    return replace(asked, resource=resource, placement=placement)


def _names_of_classes(book: ClassBook, known: Sequence[Application]) -> AbstractSet[str]:
    """The names that mean a class to who asked for these applications."""
    names = set(book.classes)
    for each in known:
        if each.state in HOLDING:
            names.difference_update(each.resource)
    for each in known:
        names.update([name for name, _ in (each.placement or {}).get("classes", ())])
    return names


def devices_of_reported(
    view: View, label_ids: tuple[int, ...], placement: Placement | None
) -> tuple[tuple[Held, ...], bool]:
    """The devices of what runs already, as far as it can be told, and whether some are missing.

    Which it has really got nobody says; where there are not enough it holds none.
    """
    if placement is None or not placement.classes:
        return (), False
    try:
        chosen = choose_devices(view, label_ids, placement)
    except ClassesError:
        return (), True
    return ((), True) if isinstance(chosen, list) else (chosen, False)


def unknown_class(view: View, placement: Placement) -> Refused | None:
    """The refusal for a class that nobody has created."""
    if not placement.classes:
        return None
    known = view.lookup.classes().classes
    for name, _ in placement.classes:
        if name not in known:
            return Refused(Code.UNKNOWN_CLASS, f"no resource class {name}", field=f"classes.{name}")
    return None


def choose_devices(
    view: View, label_ids: tuple[int, ...], placement: Placement
) -> tuple[Held, ...] | list[Shortfall]:
    """Units of the devices of the node among these labels; or what is short there."""
    wishes = view.lookup.classes().wishes(placement.classes)
    node = node_of(view, label_ids)
    if node is None:
        return []
    devices = node.balance.devices or ()
    chosen = choose(devices, wishes, placement.devices)
    return _shortfalls(node, devices, wishes) if chosen is None else chosen


def _shortfalls(node: Account, devices: tuple[Device, ...], wishes: list[Wish]) -> list[Shortfall]:
    """What is short of each class by itself; if of none, they only do not fit together."""
    found = [_shortfall(node, devices, wish, "short") for wish in wishes]
    short = [shortfall for shortfall in found if shortfall.left < shortfall.requested]
    return short or [_shortfall(node, devices, wish, "classes_overlap") for wish in wishes]


def _shortfall(node: Account, devices: tuple[Device, ...], wish: Wish, reason: str) -> Shortfall:
    """`left` is what one could still be given of the class: whole units, or the largest fraction of one."""
    selected = [device for device in devices if device.signature in wish.signatures]
    total = sum(device.count for device in selected) * UNIT
    used = sum(sum(device.taken.values()) for device in selected)
    if wish.is_fraction:
        left = max(map(largest_fraction, selected), default=0)
    else:
        left = sum(map(free_units, selected)) * UNIT
    dimension = f"{CLASS}{wish.resource_class}"
    return Shortfall(node.label.tags, dimension, wish.milli, left, total, 0, 0, used, reason)
