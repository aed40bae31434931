"""Which queue an application goes to: the placement rules of its partition, in order, the first that fits."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rm_service.domain.amounts import Amounts
from rm_service.domain.queue_config import (
    RECOVERY_QUEUE,
    ROOT,
    SEPARATOR,
    PartitionConfig,
    PlacementRule,
    Queue,
    RuleKind,
)
from rm_service.domain.queue_documents import MAX_DEPTH
from rm_service.domain.queue_fields import is_queue_name, is_user_name
from rm_service.domain.queue_quotas import created_quota
from rm_service.domain.queue_rule_documents import is_full_path
from rm_service.domain.tags import MAX_VALUE_LENGTH

CREATE_FORCE_TAG = "application.create.force"
NOBODY = "nobody"
NOGROUP = "nogroup"
DEFAULT_QUEUE = f"{ROOT}{SEPARATOR}default"
DOT_REPLACEMENT = "_dot_"

_WITHOUT_RULES = (PlacementRule(RuleKind.PROVIDED),)


@dataclass(frozen=True, slots=True)
class Placed:
    """The queue, in full. `created`: it is not in the configuration, and the rest is what it may hold."""

    queue: str
    created: bool = False
    max: Amounts | None = None
    max_applications: int | None = None
    guaranteed: Amounts | None = None


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an application is rejected, in the words of the reference."""

    reason: str


@dataclass(frozen=True, slots=True)
class Owner:
    """Who an application belongs to. No groups: they were not sent, and are to be looked up."""

    user: str
    groups: tuple[str, ...] = ()


def is_forced(tags: Mapping[str, str]) -> bool:
    """Whether the application runs already and must not be rejected."""
    return tags.get(CREATE_FORCE_TAG, "").lower() == "true"


def owner_of(user: str, groups: Sequence[str], tags: Mapping[str, str]) -> Owner | Refusal:
    """Who the application belongs to; a forced one without a usable name belongs to nobody."""
    if is_user_name(user):
        return Owner(user, tuple(groups))
    if is_forced(tags):
        return Owner(NOBODY, (NOGROUP,))
    if not user:
        return Refusal("empty user cannot resolve")
    return Refusal("invalid username, it contains invalid characters")


def place_application(
    config: PartitionConfig,
    *,
    application: str,
    queue: str,
    user: str,
    groups: Sequence[str],
    tags: Mapping[str, str],
) -> Placed | Refusal:
    """Place an application by the rules; `application` is its id, for the reason.

    `queue` is what it asks for, in full or below root, in any case. A forced application that the rules do
    not place goes to `root.@recovery@`.
    """
    owner = owner_of(user, groups, tags)
    if isinstance(owner, Refusal):
        return owner
    outcome = _Placement(config, application, queue, owner, tags).outcome()
    if isinstance(outcome, Refusal) and is_forced(tags):
        return Placed(RECOVERY_QUEUE, created=True)
    return outcome


class _RuleError(ValueError):
    """A rule names a queue that cannot be: the application is rejected, later rules are not asked."""


@dataclass(frozen=True, slots=True)
class _Placement:
    config: PartitionConfig
    application: str
    queue: str
    owner: Owner
    tags: Mapping[str, str]

    def outcome(self) -> Placed | Refusal:
        try:
            for rule in self.config.placement_rules or _WITHOUT_RULES:
                path = self._found_by(rule)
                if path is not None and not _is_for_recovery(path) and self._may_submit(path):
                    return self._placed(path)
        except _RuleError as error:
            return Refusal(f"failed to place application {self.application}: {error}")
        if DEFAULT_QUEUE in self.config.queues and self._may_submit(DEFAULT_QUEUE):
            return self._placed(DEFAULT_QUEUE)
        return Refusal(
            f"failed to place application {self.application}: application rejected: no placement rule matched"
        )

    def _found_by(self, rule: PlacementRule) -> str | None:
        """The queue that a rule finds, or may create; None if it does not fit."""
        name = self._named_by(rule)
        if not name or not rule.filter.admits(self.owner.user, self.owner.groups):
            return None
        path = name if _is_full(rule.kind, name) else self._below_parent(rule, name)
        if path is None:
            return None
        _check_path(path)
        return path if rule.create or path in self.config.queues else None

    def _named_by(self, rule: PlacementRule) -> str:
        match rule.kind:
            case RuleKind.PROVIDED:
                return _lower(self.queue)
            case RuleKind.TAG:
                return _lower(self._tag(rule.value))
            case RuleKind.FIXED:
                return rule.value
            case RuleKind.USER:
                return _lower(self.owner.user)

    def _tag(self, name: str) -> str:
        return next((value for key, value in self.tags.items() if key.lower() == name), "")

    def _below_parent(self, rule: PlacementRule, name: str) -> str | None:
        parent = self._found_by(rule.parent) if rule.parent else ROOT
        if parent is None:
            return None
        known = self.config.queues.get(parent)
        if known is not None and known.is_leaf:
            raise _RuleError(f"parent rule returned a leaf queue: {parent}")
        dotted = f"{parent}{SEPARATOR}{name}"
        if rule.kind is RuleKind.FIXED or (rule.kind is RuleKind.PROVIDED and dotted in self.config.queues):
            return dotted
        return f"{parent}{SEPARATOR}{name.replace(SEPARATOR, DOT_REPLACEMENT)}"

    def _may_submit(self, path: str) -> bool:
        return self.config.may_submit(path, self.owner.user, self.owner.groups)

    def _placed(self, path: str) -> Placed | Refusal:
        nearest: Queue = next(self.config.upwards(path))
        if nearest.path == path:
            if nearest.is_leaf:
                return Placed(path)
            return Refusal(f"failed to find queue {path} for application {self.application}")
        if nearest.is_leaf:
            return Refusal(
                f"failed to create rule based queue {path} for application {self.application}\n"
                f"parent queue is a leaf: {nearest.path}"
            )
        quota = created_quota(nearest.child_template, self.tags)
        return Placed(path, True, quota.max, quota.max_applications, quota.guaranteed)


def _is_full(kind: RuleKind, name: str) -> bool:
    """Whether a rule's name is a full path: a namespace may be called root, a user's name is one level."""
    match kind:
        case RuleKind.PROVIDED | RuleKind.FIXED:
            return is_full_path(name)
        case RuleKind.TAG:
            return name.startswith(ROOT + SEPARATOR)
        case RuleKind.USER:
            return False


def _is_for_recovery(path: str) -> bool:
    return path == RECOVERY_QUEUE or path.startswith(RECOVERY_QUEUE + SEPARATOR)


def _check_path(path: str) -> None:
    names = path.split(SEPARATOR)
    if len(names) > MAX_DEPTH or len(path) > MAX_VALUE_LENGTH or not all(map(is_queue_name, names)):
        raise _RuleError(f"invalid queue name {path[:MAX_VALUE_LENGTH]!a}")


def _lower(text: str) -> str:
    """In lower case; a text that cannot name a queue stays as it is, for some of it would become valid."""
    return text.lower() if text.isascii() else text
