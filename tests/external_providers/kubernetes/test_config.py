"""What a configuration may say, and which field is named when it is wrong."""

import os
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization

from external_providers.base import ProviderConfigError, ProviderRecord
from external_providers.kubernetes import KubernetesProvider, access
from external_providers.kubernetes.access import Access, in_cluster
from external_providers.kubernetes.config import KubernetesConfig, access_of
from tests.external_providers.kubernetes.asking import Keys

SERVER = "https://127.0.0.1:6443"


def faults(config: Mapping[str, Any]) -> dict[str, str]:
    with pytest.raises(ProviderConfigError) as caught:
        KubernetesProvider().parser.parse(ProviderRecord("kubernetes", "c1", config))
    return dict(caught.value.faults)


def way(config: Mapping[str, Any]) -> Access:
    return access_of(KubernetesProvider().parser.parse(ProviderRecord("kubernetes", "c1", config)).params)


def test_the_tag_that_leads_here_is_the_cluster_or_the_name_of_the_record() -> None:
    parse = KubernetesProvider().parser.parse
    assert parse(ProviderRecord("kubernetes", "c1", {"server": SERVER})).labels == {"k8sCluster": "c1"}
    named = {"server": SERVER, "cluster": "prod"}
    assert parse(ProviderRecord("kubernetes", "c1", named)).labels == {"k8sCluster": "prod"}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["kubeconfig", "ca_file", "client_certificate"])
def test_a_pipe_is_no_file_and_nobody_waits_for_its_writer(tmp_path: Path, name: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    config = {} if name == "kubeconfig" else {"server": SERVER, "client_key": "x"}
    assert faults(config | {name: str(pipe)}) == {name: f"{pipe} is no file"}


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({}, "server"),
        ({"server": SERVER, "in_cluster": True}, "server"),
        ({"in_cluster": False}, "server"),
        ({"server": SERVER, "context": "c"}, "context"),
        ({"kubeconfig": "/nowhere", "token": "t"}, "token"),
        ({"kubeconfig": "/nowhere"}, "kubeconfig"),
        ({"server": "ftp://127.0.0.1"}, "server"),
        ({"server": "127.0.0.1:6443"}, "server"),
        ({"server": "https://"}, "server"),
        ({"server": "https://127.0.0.1:99999"}, "server"),
        ({"server": "https://user:secret@127.0.0.1"}, "server"),
        ({"server": "https://127.0.0.1/?token=secret"}, "server"),
        ({"server": "http://127.0.0.1", "token": "secret"}, "server"),
        ({"server": SERVER, "token": "sec\nret"}, "token"),
        ({"server": SERVER, "ca_data": "nonsense"}, "ca_data"),
        ({"server": SERVER, "ca_data": b64encode(b"nonsense").decode()}, "ca_data"),
        (
            {"server": SERVER, "ca_data": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----"},
            "ca_data",
        ),
        ({"server": SERVER, "ca_file": "/nowhere"}, "ca_file"),
        ({"server": SERVER, "ca_file": "/"}, "ca_file"),
        ({"server": SERVER, "ca_file": "/nowhere", "ca_data": "x"}, "ca_data"),
        ({"server": SERVER, "client_key": "-----BEGIN secret"}, "client_certificate"),
        ({"server": SERVER, "client_certificate": "-----BEGIN x"}, "client_key"),
        (
            {"server": SERVER, "client_certificate": "-----BEGIN x", "client_key": "-----BEGIN secret"},
            "client_key",
        ),
        ({"server": SERVER, "namespaces": []}, "namespaces"),
        ({"server": SERVER, "namespaces": ""}, "namespaces"),
        ({"server": SERVER, "namespaces": ["A b"]}, "namespaces"),
        ({"server": SERVER, "namespaces": [{}]}, "namespaces"),
        ({"server": SERVER, "namespaces": 5}, "namespaces"),
        ({"server": SERVER, "namespaces": "team in ("}, "namespaces"),
        ({"server": SERVER, "tolerations": [1]}, "tolerations.0"),
        ({"server": SERVER, "colour": "red"}, "colour"),
    ],
)
def test_what_cannot_be_right_names_the_field_and_no_secret(config: Mapping[str, Any], field: str) -> None:
    found = faults(config)
    assert list(found) == [field]
    assert "secret" not in str(found)


def test_what_is_secret_is_marked() -> None:
    marked = {name for name, field in KubernetesConfig().fields.items() if field.metadata.get("secret")}
    assert marked == {"token", "client_key"}


def test_an_access_does_not_show_its_secrets() -> None:
    assert "secret" not in repr(Access("https://a", token="secret", key="secret"))  # noqa: S106 - an example


def test_certificates_are_given_as_files_as_text_or_in_base64(tmp_path: Path, keys: Keys) -> None:
    pem = keys.authority.certificate
    (tmp_path / "ca").write_text(pem)
    given: list[dict[str, str]] = [
        {"ca_file": str(tmp_path / "ca")},
        {"ca_data": pem},
        {"ca_data": b64encode(pem.encode()).decode()},
    ]
    assert [way({"server": SERVER, **ca}).authorities for ca in given] == [pem, pem, pem]


def test_a_client_certificate_is_given_as_files_or_as_text(tmp_path: Path, keys: Keys) -> None:
    client = keys.client
    (tmp_path / "crt").write_text(client.certificate)
    (tmp_path / "key").write_text(client.key)
    files = {"client_certificate": str(tmp_path / "crt"), "client_key": str(tmp_path / "key")}
    texts = {"client_certificate": client.certificate, "client_key": client.key}
    assert way({"server": SERVER, **files}) == way({"server": SERVER, **texts})
    assert way({"server": SERVER + "/", **texts}).server == SERVER


def test_a_key_with_a_passphrase_is_refused_and_nobody_is_asked_for_it(keys: Keys) -> None:
    key = serialization.load_pem_private_key(keys.client.key.encode(), None)
    locked = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(b"secret"),
    ).decode()
    client = {"client_certificate": keys.client.certificate, "client_key": locked}
    assert list(faults({"server": SERVER, **client})) == ["client_key"]


def test_a_key_of_another_certificate_is_refused(keys: Keys) -> None:
    client = {"client_certificate": keys.client.certificate, "client_key": keys.server.key}
    assert list(faults({"server": SERVER, **client})) == ["client_key"]


def test_in_a_pod_the_service_account_is_used_and_its_token_read_anew(
    tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "ACCOUNT", tmp_path)
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    (tmp_path / "ca.crt").write_text(keys.authority.certificate)
    (tmp_path / "token").write_text("first\n")
    params = KubernetesProvider().parser.parse(ProviderRecord("kubernetes", "c", {"in_cluster": True})).params
    assert access_of(params) == Access("https://10.0.0.1:443", keys.authority.certificate, "first")
    (tmp_path / "token").write_text("second\n")
    assert access_of(params).token == "second"  # noqa: S105 - an example


def test_an_address_of_ipv6_stands_in_brackets(
    tmp_path: Path, keys: Keys, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(access, "ACCOUNT", tmp_path)
    (tmp_path / "ca.crt").write_text(keys.authority.certificate)
    (tmp_path / "token").write_text("t")
    assert in_cluster({"KUBERNETES_SERVICE_HOST": "fd00::1"}).server == "https://[fd00::1]:443"


def test_outside_of_a_pod_in_cluster_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    assert "no pod" in faults({"in_cluster": True})["in_cluster"]
