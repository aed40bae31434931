"""The text of a label selector as Kubernetes reads it: whether it can be one."""

import re

_NAME = r"[A-Za-z0-9](?:[A-Za-z0-9_.-]{0,61}[A-Za-z0-9])?"
_PREFIX = r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?"
_KEY = rf"(?:{_PREFIX}/)?{_NAME}"
_VALUE = rf"\s*(?:{_NAME}\s*)?"
"""With the blanks around it, in one way only: else reading could take for ever."""
_TERM = re.compile(
    rf"\s*(?:!\s*{_KEY}"
    rf"|{_KEY}\s+(?:in|notin)\s*\({_VALUE}(?:,{_VALUE})*\)"
    rf"|{_KEY}\s*[<>]\s*[+-]?[0-9]+"
    rf"|{_KEY}\s*(?:==|!=|=){_VALUE}"
    rf"|{_KEY})\s*(,|\Z)"
)


def selector_fault(text: str) -> str | None:
    """Why this is no label selector, None if it is one."""
    at = 0
    while True:
        term = _TERM.match(text, at)
        if term is None:
            return f"cannot be read from character {at + 1} on"
        at = term.end()
        if not term[1]:
            return None
