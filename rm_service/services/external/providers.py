"""The stored providers: set, listed, taken away. Their secrets go in, and never come out again."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from external_providers.base import ExternalResourceProvider, Identity, ProviderConfigError, ProviderRecord
from rm_service.domain import operations as op
from rm_service.domain.amounts import Amounts
from rm_service.domain.label_rules import LabelRule
from rm_service.domain.outcomes import Outcome, Refused
from rm_service.domain.providers import StalePolicy, StoredProvider, provider_key
from rm_service.domain.selectors import Operator, Requirement, Selector
from rm_service.domain.tags import Tags
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.providers import Generation, read_generation, read_provider, read_providers
from rm_service.services.external.keys import Keys, LockedError, NoKeyError
from rm_service.services.external.plugins import Plugins, UnknownProviderTypeError
from rm_service.services.external.secret_fields import (
    HIDDEN,
    Path,
    Secrets,
    elsewhere,
    open_passwords,
    path_text,
    recipients_of,
    take_out,
)
from rm_service.services.external.sources import Unparsed, open_secrets, parse, seal_secrets, unseal


class ProviderFaultError(ValueError):
    """A provider cannot be stored as it is; `faults` has a reason by field, and holds no secret."""

    def __init__(self, faults: Mapping[str, str]) -> None:
        self.faults = dict(faults)
        super().__init__("; ".join(f"{name}: {reason}" for name, reason in self.faults.items()))


@dataclass(frozen=True, slots=True)
class ProviderWish:
    """A provider as somebody wants it."""

    type: str
    name: str
    config: Mapping[str, Any] = field(repr=False)
    """With its secrets in clear; the mark `***` keeps the one that is stored."""
    labels: Selector | None = None
    """None: what the plugin says that leads there."""
    stale_policy: StalePolicy = StalePolicy.DENY
    refresh_seconds: int = 10
    stale_seconds: int = 60
    protected: Amounts = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Providers:
    """The providers of one ledger."""

    ledger: Ledger
    plugins: Plugins
    keys: Keys

    def store(self, wish: ProviderWish) -> Outcome:
        """Store a provider, or what changed of it. Raises ProviderFaultError."""
        while True:
            before = self.read(wish.type, wish.name)
            outcome = self.ledger.submit_whole(self._operation(wish, before))
            if isinstance(outcome, Refused) or not outcome.repeated:
                return outcome
            # Somebody else was quicker: a secret that is kept must be the newest one.

    def remove(self, type_: str, name: str) -> Outcome:
        """Take a provider away."""
        return self.ledger.submit_whole(op.RemoveProvider(type_, name))

    def read(self, type_: str, name: str) -> StoredProvider | None:
        """One provider, None if there is none of this name."""
        with self.ledger.readers.connect() as connection:
            return read_provider(connection, type_, name)

    def all(self) -> list[StoredProvider]:
        """All of them, by type and name."""
        with self.ledger.readers.connect() as connection:
            return read_providers(connection)

    def generation(self) -> Generation:
        """Another one whenever anything has changed."""
        with self.ledger.readers.connect() as connection:
            return read_generation(connection)

    def unseal(self, stored: StoredProvider) -> Unparsed:
        """A stored provider, ready to be parsed. Raises UnusableProviderError."""
        return unseal(self.plugins, self.keys, stored)

    def identity_of(self, type_: str) -> Identity | None:
        """What the plugin of a type is; None if there is none."""
        plugin = self.plugins.by_type.get(type_)
        return None if plugin is None else plugin.identify()

    def _operation(self, wish: ProviderWish, before: StoredProvider | None) -> op.StoreProvider:
        plugin = self._plugin(wish.type)
        marked, given = take_out(plugin.parser.schema(), wish.config)
        secrets = Secrets(self._kept(plugin, wish, before, given))
        record = ProviderRecord(wish.type, wish.name, secrets.put_into(wish.config))
        try:
            matched = parse(plugin, record, secrets)
        except ProviderConfigError as error:
            raise ProviderFaultError(
                {_below_config(name): said for name, said in error.faults.items()}
            ) from None
        shown = list(open_passwords(marked))
        if shown:
            raise ProviderFaultError({_at(path): "a password in an address would be shown" for path in shown})
        _check_protected(plugin, wish.protected)
        labels = _selector_of(matched.labels) if wish.labels is None else wish.labels
        _check_labels(labels, [rule for rule in self._rules() if rule.external == wish.type])
        return op.StoreProvider(
            type=wish.type,
            name=wish.name,
            labels=labels,
            config=marked,
            secrets=self._sealed(provider_key(wish.type, wish.name), secrets),
            stale_policy=wish.stale_policy,
            refresh_seconds=wish.refresh_seconds,
            stale_seconds=wish.stale_seconds,
            protected=wish.protected,
            based_on=None if before is None else before.version,
        )

    def _rules(self) -> Sequence[LabelRule]:
        return self.ledger.book().rules.external

    def _plugin(self, type_: str) -> ExternalResourceProvider:
        try:
            return self.plugins.of(type_)
        except UnknownProviderTypeError as error:
            raise ProviderFaultError({"type": str(error)}) from error

    def _kept(
        self,
        plugin: ExternalResourceProvider,
        wish: ProviderWish,
        before: StoredProvider | None,
        given: Secrets,
    ) -> tuple[tuple[Path, Any], ...]:
        """The secrets, with those that are stored where the mark stands for them.

        One is kept only for whom it was given: else whoever may change an address could have it sent there.
        """
        marked = [path for path, value in given.values if value == HIDDEN]
        if not marked:
            return given.values
        stored: dict[Path, Any] = {}
        if before is not None:
            try:
                stored = dict(open_secrets(self.keys, before).values)
            except (NoKeyError, LockedError) as error:
                raise ProviderFaultError({_at(path): str(error) for path in marked}) from None
        unknown = [path for path in marked if path not in stored]
        if unknown:
            raise ProviderFaultError({_at(path): "there is none to be kept: give it" for path in unknown})
        keys = plugin.parser.recipients
        known = recipients_of({} if before is None else before.config, stored, keys)
        others = elsewhere(known, recipients_of(wish.config, [path for path, _ in given.values], keys))
        if others:
            reason = f"was not given for {', '.join(others)}: give it again"
            raise ProviderFaultError({_at(path): reason for path in marked})
        return tuple((path, stored[path] if value == HIDDEN else value) for path, value in given.values)

    def _sealed(self, key: str, secrets: Secrets) -> str | None:
        try:
            return seal_secrets(self.keys, key, secrets)
        except NoKeyError as error:
            raise ProviderFaultError({_at(path): str(error) for path, _ in secrets.values}) from None


def _selector_of(tags: Tags) -> Selector:
    return Selector(tuple(sorted(Requirement(key, Operator.IN, (value,)) for key, value in tags.items())))


def _check_labels(labels: Selector, rules: Sequence[LabelRule]) -> None:
    """Refuse what fits no label of these rules. Where there are none yet nothing can be said."""
    if rules and not any(_fits(labels, rule.keys) for rule in rules):
        keys = "; ".join(", ".join(sorted(rule.keys)) for rule in rules)
        raise ProviderFaultError({"labels": f"no label can match: their tags are {keys}"})


def _fits(labels: Selector, keys: Collection[str]) -> bool:
    """Whether it can accept tags with just these keys."""
    return all(
        each.operator is not Operator.MISSING if each.key in keys else each.matches({})
        for each in labels.requirements
    )


def _check_protected(plugin: ExternalResourceProvider, protected: Amounts) -> None:
    counted = plugin.identify().dimensions
    unknown = [name for name in protected if counted and name not in counted]
    if unknown:
        known = ", ".join(sorted(counted))
        raise ProviderFaultError({f"protected.{name}": f"is none of {known}" for name in unknown})


def _at(path: Path) -> str:
    return f"config.{path_text(path)}"


def _below_config(name: str) -> str:
    name = name.removesuffix("._schema").removesuffix("_schema")
    return f"config.{name}" if name not in {"", "config"} else "config"
