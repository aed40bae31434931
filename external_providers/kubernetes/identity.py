"""What this provider is called, what it counts, and how Kubernetes spells that."""

from external_providers.base import Identity

MEMORY = "k8s.memory"
"""Bytes."""
VCORE = "k8s.vcore"
"""Milli-cores."""
PODS = "k8s.pods"

KUBERNETES = Identity(
    type="kubernetes",
    cluster_key="k8sCluster",
    place_key="k8sNamespace",
    dimensions=frozenset({MEMORY, VCORE, PODS}),
)

REQUESTED = {"memory": MEMORY, "cpu": VCORE}
"""What a container requests, by the dimension that it counts as. A pod is one of `k8s.pods` by itself."""

ALLOCATABLE = REQUESTED | {"pods": PODS}
"""What a node offers."""
