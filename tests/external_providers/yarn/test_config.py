"""A cluster's configuration: what is taken, and what is refused by the field's name."""

import importlib.util
from collections.abc import Mapping
from typing import Any

import pytest

from external_providers.base import ProviderConfigError, ProviderRecord
from external_providers.yarn import YarnProvider
from external_providers.yarn import config as module
from external_providers.yarn.config import IDENTITY

GOOD: Mapping[str, Any] = {"addresses": ["http://rm1:8088", "https://rm2:8090/gateway/yarn"]}
WORD = "hunter2"
TICKET = {"principal": "rm@EXAMPLE.ORG", "keytab": "/etc/rm.keytab"}


def parse(**config: Any) -> Any:
    return YarnProvider.parser.parse(ProviderRecord("yarn", "c1", {**GOOD, **config}))


@pytest.fixture
def with_kerberos(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: object())


def test_its_identity_is_that_of_yarn() -> None:
    assert YarnProvider().identify() == IDENTITY
    assert (IDENTITY.type, IDENTITY.cluster_key, IDENTITY.place_key) == ("yarn", "yarnCluster", "yarnQueue")
    assert IDENTITY.dimensions == {"yarn.memory", "yarn.vcore", "yarn.apps"}


def test_addresses_are_enough() -> None:
    matched = parse()
    assert matched.labels == {"yarnCluster": "c1"}
    assert matched.params["connect_timeout_seconds"] == 2
    assert matched.params["verify"] is True


def test_the_cluster_s_tag_may_be_another_than_the_record_s_name() -> None:
    assert parse(cluster="prod").labels == {"yarnCluster": "prod"}


def test_the_password_is_a_secret_and_is_not_in_what_is_shown_of_the_record() -> None:
    assert module.YarnConfig().fields["password"].metadata["secret"]
    assert WORD not in repr(parse(user="u", password=WORD))


@pytest.mark.parametrize(
    ("config", "field"),
    [
        ({"addresses": []}, "addresses"),
        ({"addresses": ["http://a"] * 9}, "addresses"),
        ({"addresses": "http://a"}, "addresses"),
        ({"addresses": ["ftp://a"]}, "addresses.0"),
        ({"addresses": ["http://a", "rm2:8088"]}, "addresses.1"),
        ({"addresses": ["http://"]}, "addresses.0"),
        ({"addresses": ["http://a:port"]}, "addresses.0"),
        ({"addresses": ["http://u:p@a"]}, "addresses.0"),
        ({"addresses": ["http://a?x=1"]}, "addresses.0"),
        ({"cluster": ""}, "cluster"),
        ({"cluster": "a\nb"}, "cluster"),
        ({"user": "u"}, "password"),
        ({"password": "p"}, "user"),
        ({"kerberos": {"principal": "u@R"}}, "kerberos.keytab"),
        ({"kerberos": {**TICKET, "realm": "R"}}, "kerberos.realm"),
        ({"kerberos": TICKET, "user": "u", "password": "p"}, "kerberos"),
        ({"verify": False, "ca_file": "/ca.pem"}, "ca_file"),
        ({"verify": "maybe"}, "verify"),
        ({"connect_timeout_seconds": 0}, "connect_timeout_seconds"),
        ({"connect_timeout_seconds": 61}, "connect_timeout_seconds"),
        ({"hadoopVersion": "2.7"}, "hadoopVersion"),
    ],
)
def test_what_cannot_be_right_is_refused_by_name(
    config: Mapping[str, Any], field: str, with_kerberos: None
) -> None:
    with pytest.raises(ProviderConfigError) as caught:
        parse(**config)
    assert list(caught.value.faults) == [field]


def test_addresses_are_needed() -> None:
    with pytest.raises(ProviderConfigError) as caught:
        YarnProvider.parser.parse(ProviderRecord("yarn", "c1", {}))
    assert list(caught.value.faults) == ["addresses"]


def test_kerberos_is_refused_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        ProviderConfigError, match=r"kerberos: needs the extra: pip install 'rm-service\[kerberos\]'"
    ):
        parse(kerberos=TICKET)


def test_kerberos_is_taken_where_it_is_installed(with_kerberos: None) -> None:
    assert parse(kerberos=TICKET).params["kerberos"] == TICKET
