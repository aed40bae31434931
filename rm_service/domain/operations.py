"""The operations: everything that can change an amount, each a plain value for the ledger's one door."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rm_service.domain.amounts import NOTHING, Amounts
from rm_service.domain.application import Instant
from rm_service.domain.class_book import ResourceClass
from rm_service.domain.client_operations import (
    AddApplication,
    Ask,
    BookAllocation,
    ClientOperation,
    CreateNode,
    DecommissionNode,
    ForgetApplication,
    Placement,
    RegisterClient,
    ReleaseAllocation,
    RemoveApplication,
    SetClientState,
    SettleClient,
    Tell,
    UpdateNode,
)
from rm_service.domain.clients import Client
from rm_service.domain.limits import LimitTerms
from rm_service.domain.providers import RemoveProvider, StoreProvider
from rm_service.domain.tags import Tags

__all__ = [
    "AddApplication",
    "Apply",
    "Ask",
    "BookAllocation",
    "ChangeRules",
    "Client",
    "ClientOperation",
    "CreateClass",
    "CreateNode",
    "DecommissionNode",
    "DrainNode",
    "ForgetApplication",
    "HeartbeatEngine",
    "HeartbeatNode",
    "Lose",
    "LoseEngine",
    "LoseNode",
    "Placement",
    "Reclaim",
    "RecordSweep",
    "RegisterClient",
    "RegisterEngine",
    "RegisterNode",
    "Release",
    "ReleaseAllocation",
    "RemoveApplication",
    "RemoveClass",
    "RemoveEngine",
    "RemoveLimit",
    "RemoveNode",
    "RemoveProvider",
    "Renew",
    "SetClientState",
    "SetLimit",
    "SettleClient",
    "ShiftDeadlines",
    "StoreProvider",
    "Tell",
    "UndrainNode",
    "UpdateNode",
    "Use",
    "Wake",
    "WriteCheckpoint",
]


@dataclass(frozen=True, slots=True)
class Apply:
    """Ask for `resource` under `tags`: granted as a lock with a lease, parked for a while, or refused.

    `tags` are already converted by the rules; `request` is the body as it was sent, so that a repeated
    id can be told from a reused one.
    """

    id: str
    tags: Tags
    resource: Amounts
    lock_seconds: int = 720
    wait_seconds: int = 0
    priority: int = 0
    placement: Placement | None = None
    alternatives: tuple[Tags, ...] = ()
    """All tags as they may be instead, in the order of preference."""
    id_is_new: bool = False
    """The id was made for this request, so nobody can have used it before."""
    request: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Use:
    """Turn a lock into use, with the actual amount if it is known; on a used application set its amount."""

    id: str
    resource: Amounts | None = None
    external_ids: tuple[str, ...] = ()
    """What it is called by external managers, if that is known; added to what was said before."""


@dataclass(frozen=True, slots=True)
class Renew:
    """Start the lock's lease anew."""

    id: str
    lock_seconds: int | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """Give everything back; on a waiting application: cancel."""

    id: str


@dataclass(frozen=True, slots=True)
class Reclaim:
    """End what is past its deadline (the sweeper's operation); harmless when it is not."""

    id: str


@dataclass(frozen=True, slots=True)
class Lose:
    """Give back what an application holds because its node or engine is gone.

    `only_if_node_lost`: not if the node it is charged to has registered again meanwhile.
    """

    id: str
    reason: str
    only_if_node_lost: bool = False


@dataclass(frozen=True, slots=True)
class Wake:
    """Look at the first waiters of a label where something was freed."""

    label_id: int


@dataclass(frozen=True, slots=True)
class RegisterNode:
    """Register a node, or what changed of it; live use is kept.

    `applications` names what runs there: those of them that were given up as lost are booked again.
    """

    instance: str
    resource_type: str
    total: Amounts
    protected: Amounts = field(default_factory=dict)
    tags: Tags = field(default_factory=dict)
    attributes: Mapping[str, object] = field(default_factory=dict)
    devices: Sequence[Mapping[str, object]] = ()
    applications: tuple[str, ...] = ()
    partition: str = ""


@dataclass(frozen=True, slots=True)
class HeartbeatNode:
    """A sign of life; from the first one on, silence has a deadline."""

    instance: str
    deadline_seconds: int
    partition: str = ""


@dataclass(frozen=True, slots=True)
class DrainNode:
    """Take nothing new; what runs there stays."""

    instance: str
    reason: str | None = None
    partition: str = ""
    client: Client | None = None


@dataclass(frozen=True, slots=True)
class UndrainNode:
    """Take new work again."""

    instance: str
    partition: str = ""
    client: Client | None = None
    """A client is refused when the node does not drain."""


@dataclass(frozen=True, slots=True)
class LoseNode:
    """Close a node for good until it registers again; what it held is given back afterwards, in chunks.

    `only_if_silent`: not if it has sent a sign of life meanwhile (the sweeper's form).
    """

    instance: str
    reason: str
    only_if_silent: bool = False
    partition: str = ""


@dataclass(frozen=True, slots=True)
class RemoveNode:
    """Take a node's registration away, once nothing is held there any more."""

    instance: str
    partition: str = ""


@dataclass(frozen=True, slots=True)
class RegisterEngine:
    """A started engine reports itself: its application's lock becomes use.

    `resource` is a report, not a request: it is booked even where it is over the limit.
    """

    instance: str
    application: str
    node: str | None = None
    resource: Amounts | None = None
    tags: Tags = field(default_factory=dict)
    external_ids: tuple[str, ...] = ()
    """As of Use."""


@dataclass(frozen=True, slots=True)
class HeartbeatEngine:
    """A sign of life of an engine, with what it uses now if that is reported."""

    instance: str
    deadline_seconds: int
    resource: Amounts | None = None


@dataclass(frozen=True, slots=True)
class RemoveEngine:
    """An engine ended: its application gives everything back."""

    instance: str


@dataclass(frozen=True, slots=True)
class LoseEngine:
    """An engine fell silent: its application ends as LOST if the silence lasts."""

    instance: str
    reason: str


@dataclass(frozen=True, slots=True)
class SetLimit:
    """Set the limit of a tag combination; `*` as a value gives every value its own."""

    tags: Tags
    total: Amounts
    protected: Amounts = field(default_factory=lambda: NOTHING)
    client: str | None = None
    """The resource manager whose configuration says so: its next registration takes it back."""


@dataclass(frozen=True, slots=True)
class TakeLimits:
    """Take over what a limit source says about some tag combinations.

    Those of them that `limits` does not name have none of the source's any more. Limits that somebody else
    has set on the same tags stay.
    """

    owner: str
    """As `source_owner` has it."""
    combinations: Sequence[Tags]
    limits: Sequence[LimitTerms] = ()


@dataclass(frozen=True, slots=True)
class RemoveLimit:
    """Take a limit away."""

    id: int


@dataclass(frozen=True, slots=True)
class ChangeRules:
    """Replace the label rules; what runs is charged to the labels of the new ones."""

    document: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class ShiftDeadlines:
    """Move every deadline by the time in which nobody could renew, because the service was away.

    That time began at `seen`, the last success of a sweep that the asker knows of; if another sweep has
    succeeded since, nothing happens.
    """

    seen: Instant


@dataclass(frozen=True, slots=True)
class WriteCheckpoint:
    """Write down every balance, so that events before this moment are no longer needed to prove them."""


@dataclass(frozen=True, slots=True)
class RecordSweep:
    """Note that a sweep was alive at `at`; an earlier moment than the one noted changes nothing."""

    at: Instant


@dataclass(frozen=True, slots=True)
class Observe:
    """What was seen of one place of an external manager: the total and the use of its label.

    Its label comes into being by this. `closed` says why the place takes nothing new; without a total
    nothing is known of it.
    """

    tags: Tags
    provider: str
    """Type and name, `yarn/c1`."""
    total: Amounts | None
    observed: Amounts = field(default_factory=dict)
    protected: Amounts = field(default_factory=dict)
    closed: str | None = None
    shown: Mapping[str, Amounts] | None = field(default_factory=dict)
    """By the ids of applications: what the list that was fetched before has of each, at that place. Those
    that are not named stay as they were: name who is not listed any more, too. None: that is not known, so
    where applications of ours hold something nothing is taken over.
    """
    age: Instant = 0
    """How long ago that was, in microseconds."""
    stale_seconds: int | None = None
    """How old it may become before the place is closed; None: it is relied on however old it is."""
    ignored_when_stale: bool = False
    """Then the place is not judged at all, instead of being closed."""
    looked: bool = True
    """False: nobody has looked yet. That is written down only where nobody has ever looked by this provider,
    or it has asked another manager.
    """
    manager: str = ""
    """A mark of whom the provider asks."""


@dataclass(frozen=True, slots=True)
class CreateClass:
    """Create a resource class; refused if there is one of its name."""

    resource_class: ResourceClass


@dataclass(frozen=True, slots=True)
class RemoveClass:
    """Remove a resource class; devices that were given by it stay with their holders.

    `uid`: only if it is this one.
    """

    name: str
    uid: str | None = None


ApplicationOperation = Apply | Use | Renew | Release | Reclaim | Lose
NodeOperation = (
    RegisterNode
    | HeartbeatNode
    | DrainNode
    | UndrainNode
    | LoseNode
    | RemoveNode
    | CreateNode
    | UpdateNode
    | DecommissionNode
)
EngineOperation = RegisterEngine | HeartbeatEngine | RemoveEngine | LoseEngine
DecidedOperation = ApplicationOperation | NodeOperation | EngineOperation | ClientOperation | Observe | Wake
"""What `decide` judges, one after another, within one batch."""

WholeLedgerOperation = (
    SetLimit
    | TakeLimits
    | RemoveLimit
    | ChangeRules
    | ShiftDeadlines
    | WriteCheckpoint
    | RecordSweep
    | RegisterClient
    | SettleClient
    | SetClientState
    | StoreProvider
    | RemoveProvider
    | CreateClass
    | RemoveClass
)
"""What touches rows without number and so has a batch of its own."""

Operation = DecidedOperation | WholeLedgerOperation
