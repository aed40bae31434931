"""Plain vectors of amounts read from JSON: {"memory": "8Gi", "vcore": "500m", "gpu": 2}."""

import re
from collections.abc import Mapping
from functools import lru_cache

from rm_service.domain.amounts import INT64_MAX
from rm_service.domain.quantities import QuantityError, parse_quantity
from rm_service.domain.shape_fields import ShapeError, joined
from rm_service.domain.tags import KEY_PATTERN

MAX_DIMENSIONS = 64
MAX_NAME_LENGTH = 128

_NAME = re.compile(KEY_PATTERN)


def read_vector(document: Mapping[str, object], path: str = "") -> dict[str, int]:
    """The amounts in base units, none negative; `path` is where the vector stands in its document.

    A dimension is named like a tag key ("gpu", "yarn.memory", "nvidia.com/gpu"). Raises ShapeError.
    """
    if len(document) > MAX_DIMENSIONS:
        raise ShapeError(path, f"at most {MAX_DIMENSIONS} dimensions are allowed, not {len(document)}")
    amounts = {}
    for name, value in document.items():
        if not _is_dimension(name):
            raise ShapeError(joined(path, str(name)), "is not a name of a dimension")
        # Every request passes here: an integer in range needs no further look.
        if type(value) is int and 0 <= value <= INT64_MAX:
            amounts[name] = value
        else:
            amounts[name] = _read_amount(name, value, joined(path, name))
    return amounts


def _read_amount(name: str, value: object, path: str) -> int:
    try:
        return _read_text(name, value) if isinstance(value, str) else parse_quantity(value, name)
    except QuantityError as error:
        raise ShapeError(path, str(error)) from error


@lru_cache(maxsize=4096)
def _read_text(name: str, text: str) -> int:
    """The same few texts ("2Gi") come again and again."""
    return parse_quantity(text, name)


@lru_cache(maxsize=1024)
def _is_dimension(name: object) -> bool:
    return isinstance(name, str) and len(name) <= MAX_NAME_LENGTH and _NAME.fullmatch(name) is not None
