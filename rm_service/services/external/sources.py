"""Sources: stored providers made ready to be asked, with their plugin and their secrets in clear."""

from dataclasses import dataclass, field

import structlog

from external_providers.base import (
    ExternalResourceProvider,
    ExternalResourceRequest,
    Identity,
    MatchedProvider,
    ProviderConfigError,
    ProviderRecord,
)
from rm_service.domain.providers import StoredProvider
from rm_service.services.external.keys import Keys, LockedError, NoKeyError
from rm_service.services.external.plugins import Plugins, UnknownProviderTypeError
from rm_service.services.external.secret_fields import Secrets

_log = structlog.get_logger(__name__)


class UnusableProviderError(Exception):
    """A stored provider cannot be asked; the text is for operators and holds no secret."""


@dataclass(frozen=True, slots=True)
class Unparsed:
    """A stored provider with its plug-in and its secrets; nothing has been made of its configuration yet."""

    stored: StoredProvider
    plugin: ExternalResourceProvider
    secrets: Secrets = field(repr=False)

    def asks_as(self, other: "Unparsed") -> bool:
        """Whether both ask the same of the same manager: what one has seen then holds for the other."""
        mine, others = self.stored.config, other.stored.config
        return self.plugin is other.plugin and mine == others and self.secrets == other.secrets

    def parsed(self) -> "Source":
        """Have its plug-in parse it, which may take as long as the plug-in likes. Raises
        UnusableProviderError.
        """
        stored = self.stored
        record = ProviderRecord(stored.type, stored.name, self.secrets.put_into(stored.config))
        try:
            return Source(stored, self.plugin, parse(self.plugin, record, self.secrets), self.secrets)
        except ProviderConfigError as error:
            raise UnusableProviderError(str(error)) from None


@dataclass(frozen=True, slots=True)
class Source:
    """A stored provider that can be asked."""

    stored: StoredProvider
    plugin: ExternalResourceProvider
    matched: MatchedProvider
    secrets: Secrets = field(repr=False)

    @property
    def key(self) -> tuple[str, str]:
        return self.stored.type, self.stored.name

    @property
    def identity(self) -> Identity:
        return self.plugin.identify()

    def request(self, seconds: float) -> ExternalResourceRequest:
        """A question that has to be answered within so many seconds."""
        return ExternalResourceRequest(self.matched, seconds)

    def told(self, error: BaseException) -> str:
        """What an error says, without secrets, on one line of bounded length."""
        said = " ".join(str(error).split()) or type(error).__name__
        return self.secrets.scrubbed(said)[:1000]


def open_secrets(keys: Keys, stored: StoredProvider) -> Secrets:
    """The secrets of a stored provider. Raises NoKeyError, LockedError."""
    if stored.secrets is None:
        return Secrets()
    document = keys.open(stored.key, stored.secrets)
    return Secrets(tuple((tuple(path), value) for path, value in document))


def seal_secrets(keys: Keys, key: str, secrets: Secrets) -> str | None:
    """What is stored of the secrets of the provider `key`; None if it has none. Raises NoKeyError."""
    return keys.seal(key, [[list(path), value] for path, value in secrets.values]) if secrets else None


def parse(plugin: ExternalResourceProvider, record: ProviderRecord, secrets: Secrets) -> MatchedProvider:
    """What the plugin makes of a record. Raises ProviderConfigError, whose reasons hold no secret."""
    try:
        return plugin.parser.parse(record)
    except ProviderConfigError as error:
        faults = {name: secrets.scrubbed(reason) for name, reason in error.faults.items()}
        raise ProviderConfigError(faults) from None
    except Exception as error:  # noqa: BLE001 - a plugin may have any defect
        reason = f"its plugin failed on it: {secrets.scrubbed(repr(error))[:500]}"
        _log.error("provider_parser_failed", type=record.type, name=record.name, reason=reason)
        raise ProviderConfigError({"config": reason}) from None


def unseal(plugins: Plugins, keys: Keys, stored: StoredProvider) -> Unparsed:
    """Find its plug-in and open its secrets; no plug-in is asked. Raises UnusableProviderError."""
    if stored.fault is not None:
        raise UnusableProviderError(stored.fault)
    try:
        return Unparsed(stored, plugins.of(stored.type), open_secrets(keys, stored))
    except (UnknownProviderTypeError, NoKeyError, LockedError) as error:
        raise UnusableProviderError(str(error)) from None
