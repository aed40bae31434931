"""What a client - a resource manager - asks for: everything by its own names, answered through the outbox."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from rm_service.domain.amounts import Amounts
from rm_service.domain.application import Instant
from rm_service.domain.clients import Client, ClientState, Termination
from rm_service.domain.tags import Tags


@dataclass(frozen=True, slots=True)
class Placement:
    """Ask for a node instead of naming one: which nodes may serve, and which of them to take."""

    selector: str = ""
    strategy: str = "first_fit"
    partition: str = ""
    """Only nodes of this partition serve; the empty one are the nodes that belong to none."""
    weights: tuple[tuple[str, float], ...] = ()
    """How much each dimension counts for `fair` and `binpacking`; empty: memory and vcore, alike."""
    image: str = ""
    """Of the nodes that come first by the strategy one that has this container image is preferred."""
    classes: tuple[tuple[str, int], ...] = ()
    """Devices that the node, chosen or named by tags, is to give: by resource class, in thousandths."""
    devices: str = "first_fit"
    """Which devices of the node are taken: device_strategies.STRATEGIES."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddApplication:
    """An application that will have members. It waits for as long as its labels have no room for it."""

    client: Client
    id: str
    name: str
    tags: Tags
    resource: Amounts
    run_for: Instant = 0
    """How long it may run once it runs, in microseconds; 0: without end."""
    request: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Ask for as many allocations as there are `ids`, each of `resource`.

    A name that is known and waits is replaced; one that is allocated is resized.
    """

    client: Client
    ids: tuple[str, ...]
    name: str
    parent: str | None
    """Name of the application that it is a member of; None: of none."""
    tags: Tags
    """Its own, with the parent's as far as they are known: what counts is what the parent has."""
    resource: Amounts
    priority: int = 0
    run_for: Instant = 0
    placement: Placement | None = None
    """None when its tags name the node."""
    devices: str = "first_fit"
    """Which devices are taken where the resource names classes: device_strategies.STRATEGIES."""
    request: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class BookAllocation:
    """A client reports what runs: booked even where it is over the limit. Its tags name the node."""

    client: Client
    id: str
    spare_id: str
    """In case that an application of this id has been finished here."""
    name: str
    parent: str | None
    tags: Tags
    resource: Amounts
    priority: int = 0
    request: Mapping[str, object] = field(default_factory=dict)
    placement: Placement | None = None
    """Where it may be if it has to be asked for again, as for an `Ask`; `required_node`: only there."""
    required_node: str | None = None
    adopt: AddApplication | None = None
    """The application to take in if the parent is not known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseAllocation:
    """Give back what is named: the allocation `id`, else all of `name`, else all members of `parent`."""

    client: Client
    partition: str
    parent: str | None
    name: str | None
    id: str | None
    termination: Termination
    only_ask: bool = False
    spare_id: str = ""
    """For the ask that waits again when the client could not start what it was given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveApplication:
    """End an application and all of its members."""

    client: Client
    name: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetApplication:
    """End what a client has not reported again under its present registration."""

    client: Client
    id: str
    reason: str = "not reported again by its resource manager"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tell:
    """Tell a client something that needs no decision: that a request was refused."""

    client: Client
    subject: str
    answer: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateNode:
    """A client's new node; refused if it is known, unless under an earlier registration."""

    client: Client
    instance: str
    partition: str
    total: Amounts
    occupied: Amounts = field(default_factory=dict)
    """What others than the ledger's applications use there."""
    attributes: Mapping[str, object] = field(default_factory=dict)
    closed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateNode:
    """What changed of a client's node; None stays as it is."""

    client: Client
    instance: str
    partition: str
    total: Amounts | None = None
    occupied: Amounts | None = None
    attributes: Mapping[str, object] | None = None
    ready: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DecommissionNode:
    """Take a node away with all that runs there."""

    client: Client
    instance: str
    partition: str
    only_unreported: bool = False
    """Not if it was reported under the client's present registration."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterClient:
    """A resource manager registers: its limits replace those of its earlier registration."""

    id: str
    version: str = ""
    policy_group: str = ""
    build_info: Mapping[str, str] = field(default_factory=dict)
    config: str = field(default="", repr=False)
    extra_config: Mapping[str, str] = field(default_factory=dict, repr=False)
    limits: Sequence[tuple[Tags, Amounts]] = ()
    resync_seconds: int = 60
    """What it has not reported again by then is given up."""
    warning: str = ""
    """What an operator should know of it: part of the event."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SettleClient:
    """All that this registration of a client did not report again has been given up."""

    client: Client


@dataclass(frozen=True, slots=True, kw_only=True)
class SetClientState:
    """A resource manager is there again, or has been away so long that it gets nothing new, or is given up.

    Away: only if it has given no sign of life since `unseen_since`.
    """

    id: str
    state: ClientState
    unseen_since: Instant | None = None
    give_up: bool = False
    """What it holds is given back, as if it had registered anew and reported nothing again."""


ClientOperation = (
    AddApplication | Ask | BookAllocation | ReleaseAllocation | RemoveApplication | ForgetApplication | Tell
)
