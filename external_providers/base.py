"""What a provider of external resources is: the interface that a plugin implements, and what goes over it.

An external resource manager (YARN, Kubernetes, a file, any JSON endpoint) has *places*: queues, namespaces.
A provider says of each what it has in total and what is used, and which applications run there. It is asked
by a refresher, never while the ledger holds anything; it may take its time, up to the request's timeout.

A plugin is found by the entry point group `rm_service.external_providers`; the entry's name is its type.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from marshmallow import Schema, ValidationError

from rm_service.domain.amounts import Amounts
from rm_service.domain.tags import Tags

ENTRY_POINTS = "rm_service.external_providers"
SECRET: Mapping[str, Any] = {"secret": True}
"""`metadata` of a field of a configuration that is written only: kept encrypted, never shown or logged."""


class ProviderError(Exception):
    """An external manager did not answer as it should. The text is shown to operators: no secrets in it."""


class UnreachableError(ProviderError):
    """There is no answer: refused, timed out, cut off. Asking again may help."""


class MalformedError(ProviderError):
    """The answer is not what this manager answers: no JSON, a field missing, a text for a number."""


class AbsurdError(ProviderError):
    """The answer can be read and cannot be: a negative amount, one beyond 2^62. Nothing of it is used. Where
    one place is concerned, or one application, its `fault` says so instead, and the others are used.
    """


class DeniedError(ProviderError):
    """The manager does not let us look: the credentials are wrong, or not enough."""


class ProviderConfigError(ValueError):
    """A provider's configuration cannot be right; `faults` has a reason by field."""

    def __init__(self, faults: Mapping[str, str]) -> None:
        self.faults = faults
        super().__init__("; ".join(f"{name}: {reason}" for name, reason in faults.items()))


@dataclass(frozen=True, slots=True)
class Identity:
    """What kind of manager a provider speaks to, and how its places are found by tags."""

    type: str
    """The name in the entry point, in label rules (`external: yarn`) and in the address of a provider."""
    cluster_key: str
    """The key of the tag that names the cluster, e.g. `yarnCluster`."""
    place_key: str
    """The key of the tag that names the place in it, e.g. `yarnQueue`."""
    dimensions: frozenset[str]
    """What it counts, e.g. `yarn.memory` (bytes), `yarn.vcore` (milli-cores). No two types share a name.
    Empty: whatever its places say."""


@dataclass(frozen=True, slots=True)
class ProviderRecord:
    """A provider as it is stored, with its secrets in clear."""

    type: str
    name: str
    config: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class MatchedProvider:
    """What a parser makes of a record: what applications' tags are matched with, and how to ask."""

    name: str
    labels: Tags
    """Tags that lead to this provider unless its record says otherwise, e.g. `yarnCluster=c1`."""
    params: Mapping[str, Any] = field(repr=False)
    """The checked configuration; a plugin's own."""


@dataclass(frozen=True, slots=True)
class ExternalResourceRequest:
    """One question to an external manager."""

    provider: MatchedProvider
    timeout_seconds: float
    """For all of it, retries within the plugin included."""


@dataclass(frozen=True, slots=True)
class Place:
    """A queue or a namespace. Amounts are in base units; a dimension that is absent is 0 of `total`."""

    name: str
    """As the tag says it: the full name, e.g. `root.etl.daily`."""
    total: Amounts
    """The most that can be used here, however elastic."""
    used: Amounts
    guaranteed: Amounts = field(default_factory=dict)
    """What it can count on; empty where that is not a notion of this manager."""
    pending: Amounts = field(default_factory=dict)
    """Asked for there, and not given yet."""
    open: bool = True
    """Whether it takes new applications."""
    details: Mapping[str, object] = field(default_factory=dict)
    """What else is worth showing, e.g. numbers of applications. Shown as it is."""
    fault: str = ""
    """Which of its numbers cannot be. It is then quarantined: not used, whatever the rest of it says."""


@dataclass(frozen=True, slots=True)
class ExternalApplication:
    """An application as its manager sees it."""

    id: str
    place: str
    allocated: Amounts
    state: str = ""
    user: str = ""
    name: str = ""
    kind: str = ""
    tags: frozenset[str] = frozenset()
    """Words that were given with it. One of the form `rm-ID` names the application of ours that it is."""
    fault: str = ""
    """Which of its numbers cannot be. It is then left out: what is promised to it counts whole."""


@dataclass(frozen=True, slots=True)
class Health:
    """Whether a manager can be asked at the moment."""

    ok: bool
    detail: str = ""
    """Which address answered, which version; or what is wrong."""


def health_by(look: Callable[[], str]) -> Health:
    """Well if `look` succeeds, with what it says as the detail; what keeps it from that is what is wrong."""
    try:
        return Health(ok=True, detail=look())
    except ProviderError as error:
        return Health(ok=False, detail=str(error))


class ExternalResourceProviderParser:
    """Turns a stored record into what is matched and asked with. Subclass it where `schema` is not enough.

    `recipients`: the keys of the configuration that decide who is sent its secrets, such as addresses and
    whom to trust; nested ones by their paths, `applications.url`. When one of them changes, secrets have to
    be given again. None: any key may be one.
    """

    recipients: frozenset[str] | None = None

    def __init__(
        self, identity: Identity, schema: type[Schema], recipients: Iterable[str] | None = None
    ) -> None:
        self.identity = identity
        self.schema = schema
        self.recipients = None if recipients is None else frozenset(recipients)

    def parse(self, record: ProviderRecord) -> MatchedProvider:
        """Raises ProviderConfigError."""
        try:
            params: Mapping[str, Any] = self.schema().load(record.config)
        except ValidationError as error:
            messages = error.messages if isinstance(error.messages, dict) else {"config": error.messages}
            raise ProviderConfigError(_flat(messages)) from error
        return MatchedProvider(record.name, self.labels(record, params), params)

    def labels(self, record: ProviderRecord, params: Mapping[str, Any]) -> Tags:
        """The tags that lead here: the cluster's name, which is `cluster` or the record's own."""
        return {self.identity.cluster_key: str(params.get("cluster") or record.name)}


class ExternalResourceProvider(ABC):
    """A plugin. One instance serves all records of its type, from several threads at a time.

    Each method may raise ProviderError, and is given up when the request's timeout has passed.
    """

    identity: ClassVar[Identity]
    parser: ClassVar[ExternalResourceProviderParser]

    def identify(self) -> Identity:
        return self.identity

    @abstractmethod
    def applications(self, request: ExternalResourceRequest) -> Sequence[ExternalApplication]:
        """Those that hold something now, in all places. It is asked before `places`, so that what starts in
        between counts twice rather than not at all.
        """

    @abstractmethod
    def places(self, request: ExternalResourceRequest) -> Sequence[Place]:
        """All places with their amounts, by as few questions to the manager as it allows."""

    @abstractmethod
    def health(self, request: ExternalResourceRequest) -> Health:
        """A cheap look at whether the manager answers. Says what is wrong instead of raising."""

    def close(self) -> None:  # noqa: B027 - most have nothing to let go of
        """Let go of connections; nothing is asked any more."""


def _flat(messages: Mapping[str, Any], path: str = "") -> dict[str, str]:
    """One reason for each field, nested ones by their paths: `quotas.0.total`."""
    faults: dict[str, str] = {}
    for name, found in messages.items():
        here = f"{path}.{name}" if path else str(name)
        if isinstance(found, Mapping):
            faults |= _flat(found, here)
        else:
            faults[here] = " ".join(map(str, found)) if isinstance(found, list) else str(found)
    return faults
