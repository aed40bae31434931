"""kubeconfig files: what is followed and what is refused."""

from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
import yaml

from external_providers.kubernetes.access import AccessError
from external_providers.kubernetes.kubeconfig import read_kubeconfig
from tests.external_providers.kubernetes.asking import Keys

SERVER = "https://127.0.0.1:6443"


def encoded(text: str) -> str:
    return b64encode(text.encode()).decode()


def write(folder: Path, user: dict[str, Any], cluster: dict[str, Any] | None = None) -> Path:
    """A file with two contexts: `main`, of the user and cluster, is the current one."""
    path = folder / "config"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "contexts": [
            {"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "ignored"}},
            {"name": "other", "context": {"cluster": "d", "user": ""}},
        ],
        "clusters": [
            {"name": "c", "cluster": {"server": SERVER, **(cluster or {})}},
            {"name": "d", "cluster": {"server": "http://127.0.0.1:8001/"}},
        ],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(document))
    return path


def test_the_current_context_leads_to_cluster_and_user(tmp_path: Path, keys: Keys) -> None:
    ca = {"certificate-authority-data": encoded(keys.authority.certificate)}
    found = read_kubeconfig(write(tmp_path, {"token": "t"}, ca))
    assert (found.server, found.token, found.authorities) == (SERVER, "t", keys.authority.certificate)


def test_another_context_may_be_named(tmp_path: Path) -> None:
    found = read_kubeconfig(write(tmp_path, {"token": "t"}), "other")
    assert (found.server, found.token) == ("http://127.0.0.1:8001", "")


def test_files_are_found_beside_the_kubeconfig(tmp_path: Path, keys: Keys) -> None:
    (tmp_path / "ca").write_text(keys.authority.certificate)
    (tmp_path / "crt").write_text(keys.client.certificate)
    (tmp_path / "key").write_text(keys.client.key)
    (tmp_path / "token").write_text("from the file".replace(" ", "-"))
    user = {
        "client-certificate": "crt",
        "client-key": str(tmp_path / "key"),
        "tokenFile": "token",
        "token": "old",
    }
    found = read_kubeconfig(write(tmp_path, user, {"certificate-authority": "ca"}))
    assert found.authorities == keys.authority.certificate
    assert (found.certificate, found.key) == (keys.client.certificate, keys.client.key)
    assert found.token == "from-the-file"  # noqa: S105 - an example


def test_embedded_certificates_of_a_client_are_used(tmp_path: Path, keys: Keys) -> None:
    user = {
        "client-certificate-data": encoded(keys.client.certificate),
        "client-key-data": encoded(keys.client.key),
        "client-key": "/nowhere",
    }
    assert read_kubeconfig(write(tmp_path, user)).key == keys.client.key


@pytest.mark.parametrize(
    ("user", "reason"),
    [
        ({"exec": {"command": "aws"}}, "the user u has exec: runs a program"),
        ({"auth-provider": {"name": "gcp"}}, "has auth-provider"),
        ({"username": "u", "password": "secret"}, "basic authentication"),
        ({"token": "t", "as": "admin"}, "impersonation"),
        ({"tokenFile": "/nowhere"}, "/nowhere cannot be read"),
        ({"client-certificate-data": "###"}, "neither PEM"),
        ({"token": 5}, "token is no text"),
        ({"token": "sec ret"}, "characters that no token has"),
    ],
)
def test_credentials_that_a_service_cannot_use_are_refused(
    tmp_path: Path, user: dict[str, Any], reason: str
) -> None:
    with pytest.raises(AccessError) as caught:
        read_kubeconfig(write(tmp_path, user))
    assert caught.value.field == "kubeconfig"
    assert reason in caught.value.reason
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    ("cluster", "reason"),
    [
        ({"insecure-skip-tls-verify": True}, "always checked"),
        ({"proxy-url": "http://127.0.0.1"}, "proxies"),
        ({"tls-server-name": "other"}, "another name"),
        ({"server": "unix:/x"}, "http"),
        ({"server": None}, "http"),
        ({"server": "http://127.0.0.1"}, "must be https"),
    ],
)
def test_clusters_that_cannot_be_trusted_are_refused(
    tmp_path: Path, cluster: dict[str, Any], reason: str
) -> None:
    with pytest.raises(AccessError, match=reason):
        read_kubeconfig(write(tmp_path, {"token": "t"}, cluster))


@pytest.mark.parametrize(
    ("content", "field"),
    [
        ("", "kubeconfig"),
        ("[1]", "kubeconfig"),
        ("a: [", "kubeconfig"),
        ("a: 2001-99-99", "kubeconfig"),
        ("{}", "context"),
        ("current-context: x", "context"),
        ("current-context: x\ncontexts: 5", "context"),
        ("current-context: x\ncontexts: [{name: x, context: {cluster: y}}]", "kubeconfig"),
    ],
)
def test_what_is_no_kubeconfig_is_refused(tmp_path: Path, content: str, field: str) -> None:
    path = tmp_path / "config"
    path.write_text(content)
    with pytest.raises(AccessError) as caught:
        read_kubeconfig(path)
    assert caught.value.field == field


@pytest.mark.parametrize("content", [b"token: [secret", b"token: secret\xff"], ids=["no YAML", "no text"])
def test_an_error_carries_nothing_of_the_file(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "config"
    path.write_bytes(content)
    with pytest.raises(AccessError) as caught:
        read_kubeconfig(path)
    assert caught.value.__suppress_context__
    assert "secret" not in f"{caught.value!r}"


def test_a_giant_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_bytes(b"#" * (1024 * 1024 + 1))
    with pytest.raises(AccessError, match="longer"):
        read_kubeconfig(path)
