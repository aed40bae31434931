"""Kubernetes: namespaces as places, with what their quotas allow or the nodes have, and what pods ask for."""

from external_providers.kubernetes.provider import KubernetesProvider

__all__ = ["KubernetesProvider"]
