"""The annotations in which a node's agent finds the devices of an application (the seed's, D26)."""

from collections import Counter
from collections.abc import Iterable

from rm_service.domain.device_selection import Held
from rm_service.domain.exact_quantities import format_milli

PREFIX = "scheduler.alpha.kubernetes.io/resClass"


def annotations(held: Iterable[Held]) -> dict[str, str]:
    """`PREFIX_CLASS_DEVICE` with how many units were given, one for each device chosen for a class."""
    counted: Counter[tuple[str, str]] = Counter()
    for each in held:
        counted[each.resource_class, each.device] += each.milli
    return {
        f"{PREFIX}_{resource_class}_{device}": format_milli(milli)
        for (resource_class, device), milli in counted.items()
    }
