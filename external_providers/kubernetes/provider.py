"""The provider: a few lists of the whole cluster, whatever the number of namespaces.

It needs the verb `list` on namespaces, resourcequotas, nodes and pods of the whole cluster.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from external_providers.base import (
    DeniedError,
    ExternalApplication,
    ExternalResourceProvider,
    ExternalResourceProviderParser,
    ExternalResourceRequest,
    Health,
    Place,
    health_by,
)
from external_providers.kubernetes.access import AccessError
from external_providers.kubernetes.api import Api
from external_providers.kubernetes.applications import group
from external_providers.kubernetes.config import RECIPIENTS, KubernetesConfig, access_of
from external_providers.kubernetes.identity import KUBERNETES
from external_providers.kubernetes.nodes import read_node
from external_providers.kubernetes.places import Namespace, make_places, read_namespace
from external_providers.kubernetes.pods import Pod, read_pod
from external_providers.kubernetes.quotas import read_quota

LIVE_PODS = "status.phase!=Succeeded,status.phase!=Failed"


class KubernetesProvider(ExternalResourceProvider):
    """Keeps nothing between two questions: each reads its credentials anew and has its own connection."""

    identity = KUBERNETES
    parser = ExternalResourceProviderParser(KUBERNETES, KubernetesConfig, RECIPIENTS)

    def applications(self, request: ExternalResourceRequest) -> Sequence[ExternalApplication]:
        """What holds something in the namespaces that are places, whether it runs or waits for a node."""
        params = request.provider.params
        with _open(request) as api:
            pods = _pods(api)
            if isinstance(params.get("namespaces"), str):
                names = {namespace.name for namespace in _namespaces(api, params)}
                return group(pod for pod in pods if pod.namespace in names)
        listed = params.get("namespaces")
        return group(pod for pod in pods if listed is None or pod.namespace in listed)

    def places(self, request: ExternalResourceRequest) -> Sequence[Place]:
        """The namespaces that the configuration names, or all of them."""
        with _open(request) as api:
            namespaces = _namespaces(api, request.provider.params)
            quotas = api.each("resourcequotas", "ResourceQuotaList", read_quota)
            tolerated = frozenset(request.provider.params.get("tolerations", ()))
            nodes = api.each("nodes", "NodeList", lambda item: read_node(item, tolerated))
            return make_places(namespaces, quotas, nodes, _pods(api))

    def health(self, request: ExternalResourceRequest) -> Health:
        """Which version answers."""

        def version() -> str:
            with _open(request) as api:
                return f"Kubernetes {api.version()}"

        return health_by(version)


def _open(request: ExternalResourceRequest) -> Api:
    try:
        return Api(access_of(request.provider.params), request.timeout_seconds)
    except AccessError as error:
        raise DeniedError(str(error)) from error


def _pods(api: Api) -> list[Pod]:
    return api.each("pods", "PodList", read_pod, fieldSelector=LIVE_PODS)


def _namespaces(api: Api, params: Mapping[str, Any]) -> list[Namespace]:
    wanted = params.get("namespaces")
    if isinstance(wanted, str):
        return api.each("namespaces", "NamespaceList", read_namespace, labelSelector=wanted)
    found = api.each("namespaces", "NamespaceList", read_namespace)
    return [namespace for namespace in found if wanted is None or namespace.name in wanted]
