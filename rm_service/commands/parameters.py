"""What is typed on a command line as `key=value`: tags and amounts."""

from typing import Any

import click

from rm_service.domain.quantities import QuantityError, parse_quantity
from rm_service.domain.tags import key_fault, value_fault


class TagType(click.ParamType):
    """`user=alice`, read into a pair; everything behind the first `=` is the value."""

    name = "key=value"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        if isinstance(value, tuple):
            return value
        key, equals, text = value.partition("=")
        fault = "write it as key=value" if not equals else key_fault(key) or value_fault(text)
        if fault:
            self.fail(f"{value!r}: {fault}", param, ctx)
        return key, text


class AmountsType(click.ParamType):
    """`memory=2Gi,vcore=500m`, read into base units by dimension."""

    name = "dimension=quantity,..."

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> dict[str, int]:
        if isinstance(value, dict):
            return value
        amounts: dict[str, int] = {}
        for pair in value.split(","):
            dimension, equals, text = pair.strip().partition("=")
            if not equals or not dimension:
                self.fail(f"{pair!r}: write it as dimension=quantity, like memory=2Gi", param, ctx)
            if dimension in amounts:
                self.fail(f"{dimension!r} is there twice", param, ctx)
            try:
                amounts[dimension] = parse_quantity(text, dimension)
            except QuantityError as error:
                self.fail(f"{dimension}: {error}", param, ctx)
        return amounts


TAG = TagType()
AMOUNTS = AmountsType()
