"""What is typed on a command line as `key=value`: tags, amounts and classes."""

from collections.abc import Iterable

import click

from rm_service.domain.quantities import QuantityError, parse_quantity, read_quantity
from rm_service.domain.tags import key_fault, value_fault


def read_tags(_context: click.Context, _option: click.Parameter, pairs: Iterable[str]) -> dict[str, str]:
    """`user=alice` each; everything behind the first `=` is the value."""
    tags: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        fault = "write it as key=value" if not equals else key_fault(key) or value_fault(value)
        if fault or key in tags:
            raise click.BadParameter(f"{pair!r}: {fault or 'the key is there twice'}")
        tags[key] = value
    return tags


def read_classes(_context: click.Context, _option: click.Parameter, pairs: Iterable[str]) -> dict[str, str]:
    """`nvidia.high.mem=2` each, or `=500m`: the quantities as texts."""
    classes: dict[str, str] = {}
    for pair in pairs:
        name, equals, quantity = pair.partition("=")
        if not (name and equals):
            raise click.BadParameter(f"{pair!r}: write it as name=quantity, like nvidia.high.mem=2")
        if name in classes:
            raise click.BadParameter(f"{name!r} is there twice")
        try:
            read_quantity(quantity)
        except QuantityError as error:
            raise click.BadParameter(f"{name}: {error}") from error
        classes[name] = quantity
    return classes


def read_amounts(
    _context: click.Context, _option: click.Parameter, text: str | None
) -> dict[str, int] | None:
    """`memory=2Gi,vcore=500m` in base units; None stays None."""
    if text is None:
        return None
    amounts: dict[str, int] = {}
    for pair in text.split(","):
        dimension, equals, quantity = pair.strip().partition("=")
        if not equals or not dimension:
            raise click.BadParameter(f"{pair!r}: write it as dimension=quantity, like memory=2Gi")
        if dimension in amounts:
            raise click.BadParameter(f"{dimension!r} is there twice")
        try:
            amounts[dimension] = parse_quantity(quantity, dimension)
        except QuantityError as error:
            raise click.BadParameter(f"{dimension}: {error}") from error
    return amounts
