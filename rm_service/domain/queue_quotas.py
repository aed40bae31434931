"""What the queue that a placement rule creates may hold: its parent's template, or the application's tags."""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from rm_service.domain.amounts import INT64_MAX, Amounts
from rm_service.domain.queue_config import ChildTemplate
from rm_service.domain.queue_fields import APPLICATIONS
from rm_service.domain.tags import key_fault

QUOTA_TAG = "namespace.resourcequota"
GUARANTEED_TAG = "namespace.resourceguaranteed"
MAX_APPLICATIONS_TAG = "namespace.resourcemaxapps"

MAX_TAG_LENGTH = 16_384


@dataclass(frozen=True, slots=True)
class Quota:
    """What a queue may hold and is to get; None: nothing is said."""

    max: Amounts | None = None
    guaranteed: Amounts | None = None
    max_applications: int | None = None


def created_quota(template: ChildTemplate | None, tags: Mapping[str, str]) -> Quota:
    """The quota of a created queue. A tag wins over the template; one that cannot be read says nothing."""
    template = template or ChildTemplate()
    return Quota(
        max=read_resource(tags.get(QUOTA_TAG, "")) or template.max or None,
        guaranteed=read_resource(tags.get(GUARANTEED_TAG, "")) or template.guaranteed or None,
        max_applications=_read_count(tags.get(MAX_APPLICATIONS_TAG, "")) or template.max_applications,
    )


def read_resource(text: str) -> Amounts | None:
    """A Scheduler Interface Resource as JSON: `{"resources": {"memory": {"value": 1024}}}`, in base units.

    None if it is none, if an amount is negative or beyond 64 bits, or if no amount is more than 0.
    """
    if not text or len(text) > MAX_TAG_LENGTH:
        return None
    try:
        resources = json.loads(text)["resources"]
        amounts = {name: _amount(quantity) for name, quantity in resources.items()}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    if not any(amounts.values()) or any(name == APPLICATIONS or key_fault(name) for name in amounts):
        return None
    return amounts


def _amount(quantity: object) -> int:
    if not isinstance(quantity, Mapping):
        raise TypeError("not a quantity")
    value = quantity.get("value", 0)
    if isinstance(value, bool | float):
        raise TypeError("not a whole number")
    amount = int(value)  # JSON from Go writes a number, protobuf's own JSON a text
    if not 0 <= amount <= INT64_MAX:
        raise ValueError("not an amount")
    return amount


def _read_count(text: str) -> int | None:
    if not text.isascii() or not text.isdecimal() or len(text) > 18:
        return None
    return int(text) or None
