"""The plug-in for YARN."""

import threading
from collections import OrderedDict
from collections.abc import Sequence
from typing import ClassVar

from external_providers.base import (
    ExternalApplication,
    ExternalResourceProvider,
    ExternalResourceProviderParser,
    ExternalResourceRequest,
    Health,
    Identity,
    MatchedProvider,
    Place,
    ProviderError,
)
from external_providers.bounded_http import Deadline
from external_providers.yarn import applications, queues, schedulers
from external_providers.yarn.addresses import Cluster
from external_providers.yarn.config import IDENTITY, YarnParser
from external_providers.yarn.json_tolerance import Object, text
from external_providers.yarn.words import plain

SCHEDULER = "/ws/v1/cluster/scheduler"
METRICS = "/ws/v1/cluster/metrics"
MOST_CLUSTERS = 256
"""Whose connections are kept; one that was not asked for longest gives way."""


class YarnProvider(ExternalResourceProvider):
    """Queues and applications of YARN clusters.

    `places` takes two requests however many queues there are, `applications` one (and two more where YARN
    names queues without their paths and the tree was not read before).
    """

    identity: ClassVar[Identity] = IDENTITY
    parser: ClassVar[ExternalResourceProviderParser] = YarnParser()

    def __init__(self) -> None:
        self._clusters: OrderedDict[str, Cluster] = OrderedDict()
        self._guard = threading.Lock()

    def applications(self, request: ExternalResourceRequest) -> Sequence[ExternalApplication]:
        deadline = Deadline(request.timeout_seconds)
        cluster = self._cluster(request.provider)
        listed = applications.listed(cluster.ask(applications.PATH, deadline))
        if applications.speaks_of_leaves(listed) and not cluster.queue_names:
            _tree(cluster, deadline)
        return applications.applications(listed, cluster.queue_names)

    def places(self, request: ExternalResourceRequest) -> Sequence[Place]:
        deadline = Deadline(request.timeout_seconds)
        tree, use = _tree(self._cluster(request.provider), deadline)
        return queues.places(tree, use)

    def health(self, request: ExternalResourceRequest) -> Health:
        try:
            address, info = self._cluster(request.provider).info(Deadline(request.timeout_seconds))
        except ProviderError as error:
            return Health(ok=False, detail=str(error))
        version, state = text(info, "resourceManagerVersion"), text(info, "state")
        return Health(ok=state in {"", "STARTED"}, detail=f"{address}: YARN {plain(version)}, {plain(state)}")

    def close(self) -> None:
        with self._guard:
            clusters = list(self._clusters.values())
            self._clusters.clear()
        for cluster in clusters:
            cluster.close()

    def _cluster(self, provider: MatchedProvider) -> Cluster:
        """The connections of a record; others as soon as its configuration is another."""
        old: list[Cluster] = []
        with self._guard:
            cluster = self._clusters.pop(provider.name, None)
            if cluster is None or cluster.params != provider.params:
                old += [cluster] if cluster else []
                cluster = Cluster(provider.params)
            self._clusters[provider.name] = cluster
            if len(self._clusters) > MOST_CLUSTERS:
                old.append(self._clusters.popitem(last=False)[1])
        for gone in old:
            gone.close()
        return cluster


def _tree(cluster: Cluster, deadline: Deadline) -> tuple[list[queues.Queue], queues.Use | None]:
    """The queues, and what the whole cluster uses; shares are shares of its total, asked for, too."""
    answer: Object = cluster.ask(SCHEDULER, deadline)
    metrics = cluster.ask(METRICS, deadline)
    tree = schedulers.tree(answer, schedulers.cluster_total(metrics))
    cluster.queue_names = frozenset(queue.name for queue in tree)
    return tree, schedulers.cluster_use(metrics)
