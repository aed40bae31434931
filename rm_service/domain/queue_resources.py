"""What queues may and are to get, and what must hold between a queue and those around it."""

from dataclasses import dataclass, field

from rm_service.domain.amounts import Amounts, without_zeros
from rm_service.domain.queue_config import Queue, QueueConfigError
from rm_service.domain.queue_fields import read_amounts, read_object, resource_place


@dataclass(frozen=True, slots=True)
class Resources:
    """The `resources` of a queue. A dimension that `max` lacks is unlimited."""

    max: Amounts
    guaranteed: Amounts


@dataclass(frozen=True, slots=True)
class Room:
    """The narrowest maximum on the way down to a queue, and how many applications its parent allows."""

    max: Amounts = field(default_factory=dict)
    max_applications: int | None = None

    def check(self, amounts: Amounts, path: str) -> None:
        """Raise QueueConfigError where amounts go beyond."""
        for at, (dimension, amount) in enumerate(amounts.items()):
            if amount > self.max.get(dimension, amount):
                place = resource_place(path, at, dimension)
                raise QueueConfigError(place, "is more than the maximum of a queue above")

    def check_applications(self, most: int | None, path: str) -> None:
        """Raise QueueConfigError unless a child's limit is within the parent's."""
        if self.max_applications is None:
            return
        if most is None or most > self.max_applications:
            raise QueueConfigError(path, "must be 1 at least and no more than its parent allows")

    def narrowed(self, amounts: Amounts, max_applications: int | None) -> "Room":
        """The room below a queue with this maximum."""
        return Room(smaller(self.max, amounts), max_applications)


def smaller(left: Amounts, right: Amounts) -> dict[str, int]:
    """The smaller of two limits, dimension by dimension; one that only one of them has is that one's."""
    return {
        dimension: min(left.get(dimension, amount), right.get(dimension, amount))
        for dimension, amount in (*left.items(), *right.items())
    }


def read_resources(document: object, path: str) -> Resources:
    """Read `max` and `guaranteed`. A maximum of nothing but zeros says nothing, as in the reference."""
    fields = read_object(document, path, ("guaranteed", "max"))
    most = read_amounts(fields.get("max"), f"{path}.max")
    guaranteed = read_amounts(fields.get("guaranteed"), f"{path}.guaranteed")
    resources = Resources(most if any(most.values()) else {}, without_zeros(guaranteed))
    for at, (dimension, amount) in enumerate(guaranteed.items()):
        if amount > resources.max.get(dimension, amount):
            place = resource_place(f"{path}.guaranteed", at, dimension)
            raise QueueConfigError(place, "is more than the queue's own maximum")
    return resources


def check_children(queue: Queue, room: Amounts, path: str) -> None:
    """Raise QueueConfigError where the children together are guaranteed more than their parent.

    `room` is the narrowest maximum from root down to the queue.
    """
    shares: dict[str, int] = {}
    for child in queue.children:
        for dimension, amount in share(child).items():
            shares[dimension] = shares.get(dimension, 0) + amount
    for dimension, amount in shares.items():
        if amount > queue.guaranteed.get(dimension, amount):
            place = resource_place(f"{path}.resources.guaranteed", None, dimension)
            raise QueueConfigError(place, "is less than its children are guaranteed")
        if amount > room.get(dimension, amount):
            place = resource_place(f"{path}.resources.max", None, dimension)
            raise QueueConfigError(
                place, "is less than its children are guaranteed (its own, or that of a queue above)"
            )


def share(queue: Queue) -> Amounts:
    """What a queue is guaranteed: its own, or if it says nothing what its children are together."""
    if queue.guaranteed:
        return queue.guaranteed
    total: dict[str, int] = {}
    for child in queue.children:
        for dimension, amount in share(child).items():
            total[dimension] = total.get(dimension, 0) + amount
    return total
