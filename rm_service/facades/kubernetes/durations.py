"""How long something is there, in the few characters of a column."""

_MINUTE = 60
_HOUR = 60 * _MINUTE
_DAY = 24 * _HOUR
_YEAR = 365 * _DAY


def short_duration(seconds: int) -> str:
    """As kubectl shows ages: `45s`, `3m12s`, `5h`, `2d4h`, `400d`, `2y35d`: the longer, the coarser."""
    if seconds < 0:
        return "0s" if seconds >= -1 else "<invalid>"
    if seconds < 2 * _MINUTE:
        return f"{seconds}s"
    for bound, unit, sign, part, part_sign, fine in _STEPS:
        if seconds < bound:
            rest = seconds % unit // part if seconds < fine else 0
            return f"{seconds // unit}{sign}" + (f"{rest}{part_sign}" if rest else "")
    return f"{seconds // _YEAR}y"


_STEPS = (
    # up to; counted in units; which are divided into parts; as long as it is less than
    (3 * _HOUR, _MINUTE, "m", 1, "s", 10 * _MINUTE),
    (48 * _HOUR, _HOUR, "h", _MINUTE, "m", 8 * _HOUR),
    (2 * _YEAR, _DAY, "d", _HOUR, "h", 8 * _DAY),
    (8 * _YEAR, _YEAR, "y", _DAY, "d", 8 * _YEAR),
)
