"""ResourceQuotas: which of several is the tightest."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from external_providers.kubernetes.documents import Document, mapping, name_of, text
from external_providers.kubernetes.identity import MEMORY, PODS, VCORE
from external_providers.kubernetes.quantities import amount

MEASURES: Mapping[str, tuple[str, str]] = {
    "requests.cpu": (VCORE, "requests"),
    "cpu": (VCORE, "requests"),
    "requests.memory": (MEMORY, "requests"),
    "memory": (MEMORY, "requests"),
    "pods": (PODS, "pods"),
    "count/pods": (PODS, "objects"),
}
"""What a quota calls it, by our dimension and what is measured: `pods` does not count those that have ended,
`count/pods` does."""


@dataclass(frozen=True, slots=True)
class Bound:
    """What one quota says of one measure."""

    quota: str
    dimension: str
    measure: str
    hard: int
    used: int | None
    """None: the cluster has not counted yet."""


@dataclass(frozen=True, slots=True)
class Quota:
    """What is kept of a ResourceQuota."""

    namespace: str
    name: str
    scoped: bool
    """It speaks of some of the pods only."""
    bounds: Sequence[Bound]


@dataclass(frozen=True, slots=True)
class Tightest:
    """What all quotas of a namespace together allow in a dimension."""

    total: int
    used: int
    quota: str


def read_quota(item: Document) -> Quota:
    """What is kept of a ResourceQuota. Raises MalformedError."""
    name = name_of(item, "resourcequota")
    metadata = mapping(item, "metadata", "resourcequota")
    namespace = text(metadata, "namespace", "resourcequota.metadata")
    where = f"resourcequota {namespace}/{name}"
    spec = mapping(item, "spec", where)
    status = mapping(item, "status", where)
    # What the quota's controller has taken up is in force; before that, what was written.
    hard = {**mapping(spec, "hard", where), **mapping(status, "hard", where)}
    used = mapping(status, "used", where)
    bounds = [
        Bound(
            quota=name,
            dimension=dimension,
            measure=measure,
            hard=amount(hard[key], dimension, "down", f"{where}.hard.{key}"),
            used=amount(used[key], dimension, "up", f"{where}.used.{key}") if key in used else None,
        )
        for key, (dimension, measure) in MEASURES.items()
        if key in hard
    ]
    return Quota(namespace, name, bool(spec.get("scopes") or spec.get("scopeSelector")), bounds)


def tightest(quotas: Iterable[Quota], counted: Mapping[str, int]) -> dict[str, Tightest]:
    """By dimension: the least `hard` with the largest `used`; of two measures, the one with less room.

    `counted` is what the pods of the namespace request, for a quota that nobody has counted yet. A scoped
    quota says nothing of an application of which only the amounts are known.
    """
    measures: dict[tuple[str, str], list[Bound]] = {}
    for quota in quotas:
        if not quota.scoped:
            for bound in quota.bounds:
                measures.setdefault((bound.dimension, bound.measure), []).append(bound)
    found: dict[str, Tightest] = {}
    for (dimension, _), bounds in measures.items():
        least = min(bounds, key=lambda bound: bound.hard)
        uncounted = counted.get(dimension, 0)
        used = max(uncounted if bound.used is None else bound.used for bound in bounds)
        candidate = Tightest(least.hard, used, least.quota)
        known = found.get(dimension)
        if known is None or _room(candidate) < _room(known):
            found[dimension] = candidate
    return found


def _room(candidate: Tightest) -> tuple[int, int]:
    return candidate.total - candidate.used, candidate.total
