"""Reading the placement rules of a partition."""

import re

from rm_service.domain.linear_patterns import LinearPattern, PatternError
from rm_service.domain.queue_config import (
    ROOT,
    SEPARATOR,
    NameFilter,
    PlacementRule,
    QueueConfigError,
    RuleFilter,
    RuleKind,
)
from rm_service.domain.queue_fields import (
    is_group_name,
    is_queue_name,
    is_user_name,
    read_flag,
    read_list,
    read_object,
    read_text,
)

MAX_RULES = 100
MAX_PARENTS = 16
MAX_FILTER_NAMES = 1000

_FIELDS = ("name", "create", "filter", "parent", "value")
# A single entry with one of these is an expression, not a name.
_EXPRESSION = re.compile(r"[\^$*+?()\[{}|]")


def read_placement_rules(document: object, path: str) -> tuple[PlacementRule, ...]:
    """The rules in order. Raises QueueConfigError."""
    rules = read_list(document, path)
    if len(rules) > MAX_RULES:
        raise QueueConfigError(path, f"at most {MAX_RULES} rules are allowed")
    return tuple([_read_rule(rule, f"{path}[{at}]", MAX_PARENTS) for at, rule in enumerate(rules)])


def _read_rule(document: object, path: str, parents_left: int) -> PlacementRule:
    fields = read_object(document, path, _FIELDS)
    try:
        kind = RuleKind(read_text(fields.get("name"), f"{path}.name").lower())
    except ValueError as error:
        if isinstance(error, QueueConfigError):
            raise
        raise QueueConfigError(f"{path}.name", f"must be one of {', '.join(RuleKind)}") from error
    value = _read_value(fields.get("value"), f"{path}.value", kind)
    parent = None
    if fields.get("parent") is not None:
        if not parents_left:
            raise QueueConfigError(f"{path}.parent", f"at most {MAX_PARENTS} rules may stand in a row")
        if kind is RuleKind.FIXED and is_full_path(value):
            raise QueueConfigError(
                f"{path}.parent", "the value is a queue in full, which has no other parent"
            )
        parent = _read_rule(fields["parent"], f"{path}.parent", parents_left - 1)
    return PlacementRule(
        kind=kind,
        value=value,
        create=read_flag(fields.get("create"), f"{path}.create"),
        filter=_read_filter(fields.get("filter"), f"{path}.filter"),
        parent=parent,
    )


def is_full_path(queue: str) -> bool:
    """Whether a queue's name begins at root."""
    return queue == ROOT or queue.startswith(ROOT + SEPARATOR)


def _read_value(document: object, path: str, kind: RuleKind) -> str:
    value = read_text(document, path).strip().lower()
    if kind is RuleKind.FIXED and not all(map(is_queue_name, value.split(SEPARATOR))):
        raise QueueConfigError(path, "must be a queue")
    if kind is RuleKind.TAG and not value:
        raise QueueConfigError(path, "must be the name of a tag")
    return value


def _read_filter(document: object, path: str) -> RuleFilter:
    fields = read_object(document, path, ("type", "users", "groups"))
    kind = read_text(fields.get("type"), f"{path}.type").lower()
    if kind not in {"", "allow", "deny"}:
        raise QueueConfigError(f"{path}.type", "must be allow or deny")
    return RuleFilter(
        allow=kind != "deny",
        users=_read_names(fields.get("users"), f"{path}.users", groups=False),
        groups=_read_names(fields.get("groups"), f"{path}.groups", groups=True),
    )


def _read_names(document: object, path: str, *, groups: bool) -> NameFilter | None:
    texts = [read_text(text, f"{path}[{at}]") for at, text in enumerate(read_list(document, path))]
    if not texts:
        return None
    if len(texts) > MAX_FILTER_NAMES:
        raise QueueConfigError(path, f"at most {MAX_FILTER_NAMES} names are allowed")
    is_name = is_group_name if groups else is_user_name
    if len(texts) == 1 and not is_name(texts[0]) and _EXPRESSION.search(texts[0]):
        try:
            return NameFilter(pattern=LinearPattern(texts[0]))
        except PatternError as error:
            raise QueueConfigError(f"{path}[0]", f"the regular expression {error}") from error
    for at, text in enumerate(texts):
        if not is_name(text):
            raise QueueConfigError(f"{path}[{at}]", "is no name, nor the only entry and an expression")
    return NameFilter(names=frozenset(texts))
