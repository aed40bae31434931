"""A kubeconfig file, as kubectl reads it, as far as a service can follow it.

What would run a program, ask a person or weaken the check of the server is refused, not passed over.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from external_providers.kubernetes.access import (
    Access,
    AccessError,
    address,
    bearer,
    checked,
    decoded,
    read_text,
)

NAME = "kubeconfig"
REFUSED_OF_USERS = {
    "exec": "runs a program for credentials, which a service does not; give a token or a client certificate",
    "auth-provider": "needs a helper for credentials, which a service has not; give a token",
    "username": "basic authentication is not accepted by Kubernetes any more",
    "password": "basic authentication is not accepted by Kubernetes any more",
    "as": "impersonation is not supported",
    "as-uid": "impersonation is not supported",
    "as-groups": "impersonation is not supported",
    "as-user-extra": "impersonation is not supported",
}
REFUSED_OF_CLUSTERS = {
    "insecure-skip-tls-verify": "the server's certificate is always checked; give certificate-authority",
    "proxy-url": "proxies are not supported",
    "tls-server-name": "another name for the server's certificate is not supported",
}


def read_kubeconfig(path: Path, context: str = "") -> Access:
    """The way that the file's context (its current one unless named) leads. Raises AccessError."""
    document = _document(path)
    name = context or document.get("current-context")
    if not isinstance(name, str) or not name:
        raise AccessError("context", f"{path} has no current-context; name one")
    chosen = _named(document, "contexts", "context", name)
    cluster_name = chosen.get("cluster")
    user_name = chosen.get("user")
    cluster = _named(document, "clusters", "cluster", cluster_name)
    user = _named(document, "users", "user", user_name) if user_name else {}
    _refuse(cluster, REFUSED_OF_CLUSTERS, f"the cluster {cluster_name}")
    _refuse(user, REFUSED_OF_USERS, f"the user {user_name}")
    access = Access(
        server=address(_text(cluster, "server"), NAME),
        authorities=_pem(cluster, "certificate-authority", path.parent),
        token=_token(user, path.parent),
        certificate=_pem(user, "client-certificate", path.parent),
        key=_pem(user, "client-key", path.parent),
    )
    try:
        return checked(access)
    except AccessError as error:
        raise AccessError(NAME, f"context {name}: {error.reason}") from error


def _document(path: Path) -> Mapping[str, Any]:
    content = read_text(path, NAME)
    try:
        document = yaml.safe_load(content)
    except (yaml.YAMLError, ValueError, RecursionError):
        # The parser's error would quote the file, and with it tokens and keys.
        raise AccessError(NAME, f"{path} is no YAML") from None
    if not isinstance(document, Mapping):
        raise AccessError(NAME, f"{path} is no kubeconfig")
    return document


def _named(document: Mapping[str, Any], plural: str, singular: str, name: object) -> Mapping[str, Any]:
    """The entry of a list that bears the name."""
    entries = document.get(plural)
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, Mapping) and entry.get("name") == name:
            found = entry.get(singular)
            return found if isinstance(found, Mapping) else {}
    raise AccessError("context" if plural == "contexts" else NAME, f"{plural} has no entry {name!r}")


def _refuse(found: Mapping[str, Any], refused: Mapping[str, str], where: str) -> None:
    for key, reason in refused.items():
        if found.get(key):
            raise AccessError(NAME, f"{where} has {key}: {reason}")


def _token(user: Mapping[str, Any], folder: Path) -> str:
    """A token file is read in preference to a token, as kubectl does."""
    file = _text(user, "tokenFile")
    return bearer(read_text(folder / file, NAME) if file else _text(user, "token"), NAME)


def _pem(parent: Mapping[str, Any], key: str, folder: Path) -> str:
    """What is embedded is read in preference to a file; a relative path begins at the kubeconfig."""
    data = _text(parent, f"{key}-data")
    if data:
        return decoded(data, NAME)
    file = _text(parent, key)
    return read_text(folder / file, NAME) if file else ""


def _text(parent: Mapping[str, Any], key: str) -> str:
    found = parent.get(key)
    if found is not None and not isinstance(found, str):
        raise AccessError(NAME, f"{key} is no text")
    return found or ""
