"""Ids of applications."""

import re
import secrets
import time

_ID = re.compile("[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


def is_id(text: str) -> bool:
    """Whether this is a UUID in its canonical form, as every id of an application is."""
    return _ID.fullmatch(text) is not None


def new_id() -> str:
    """A version 7 UUID (RFC 9562): the time in milliseconds, then chance.

    Ids made one after another stand beside each other in the index, so that new rows touch few pages.
    """
    value = (time.time_ns() // 1_000_000) << 80 | secrets.randbits(80)
    value = value & ~(0xF << 76) | 0x7 << 76
    value = value & ~(0x3 << 62) | 0x2 << 62
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
