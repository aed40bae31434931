"""What a decision may look up while it is made, beside the rows that it works on."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

from rm_service.domain.accounts import Account
from rm_service.domain.amounts import NOTHING, Amounts
from rm_service.domain.class_book import ClassBook
from rm_service.domain.devices import Signatures
from rm_service.domain.node_partition import Candidate
from rm_service.domain.operations import Placement
from rm_service.domain.tags import Tags


@dataclass(frozen=True, slots=True)
class Room:
    """The most that any node matching a selector has in one dimension: why a placement found none."""

    dimension: str
    left: int
    total: int


class Lookup(Protocol):
    """What a decision may look up while it is made. Whatever it names is then in the view."""

    def labels_of(self, tags: Tags, resource: Amounts = NOTHING) -> tuple[int, ...]:
        """The labels that these tags are charged to, and those of the devices in `resource`."""

    def classes(self) -> ClassBook:
        """The resource classes; they know the signatures of every device in the view."""

    def learn(self, signatures: Signatures) -> None:
        """Take in the attributes of signatures that may be new."""

    def pool_of(self, placement: Placement) -> int:
        """The label whose queue those stand in who wait for a node of this selector."""

    def nodes_for(self, placement: Placement, resource: Amounts) -> Iterator[Candidate]:
        """The schedulable nodes that have room just now, in the order of the strategy.

        They are not in the view yet. Each is as it is now; nothing may change while the iterator is in use.
        """

    def rooms(self, placement: Placement, resource: Amounts) -> tuple[int, Sequence[Room]]:
        """How many schedulable nodes match, and the most that any of them has left."""

    def pools(self) -> Sequence[Account]:
        """The placement pools in which somebody waited as the batch began; asked when a node has room."""

    def first_waiter(self, label_id: int) -> tuple[int, int] | None:
        """Priority and number of the first who waits there now; None when nobody does."""

    def gate_of(self, name: str) -> int:
        """The label of a gate, which only holds a queue: of the members of an application that waits (by its
        id), of what a client asked for that is away (by its id), of those who wait for a slot (`apps LABEL`).
        """

    def members_of(self, application_id: str) -> Sequence[str]:
        """The live applications that are members of this one; they and their labels are then in the view."""

    def tenants_of(self, label_id: int) -> Sequence[str]:
        """The applications that hold something on this node's label, likewise."""
