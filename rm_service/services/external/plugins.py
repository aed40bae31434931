"""Plug-ins of external resource managers: found by their entry points, one instance for each type.

A plug-in that cannot be used is reported by name and leaves the others alone. A type has one plug-in:

- another distribution's goes before ours, so that ours can be replaced by installing another;
- of two other distributions' none is used: which one should not be a matter of chance;
- one that takes the place of ours and cannot be used is not replaced by ours again without a word.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Self

import structlog

from external_providers.base import ENTRY_POINTS, ExternalResourceProvider, Identity
from rm_service.domain.tags import key_fault

OUR_DISTRIBUTION = "rm-service"

_log = structlog.get_logger(__name__)


class UnknownProviderTypeError(LookupError):
    """No plug-in of this type can be used. `fault` says why, if one was found at all."""

    def __init__(self, type_: str, known: Iterable[str], fault: str = "") -> None:
        self.type = type_
        self.known = tuple(known)
        self.fault = fault
        reason = fault or f"there are {', '.join(self.known) or 'none'}"
        super().__init__(f"no external resource manager of type {type_!r} is known: {reason}")


@dataclass(frozen=True, slots=True)
class PluginFault:
    """A plug-in that was found and is not used."""

    type: str
    """The name of its entry point."""
    distributions: tuple[str, ...]
    """Those that bring it, with their versions."""
    reason: str


class UnusablePluginError(Exception):
    """Why a plug-in is not used."""


class Plugins:
    """The plug-ins in use, by type. Immutable after it was made."""

    def __init__(self, entries: Iterable[EntryPoint]) -> None:
        faults: list[PluginFault] = []
        used: dict[str, ExternalResourceProvider] = {}
        for type_, rivals in _by_type(entries).items():
            try:
                plugin = _load(_chosen(rivals))
                _check_apart(plugin.identify(), used)
            except UnusablePluginError as error:
                fault = PluginFault(type_, tuple(_distribution(entry) for entry in rivals), str(error))
                _log.error(
                    "provider_plugin_unusable", type=type_, by=fault.distributions, reason=fault.reason
                )
                faults.append(fault)
            else:
                used[type_] = plugin
        self._used = used
        self.faults = tuple(faults)
        """Those that cannot be used, with reasons, for operators."""

    @classmethod
    def discover(cls) -> Self:
        """What is installed. Reads the entry points; call it once a process."""
        return cls(entry_points(group=ENTRY_POINTS))

    @property
    def by_type(self) -> Mapping[str, ExternalResourceProvider]:
        """All in use."""
        return MappingProxyType(self._used)

    def of(self, type_: str) -> ExternalResourceProvider:
        """The plug-in of a type. Raises UnknownProviderTypeError."""
        plugin = self._used.get(type_)
        if plugin is None:
            fault = next((fault.reason for fault in self.faults if fault.type == type_), "")
            raise UnknownProviderTypeError(type_, sorted(self._used), fault)
        return plugin

    def close(self) -> None:
        """Close each; one that fails does not keep the others open."""
        for type_, plugin in self._used.items():
            try:
                plugin.close()
            except Exception as error:  # noqa: BLE001 - whatever a plug-in raises is its own
                _log.warning("provider_plugin_not_closed", type=type_, reason=_told(error))


def _by_type(entries: Iterable[EntryPoint]) -> dict[str, list[EntryPoint]]:
    """Our own types first: a stranger that clashes with one of them is the one that is left out."""
    types: dict[str, list[EntryPoint]] = {}
    for entry in sorted(entries, key=lambda entry: (not _is_ours(entry), entry.name, _distribution(entry))):
        types.setdefault(entry.name, []).append(entry)
    return types


def _chosen(rivals: list[EntryPoint]) -> EntryPoint:
    others = [entry for entry in rivals if not _is_ours(entry)]
    if len(others) > 1:
        raise UnusablePluginError(f"several distributions bring it: {', '.join(map(_distribution, others))}")
    if not others:
        return rivals[0]
    if len(rivals) > 1:
        _log.info("provider_plugin_replaced", type=others[0].name, by=_distribution(others[0]))
    return others[0]


def _load(entry: EntryPoint) -> ExternalResourceProvider:
    try:
        plugin = entry.load()()
    except (Exception, SystemExit) as error:
        raise UnusablePluginError(f"{entry.value} cannot be loaded: {_told(error)}") from error
    if not isinstance(plugin, ExternalResourceProvider):
        raise UnusablePluginError(f"{entry.value} makes no ExternalResourceProvider")
    try:
        identity = plugin.identify()
        parsers = plugin.parser.identity
    except Exception as error:
        raise UnusablePluginError(f"{entry.value} does not say what it is: {_told(error)}") from error
    _check_identity(entry, identity, parsers)
    return plugin


def _check_identity(entry: EntryPoint, identity: object, parsers: object) -> None:
    if not isinstance(identity, Identity):
        raise UnusablePluginError(f"{entry.value} does not say what it is: {identity!r} is no Identity")
    if identity.type != entry.name:
        raise UnusablePluginError(f"it says that its type is {identity.type!r}, not the entry point's name")
    if identity != parsers:
        raise UnusablePluginError("its parser has another identity")
    for key in (identity.cluster_key, identity.place_key):
        if fault := key_fault(key):
            raise UnusablePluginError(f"{key!r} cannot be the key of a tag: {fault}")
    if identity.cluster_key == identity.place_key:
        raise UnusablePluginError(f"{identity.cluster_key!r} cannot name both the cluster and the place")


def _check_apart(identity: Identity, used: Mapping[str, ExternalResourceProvider]) -> None:
    """No two types may count in one dimension: whose would an amount be?"""
    for type_, other in used.items():
        if common := identity.dimensions & other.identify().dimensions:
            raise UnusablePluginError(f"the type {type_!r} counts {', '.join(sorted(common))} already")


def _is_ours(entry: EntryPoint) -> bool:
    return entry.dist is not None and entry.dist.name == OUR_DISTRIBUTION


def _distribution(entry: EntryPoint) -> str:
    return f"{entry.dist.name} {entry.dist.version}" if entry.dist else "an unknown distribution"


def _told(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".rstrip(": ")
