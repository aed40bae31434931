"""What a source of limits is: asked by tag combinations, it says which of them have a limit."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rm_service.domain.limits import LimitTerms
from rm_service.domain.tags import Tags


@dataclass(frozen=True, slots=True)
class Said:
    """What a source says of the combinations that it was asked for; those that it does not name are free."""

    limits: Sequence[LimitTerms] = ()
    unusable: Mapping[str, str] = field(default_factory=dict)
    """By the label keys of combinations: why nothing can be made of what it says of them."""


class LimitSource(Protocol):
    """Somebody who knows the limits of tag combinations."""

    def limits_of(self, combinations: Sequence[Tags]) -> Said:
        """What it says of these combinations, without repetitions. It may take its time.

        Raises what its kind raises when it cannot be asked.
        """
