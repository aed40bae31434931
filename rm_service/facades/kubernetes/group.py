"""What the API group, its version and its one kind of object are called."""

GROUP = "resourceclass.rm"
VERSION = "v1alpha1"
GROUP_VERSION = f"{GROUP}/{VERSION}"
KIND = "ResourceClass"
LIST_KIND = "ResourceClassList"
PLURAL = "resourceclasses"
SINGULAR = "resourceclass"
SHORT_NAME = "rc"
VERBS = ("create", "delete", "get", "list", "watch")

GROUP_PATH = f"/apis/{GROUP}"
VERSION_PATH = f"/apis/{GROUP_VERSION}"
CLASSES_PATH = f"{VERSION_PATH}/{PLURAL}"

META_GROUP = "meta.k8s.io"
META_VERSION = f"{META_GROUP}/v1"
"""Where Kubernetes keeps the documents that are about other documents, like tables."""

CORE_EVENTS_PATH = "/api/v1/events"
"""Where `kubectl describe` looks for what happened to an object; also a path of the native API."""
