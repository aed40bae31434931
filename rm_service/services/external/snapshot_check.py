"""The check that a look at a manager can be: what cannot be is quarantined, place by place."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import orjson

from external_providers.base import AbsurdError, ExternalApplication, Identity, Place
from rm_service.domain.amounts import Amounts
from rm_service.domain.tags import key_fault, value_fault

MAX_AMOUNT = 2**62
"""More is no amount of anything, and two of them would leave 64 bits."""
MAX_PLACES = 100_000
TOLD = 5
"""So many faults are told in words, and of the others the number."""


@dataclass(slots=True)
class Checked:
    """What of a look can be used."""

    places: dict[str, Place] = field(default_factory=dict)
    """By their names."""
    applications: list[ExternalApplication] = field(default_factory=list)
    quarantined: set[str] = field(default_factory=set)
    """The names of places that are not used."""
    faults: list[str] = field(default_factory=list)
    """Why, and why applications are left out."""


def check_look(
    identity: Identity, places: Sequence[Place], applications: Sequence[ExternalApplication]
) -> Checked:
    """The places and applications that can be, and what is wrong with the others.

    Raises AbsurdError where it cannot be told which those are, or where no place is left.
    """
    if len(places) > MAX_PLACES:
        raise AbsurdError(f"{len(places)} places are more than {MAX_PLACES}")
    checked, names = Checked(), set[str]()
    sums = _sums(applications)
    for place in places:
        if place.name in names:
            raise AbsurdError(f"place {place.name} is there twice")
        names.add(place.name)
        fault = _fault_of_place(identity, place, sums.get(place.name, {}))
        if fault is None:
            checked.places[place.name] = place
        else:
            checked.quarantined.add(place.name)
            checked.faults.append(fault)
    for application in applications:
        fault = _fault_of_application(identity, application)
        if fault is None:
            checked.applications.append(application)
        else:
            checked.faults.append(fault)
    if places and not checked.places:
        raise AbsurdError(in_words(checked.faults))
    return checked


def in_words(faults: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = f" (and {len(faults) - TOLD} more)" if len(faults) > TOLD else ""
    return "; ".join(faults[:TOLD]) + more


def _fault_of_place(identity: Identity, place: Place, held: Amounts) -> str | None:
    here = f"place {place.name}"
    fault = _fault_of_name("a place", place.name) or (f"{here}: {place.fault}" if place.fault else None)
    for what in ("total", "used", "guaranteed", "pending"):
        fault = fault or _fault_of_amounts(identity, f"{here}: {what}", getattr(place, what))
    too_much = next((dimension for dimension, amount in held.items() if amount > MAX_AMOUNT), None)
    if fault is None and too_much is not None:
        fault = f"{here}: its applications have more than 2^62 {too_much}"
    return fault or _fault_of_details(here, place.details)


def _fault_of_application(identity: Identity, application: ExternalApplication) -> str | None:
    here = f"application {application.id}"
    fault = _fault_of_name("an application", application.id)
    fault = fault or (f"{here}: {application.fault}" if application.fault else None)
    return fault or _fault_of_amounts(identity, f"{here}: allocated", application.allocated)


def _fault_of_name(what: str, name: object) -> str | None:
    fault = "it is empty" if name == "" else value_fault(name)
    return f"the name of {what} cannot be, {fault}: {name!r:.80}" if fault else None


def _fault_of_amounts(identity: Identity, where: str, amounts: Amounts) -> str | None:
    for dimension, amount in amounts.items():
        if key_fault(dimension) or (identity.dimensions and dimension not in identity.dimensions):
            return f"{where}: {dimension!r:.80} is nothing that {identity.type} counts"
        if type(amount) is not int:
            return f"{where}.{dimension} is no whole number"
        if not 0 <= amount <= MAX_AMOUNT:
            return f"{where}.{dimension} is {'below 0' if amount < 0 else 'more than 2^62'}"
    return None


def _fault_of_details(here: str, details: Mapping[str, object]) -> str | None:
    try:
        orjson.dumps(details)
    except TypeError as error:
        return f"{here}: details: {error}"
    return None


def _sums(applications: Sequence[ExternalApplication]) -> dict[str, dict[str, int]]:
    """What the applications of each place have together."""
    sums: dict[str, dict[str, int]] = defaultdict(dict)
    for application in applications:
        here = sums[application.place]
        for dimension, amount in application.allocated.items():
            here[dimension] = here.get(dimension, 0) + amount
    return sums
