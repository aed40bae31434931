"""Discovery: which groups, versions and kinds of objects there are, and what can be done with them."""

from rm_service import __version__
from rm_service.facades.kubernetes.group import (
    GROUP,
    GROUP_VERSION,
    KIND,
    PLURAL,
    SHORT_NAME,
    SINGULAR,
    VERBS,
    VERSION,
)
from rm_service.facades.kubernetes.media_types import DISCOVERY_GROUP
from rm_service.facades.kubernetes.objects import Document

KUBERNETES = (1, 34)
"""The version of Kubernetes whose manners this API has."""

_VERSIONS = {"groupVersion": GROUP_VERSION, "version": VERSION}


def version() -> Document:
    """What `kubectl version` shows of the server."""
    major, minor = KUBERNETES
    return {
        "major": str(major),
        "minor": str(minor),
        "gitVersion": f"v{major}.{minor}.0+rm-service-{__version__}",
        "gitCommit": "",
        "gitTreeState": "",
        "buildDate": "",
        "goVersion": "",
        "compiler": "",
        "platform": "",
    }


def core_versions() -> Document:
    """`/api`: there is nothing of Kubernetes' own."""
    return {"kind": "APIVersions", "apiVersion": "v1", "versions": [], "serverAddressByClientCIDRs": []}


def groups() -> Document:
    """`/apis`."""
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [_group()]}


def group() -> Document:
    """`/apis/resourceclass.rm`."""
    return {"kind": "APIGroup", "apiVersion": "v1", **_group()}


def resources() -> Document:
    """`/apis/resourceclass.rm/v1alpha1`."""
    resource = {
        "name": PLURAL,
        "singularName": SINGULAR,
        "namespaced": False,
        "kind": KIND,
        "verbs": list(VERBS),
        "shortNames": [SHORT_NAME],
    }
    return {
        "kind": "APIResourceList",
        "apiVersion": "v1",
        "groupVersion": GROUP_VERSION,
        "resources": [resource],
    }


def aggregated(form: str, *, core: bool) -> Document:
    """All groups in one document, in that version of its form; of the core groups there are none."""
    resource = {
        "resource": PLURAL,
        "responseKind": {"group": GROUP, "version": VERSION, "kind": KIND},
        "scope": "Cluster",
        "singularResource": SINGULAR,
        "verbs": list(VERBS),
        "shortNames": [SHORT_NAME],
    }
    versions = [{"version": VERSION, "freshness": "Current", "resources": [resource]}]
    items: list[Document] = [] if core else [{"metadata": {"name": GROUP}, "versions": versions}]
    return {
        "kind": "APIGroupDiscoveryList",
        "apiVersion": f"{DISCOVERY_GROUP}/{form}",
        "metadata": {},
        "items": items,
    }


def aggregated_type(form: str) -> str:
    """The media type of `aggregated`."""
    return f"application/json;g={DISCOVERY_GROUP};v={form};as=APIGroupDiscoveryList"


def no_events() -> Document:
    """What happened to objects is told by the native API; `kubectl describe` finds none."""
    return {"kind": "EventList", "apiVersion": "v1", "metadata": {"resourceVersion": ""}, "items": []}


def _group() -> Document:
    return {"name": GROUP, "versions": [_VERSIONS], "preferredVersion": _VERSIONS}
