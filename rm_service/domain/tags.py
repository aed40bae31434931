"""Tags: what an application, a node or a limit says about itself, as `key=value` pairs.

The canonical text of a set of tags names a label: equal sets have equal texts, different sets never do.
"""

import hashlib
import re
from collections.abc import Mapping

Tags = Mapping[str, str]

MAX_LABEL_KEY = 512
MAX_TAGS = 64
MAX_KEY_LENGTH = 128
MAX_VALUE_LENGTH = 256

KEY_PATTERN = r"[A-Za-z0-9][A-Za-z0-9_.\-/]*"
_KEY = re.compile(KEY_PATTERN)
# No control characters (C0, DEL, C1), no line or paragraph separators, no surrogates: what is left can be
# written to a log line and stored as UTF-8 by every database.
_VALUE = re.compile("[^\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]*")


class TagError(ValueError):
    """A tag breaks a rule. `key` names the tag (empty: the whole set), `reason` says what is wrong."""

    def __init__(self, key: str, reason: str) -> None:
        self.key = key
        self.reason = reason
        super().__init__(f"tag {key[:MAX_KEY_LENGTH]!r}: {reason}" if key else f"tags: {reason}")


def key_fault(key: object) -> str | None:
    """What is wrong with a tag key, or None.

    A key has 1 to 128 characters: ASCII letters, digits, `_`, `.`, `-`, `/`, and starts with a letter or
    digit.
    """
    if not isinstance(key, str):
        return "the key is not a text"
    if len(key) > MAX_KEY_LENGTH:
        return f"the key is longer than {MAX_KEY_LENGTH} characters"
    if not _KEY.fullmatch(key):
        return "the key needs letters, digits, '_', '.', '-' or '/', and a letter or digit first"
    return None


def value_fault(value: object) -> str | None:
    """What is wrong with a tag value, or None.

    A value has 0 to 256 characters of Unicode without control characters (U+0000-001F, U+007F-009F), line and
    paragraph separators (U+2028, U+2029) and surrogates. Values compare code point by code point.
    """
    if not isinstance(value, str):
        return "the value is not a text"
    if len(value) > MAX_VALUE_LENGTH:
        return f"the value is longer than {MAX_VALUE_LENGTH} characters"
    if not _VALUE.fullmatch(value):
        return "the value holds a control character"
    return None


def check_tags(document: object) -> dict[str, str]:
    """Read tags from a parsed JSON or YAML document.

    Raises TagError naming the first tag that breaks `key_fault` or `value_fault`, or when there are more than
    64.
    """
    if not isinstance(document, Mapping):
        raise TagError("", "must be an object of texts")
    if len(document) > MAX_TAGS:
        raise TagError("", f"at most {MAX_TAGS} are allowed, not {len(document)}")
    for key, value in document.items():
        fault = key_fault(key) or value_fault(value)
        if fault:
            raise TagError(str(key), fault)
    return dict(document)


def canonical_key(tags: Tags) -> str:
    r"""The text that names this set of tags: `key=value` joined by commas, sorted by key.

    `\` and `,` are written `\\` and `\,`, in keys also `=` as `\=`, so that no two sets share a text whatever
    they hold. The empty set is the empty text.
    """
    return ",".join([f"{_escape_key(key)}={_escape(tags[key])}" for key in sorted(tags)])


def label_key(tags: Tags) -> str:
    """The text under which a label of these tags is stored: the canonical key, or its digest if long."""
    key = canonical_key(tags)
    if len(key) <= MAX_LABEL_KEY:
        return key
    return "#" + hashlib.sha256(key.encode()).hexdigest()


def node_tags(instance: str, partition: str = "") -> dict[str, str]:
    """The tags of a node's label: a partition has node names of its own."""
    return {"partition": partition, "node": instance} if partition else {"node": instance}


def parse_canonical_key(text: str) -> dict[str, str]:
    """The tags that `canonical_key` turned into this text. Raises TagError for any other text."""
    tags: dict[str, str] = {}
    for pair in re.findall(r"(?:[^\\,]|\\.)+", text, re.DOTALL):
        match = re.fullmatch(r"((?:[^\\=]|\\.)*)=(.*)", pair, re.DOTALL)
        if match:
            tags[_unescape(match[1])] = _unescape(match[2])
    if canonical_key(tags) != text:
        raise TagError("", "not the canonical text of a set of tags")
    return tags


def _escape(text: str) -> str:
    if "\\" in text or "," in text:
        return text.replace("\\", "\\\\").replace(",", "\\,")
    return text


def _escape_key(key: str) -> str:
    return _escape(key).replace("=", "\\=") if not key.isalnum() else key


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL)
