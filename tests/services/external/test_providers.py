"""Providers are stored whole, once, and without their secrets; what cannot be is refused by its field."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest
from marshmallow import fields
from sqlalchemy import select, text

from external_providers.base import ExternalResourceProviderParser, MatchedProvider, ProviderRecord
from rm_service.domain import operations as op
from rm_service.domain.outcomes import Code, Done, Refused
from rm_service.domain.providers import StalePolicy
from rm_service.domain.selectors import parse_selector
from rm_service.ledger import tables
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.ledger.queries.events import stream_events
from rm_service.services.external.keys import KeyFileError, Keys, LockedError, NoKeyError, new_key
from rm_service.services.external.providers import ProviderFaultError, Providers, ProviderWish
from rm_service.services.external.sources import UnusableProviderError
from tests.services.external.scripted import IDENTITY, ScriptedProvider, ScriptedSchema, plugins_with

SECRET_WORD = "hunter2-and-more"  # noqa: S105 - an example
URL = "https://c1:8088"


def wish(name: str = "c1", labels: str | None = None, **changes: Any) -> ProviderWish:
    config = {"url": URL} | changes.pop("config", {})
    selector = None if labels is None else parse_selector(labels)
    return ProviderWish("scripted", name, config, selector, **changes)


def faults(providers: Providers, wanted: ProviderWish) -> dict[str, str]:
    with pytest.raises(ProviderFaultError) as caught:
        providers.store(wanted)
    assert SECRET_WORD not in str(caught.value)
    return caught.value.faults


def stored_secrets(providers: Providers, name: str = "c1") -> dict[str, Any]:
    stored = providers.read("scripted", name)
    assert stored is not None
    return dict(providers.unseal(stored).parsed().matched.params)


def test_a_provider_is_stored_changed_and_removed(providers: Providers) -> None:
    assert providers.store(wish(protected={"scripted.memory": 5})) == Done(created=True)
    first = providers.read("scripted", "c1")
    assert first is not None
    assert (str(first.labels), first.config, first.secrets) == ("scriptedCluster=c1", {"url": URL}, None)
    assert (first.stale_policy, first.refresh_seconds, first.stale_seconds) == (StalePolicy.DENY, 10, 60)
    assert first.protected == {"scripted.memory": 5}
    changed = wish(labels="scriptedCluster in (a,b)", stale_policy=StalePolicy.IGNORE)
    assert providers.store(changed) == Done(created=False)
    second = providers.read("scripted", "c1")
    assert second is not None
    assert (str(second.labels), second.stale_policy) == ("scriptedCluster in (a,b)", StalePolicy.IGNORE)
    assert (second.created_at, second.version > first.version) == (first.created_at, True)
    assert providers.remove("scripted", "c1") == Done()
    gone = providers.remove("scripted", "c1")
    assert isinstance(gone, Refused)
    assert gone.code is Code.UNKNOWN_PROVIDER
    assert providers.all() == []


RULE: dict[str, Any] = {"name": "scripted", "keys": ["scriptedCluster", "scriptedPlace"], "kind": "capacity"}


def test_labels_that_no_rule_can_lead_to_are_refused(
    providers: Providers, ledger: Ledger, default_rules: dict[str, Any]
) -> None:
    providers.store(wish(labels="user=alice"))  # there may come a rule
    rules = [*default_rules["label_rules"], {**RULE, "external": "scripted"}]
    ledger.submit_whole(op.ChangeRules({**default_rules, "label_rules": rules}))
    for labels in ("user=alice", "scriptedCluster=c1,user", "scriptedCluster=c1,!scriptedPlace"):
        reason = "no label can match: their tags are scriptedCluster, scriptedPlace"
        assert faults(providers, wish(labels=labels)) == {"labels": reason}
    for labels in ("scriptedCluster=c1", "scriptedPlace", "scriptedCluster=c1,user!=alice,!zone"):
        assert isinstance(providers.store(wish(labels=labels)), Done)


def test_every_change_is_another_generation(providers: Providers) -> None:
    for change in (wish(), wish("c2"), wish("c2"), None, wish("c2")):
        before = providers.generation()
        if change is None:
            providers.remove("scripted", "c2")
        else:
            providers.store(change)
        assert providers.generation() != before


def test_the_history_tells_of_changes_without_configurations(providers: Providers, ledger: Ledger) -> None:
    providers.store(wish(config={"password": SECRET_WORD}))
    providers.remove("scripted", "c1")
    with ledger.readers.connect() as connection:
        events = list(stream_events(connection, after=0))
    told = [event for event in events if event.kind.value.startswith("provider.")]
    assert [(each.kind.value, each.subject) for each in told] == [
        ("provider.stored", "scripted/c1"),
        ("provider.removed", "scripted/c1"),
    ]
    assert told[0].detail == {"labels": "scriptedCluster=c1", "stale_policy": "deny"}


def test_secrets_are_kept_encrypted_wherever_they_stand(
    providers: Providers, ledger: Ledger, database_url: str
) -> None:
    config = {
        "password": SECRET_WORD,
        "headers": {"Authorization": SECRET_WORD + "1"},
        "accounts": [{"user": "a"}, {"user": "b", "token": SECRET_WORD + "2"}],
        "admin": {"user": "c", "token": SECRET_WORD + "3"},
    }
    providers.store(wish(config=config))
    stored = providers.read("scripted", "c1")
    assert stored is not None
    assert stored.config == {
        "url": URL,
        "password": "***",
        "headers": {"Authorization": "***"},
        "accounts": [{"user": "a"}, {"user": "b", "token": "***"}],
        "admin": {"user": "c", "token": "***"},
    }
    assert stored_secrets(providers) == {"url": URL, **config}
    with ledger.readers.connect() as connection:
        row = connection.execute(select(tables.external_provider)).one()
        events = connection.execute(text("SELECT detail FROM event")).all()
    assert SECRET_WORD not in f"{row} {events} {stored!r} {providers.unseal(stored).parsed()!r}"


def test_a_mark_keeps_the_secret_that_is_stored(providers: Providers) -> None:
    headers = {"A": SECRET_WORD, "B": SECRET_WORD + "b"}
    providers.store(wish(config={"password": SECRET_WORD, "headers": headers}))
    providers.store(wish(config={"password": "***", "headers": {"A": "another", "B": "***"}}))
    params = stored_secrets(providers)
    assert params["password"] == SECRET_WORD
    assert params["headers"] == {"A": "another", "B": SECRET_WORD + "b"}
    providers.store(wish())
    assert stored_secrets(providers) == {"url": URL}


def test_a_mark_without_a_secret_is_refused(providers: Providers) -> None:
    reason = {"config.password": "there is none to be kept: give it"}
    assert faults(providers, wish(config={"password": "***"})) == reason
    providers.store(wish(config={"headers": {"A": SECRET_WORD}}))
    assert faults(providers, wish(config={"password": "***"})) == reason


def test_a_kept_secret_is_sent_to_nobody_else(providers: Providers) -> None:
    providers.store(wish(config={"password": SECRET_WORD}))
    elsewhere = {"url": "https://evil:8088", "password": "***"}
    reason = "was not given for https://evil:8088: give it again"
    assert faults(providers, wish(config=elsewhere)) == {"config.password": reason}
    plain = {"url": "http://c1:8088", "password": "***"}
    assert "config.password" in faults(providers, wish(config=plain))
    providers.store(wish(config={"url": URL + "/other/path", "password": "***"}))
    assert stored_secrets(providers)["password"] == SECRET_WORD


@pytest.mark.parametrize(
    ("changes", "who"),
    [
        ({"admin": {"user": "db2"}}, "admin.user=db2"),
        ({"accounts": [{"user": "a"}, {"user": "b"}]}, "accounts.user=b"),
        ({"cluster": "elsewhere"}, "cluster=elsewhere"),
        ({"accounts": []}, "a missing accounts.user"),
        ({"url": "https://c1:8088,https://evil"}, "url=https://c1:8088,https://evil"),
        ({"url": "https://evil\\@c1:8088"}, "url=https://evil\\@c1:8088"),
    ],
)
def test_nor_where_any_word_may_say_who_is_asked(
    ledger: Ledger, changes: dict[str, object], who: str
) -> None:
    providers = Providers(ledger, plugins_with(Careless()), Keys([new_key()]))
    before = {"admin": {"user": "db1"}, "accounts": [{"user": "a"}], "password": SECRET_WORD}
    providers.store(wish(config=before))
    kept = before | {"password": "***"}
    assert faults(providers, wish(config=kept | changes)) == {
        "config.password": f"was not given for {who}: give it again"
    }
    providers.store(wish(config=kept | changes | {"password": SECRET_WORD}))


def test_a_plugin_may_say_which_words_those_are(ledger: Ledger) -> None:
    plugin = Careless()
    plugin.parser = _parses_anything(["url", "admin"])  # type: ignore[misc]
    providers = Providers(ledger, plugins_with(plugin), Keys([new_key()]))
    kept = {"admin": {"user": "db1"}, "cluster": "a", "password": "***"}
    providers.store(wish(config=kept | {"password": SECRET_WORD}))
    providers.store(wish(config=kept | {"cluster": "b"}))
    elsewhere = kept | {"admin": {"user": "db2"}}
    assert list(faults(providers, wish(config=elsewhere))) == ["config.password"]


_AnyUrl = ScriptedSchema.from_dict({"url": fields.String()}, name="AnyUrl")


def _parses_anything(recipients: list[str] | None) -> ExternalResourceProviderParser:
    return ExternalResourceProviderParser(IDENTITY, _AnyUrl, recipients)


class Careless(ScriptedProvider):
    """Takes any address, and does not say which of its words are addresses."""

    parser: ClassVar[ExternalResourceProviderParser] = _parses_anything(None)


def test_two_who_change_at_once_keep_the_newest_secret(
    providers: Providers, monkeypatch: pytest.MonkeyPatch
) -> None:
    providers.store(wish(config={"password": SECRET_WORD}))
    read: Callable[..., Any] = Providers.read
    others = [wish(config={"password": "newer-word"})]

    def read_then_another(self: Providers, type_: str, name: str) -> Any:
        before = read(self, type_, name)
        if others:
            Providers.store(self, others.pop())
        return before

    monkeypatch.setattr(Providers, "read", read_then_another)
    providers.store(wish(config={"password": "***"}, refresh_seconds=20))
    monkeypatch.undo()
    assert stored_secrets(providers)["password"] == "newer-word"  # noqa: S105 - an example


def test_without_a_key_a_provider_with_secrets_is_refused_and_one_without_is_not(
    ledger: Ledger,
) -> None:
    providers = Providers(ledger, plugins_with(ScriptedProvider()), Keys([]))
    reason = "secrets are kept under the keys of RM_SECRET_KEY_FILE, which is not set"
    wanted = wish(config={"password": SECRET_WORD, "admin": {"user": "a", "token": SECRET_WORD}})
    assert faults(providers, wanted) == {"config.password": reason, "config.admin.token": reason}
    assert providers.store(wish()) == Done(created=True)


def test_a_key_is_replaced_step_by_step(ledger: Ledger, tmp_path: Path) -> None:
    old, new = new_key(), new_key()

    def with_keys(*keys: str) -> Providers:
        file = tmp_path / "keys"
        file.write_text("# ours\n\n" + "\n".join(keys), encoding="ascii")
        return Providers(ledger, plugins_with(ScriptedProvider()), Keys.of_file(str(file)))

    with_keys(old).store(wish(config={"password": SECRET_WORD}))
    assert stored_secrets(with_keys(old, new))["password"] == SECRET_WORD
    with_keys(new, old).store(wish(config={"password": "***"}))
    assert stored_secrets(with_keys(new))["password"] == SECRET_WORD
    with pytest.raises(UnusableProviderError, match="none of the keys in RM_SECRET_KEY_FILE fits"):
        stored_secrets(with_keys(old))
    assert "none of the keys" in faults(with_keys(old), wish(config={"password": "***"}))["config.password"]
    with_keys(old).store(wish(config={"password": "given-again"}))
    assert stored_secrets(with_keys(old))["password"] == "given-again"  # noqa: S105 - an example


def test_what_was_sealed_for_one_provider_opens_for_no_other() -> None:
    keys = Keys([new_key()])
    sealed = keys.seal("yarn/c1", ["x"])
    assert keys.open("yarn/c1", sealed) == ["x"]
    with pytest.raises(LockedError):
        keys.open("yarn/c2", sealed)
    with pytest.raises(LockedError):
        keys.open("yarn/c1", sealed[:-4] + "AAAA")
    with pytest.raises(NoKeyError):
        Keys([]).open("yarn/c1", sealed)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "No such file or directory"),
        (b"\n# none yet\n", "holds no key; `rm-service secret-key` prints one"),
        (b"hunter2\n", "key 1 is none; `rm-service secret-key` prints one"),
        (b"\xff\n", "is no text"),
    ],
)
def test_a_key_file_that_cannot_be_used_is_named_and_not_shown(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    file = tmp_path / "keys"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(KeyFileError) as caught:
        Keys.of_file(str(file))
    assert str(caught.value) == f"RM_SECRET_KEY_FILE {file}: {reason}"


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        (ProviderWish("alien", "c1", {}), "type"),
        (ProviderWish("scripted", "c1", {}), "config.url"),
        (wish(config={"url": "ftp://c1"}), "config.url"),
        (wish(config={"url": f"http://u:{SECRET_WORD}@c1"}), "config.url"),
        (wish(config={"pasword": SECRET_WORD}), "config.pasword"),
        (wish(config={"accounts": [{"token": SECRET_WORD}]}), "config.accounts.0.user"),
        (wish(config={"password": 5}), "config.password"),
        (wish(config={"headers": [SECRET_WORD]}), "config.headers"),
        (wish(protected={"memory": 1}), "protected.memory"),
    ],
)
def test_what_cannot_be_is_refused_by_its_field(
    providers: Providers, wanted: ProviderWish, field: str
) -> None:
    assert list(faults(providers, wanted)) == [field]
    assert providers.all() == []


def test_a_parser_that_fails_tells_no_secret(ledger: Ledger) -> None:
    class Failing(ExternalResourceProviderParser):
        def parse(self, record: ProviderRecord) -> MatchedProvider:
            raise KeyError(json.dumps(record.config))

    plugin = ScriptedProvider()
    plugin.parser = Failing(plugin.parser.identity, plugin.parser.schema)  # type: ignore[misc]
    providers = Providers(ledger, plugins_with(plugin), Keys([new_key()]))
    (reason,) = faults(providers, wish(config={"password": SECRET_WORD})).values()
    assert reason.startswith("its plugin failed on it: KeyError")


def test_a_tie_is_refused_naming_the_other_one(providers: Providers) -> None:
    providers.store(wish("c1", "scriptedCluster=a"))
    tie = providers.store(wish("c2", "scriptedCluster in (a,b)"))
    assert isinstance(tie, Refused)
    assert (tie.code, tie.field) == (Code.PROVIDER_TIE, "labels")
    assert tie.detail == "scripted/c1 with scriptedCluster=a is as specific, and both could match one label"
    assert providers.store(wish("c2", "scriptedCluster in (b,c)")) == Done(created=True)
    assert providers.store(wish("c2", "scriptedCluster=a,scriptedPlace=root")) == Done()
    assert providers.store(wish("c1", "scriptedCluster=a")) == Done()  # not with itself


def test_two_services_see_each_others_changes(providers: Providers, database_url: str) -> None:
    other_ledger = Ledger(LedgerSettings(database_url))
    other_ledger.open()
    try:
        other = Providers(other_ledger, providers.plugins, providers.keys)
        providers.store(wish(config={"password": SECRET_WORD}))
        before = other.generation()
        assert stored_secrets(other)["password"] == SECRET_WORD
        assert isinstance(other.store(wish("c2", "scriptedCluster in (c1,c2)")), Refused)
        other.remove("scripted", "c1")
        assert providers.all() == []
        assert providers.generation() != before
    finally:
        other_ledger.close()
