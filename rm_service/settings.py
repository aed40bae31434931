"""The service's settings: the defaults of config/default.yaml, a file over them, the environment over all."""

import ipaddress
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml
from marshmallow import Schema, ValidationError, fields, validate
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from rm_service.bundled import bundled
from rm_service.domain.declared_rules import MAX_RULE_KEYS as MAX_LIMIT_KEYS
from rm_service.domain.tags import key_fault

PREFIX = "RM_"
NOT_OURS = frozenset({"RM_URL", "RM_TOKEN", "RM_TOKEN_FILE"})
"""Variables of the same prefix that speak to the command line's client."""
TESTS_PREFIX = "RM_TEST_"
OFF = "off"


class SettingsError(ValueError):
    """A setting is unknown or wrong. `source` is the file or "the environment", `faults` say what by name."""

    def __init__(self, source: str, faults: Mapping[str, str]) -> None:
        self.source = source
        self.faults = dict(faults)
        super().__init__("\n".join(f"{source}: {name}: {fault}" for name, fault in faults.items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What `rm-service serve` can be told; docs/settings.md describes each. Durations are seconds."""

    database_url: str
    http_bind: str
    grpc_bind: str
    workers: int
    secret_key_file: str | None
    lock_seconds: int
    device_strategy: str
    sweep_seconds: int
    checkpoint_seconds: int
    node_silence_seconds: int
    engine_silence_seconds: int
    wait_age_seconds: int
    limits_url: str | None
    limits_keys: Sequence[tuple[str, ...]]
    limits_token_file: str | None
    limits_refresh_seconds: int
    limits_stale_seconds: int
    limits_stale_policy: str
    limits_timeout_seconds: int
    si_policies: str | None
    si_resync_seconds: int
    si_echo_seconds: int
    si_pause_seconds: int
    si_stop_seconds: int
    si_when_stopped: str
    si_completing_seconds: int
    grpc_max_message_bytes: int
    http_threads: int
    max_body_bytes: int
    log_level: str
    log_format: str
    auth: str
    rules: Mapping[str, object] = field(repr=False)
    """`conversions` and `label_rules`, as the ledger takes them."""

    @property
    def needs_token(self) -> bool:
        """Whether a request must carry a token: always, never, or unless only this machine can ask."""
        local = is_loopback(self.http_bind) and (self.grpc_bind == OFF or is_loopback(self.grpc_bind))
        return self.auth == "token" or (self.auth == "auto" and not local)

    @property
    def open_bind(self) -> str:
        """The address that others can reach, if one of them is."""
        return self.http_bind if self.grpc_bind == OFF or not is_loopback(self.http_bind) else self.grpc_bind

    def shown(self) -> dict[str, object]:
        """The effective settings for a log: without rules, and without what is secret in addresses."""
        shown = asdict(self)
        del shown["rules"]
        if self.limits_url is not None:
            shown["limits_url"] = urlsplit(self.limits_url)._replace(query="").geturl()
        shown["database_url"] = make_url(self.database_url).render_as_string(hide_password=True)
        return shown


class _WholeNumber(fields.Integer):
    """A whole number, or its text; 5.7 is not 5."""

    def _deserialize(self, value: Any, attr: str | None, data: Any, **kwargs: Any) -> int:  # noqa: ANN401
        if isinstance(value, bool | float):
            raise self.make_error("invalid")
        return super()._deserialize(value, attr, data, **kwargs)


class _KeySets(fields.Field[list[tuple[str, ...]]]):
    """Sets of tag keys: a list of lists, or a text like `user,user+creator+engineType`. Each is sorted."""

    def _deserialize(self, value: object, *_: object, **__: object) -> list[tuple[str, ...]]:
        if isinstance(value, str):
            value = [part.split("+") for part in value.replace(" ", "").split(",")]
        if not isinstance(value, list) or not all(isinstance(keys, list | tuple) for keys in value):
            raise ValidationError("must be a list of lists of tag keys, or like user,user+creator")
        sets = [tuple(sorted(keys)) for keys in map(_checked_keys, value)]
        return list(dict.fromkeys(sets))


def _checked_keys(keys: Sequence[object]) -> list[str]:
    fault = next((f"{key}: {fault}" for key in keys if (fault := key_fault(key))), None)
    if fault or not 1 <= len(keys) <= MAX_LIMIT_KEYS:
        raise ValidationError(fault or f"a set has 1 to {MAX_LIMIT_KEYS} tag keys")
    if len(set(keys)) < len(keys):
        raise ValidationError(f"{'+'.join(map(str, keys))}: a key is there twice")
    return [str(key) for key in keys]


def _check_http_url(text: str) -> None:
    try:
        parts = urlsplit(text)
        whole = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        whole = False
    if not whole or not text.isascii() or not text.isprintable() or " " in text:
        raise ValidationError("must begin with http:// or https:// and name a host")
    if "@" in urlsplit(text).netloc:
        raise ValidationError("holds no user name and password: a token stands in limits_token_file")


def _check_address(text: str) -> None:
    if text != OFF:
        try:
            _check_bind(text)
        except ValidationError as error:
            raise ValidationError(f"must be host:port, or {OFF}") from error


def _check_bind(text: str) -> None:
    host, colon, port = text.rpartition(":")
    if not colon or not host or not port.isascii() or not port.isdecimal() or int(port) > 65535:
        raise ValidationError("must be host:port")


def _check_url(text: str) -> None:
    try:
        url = make_url(text)
    except ArgumentError as error:
        raise ValidationError("is not the address of a database") from error
    if url.get_backend_name() not in {"sqlite", "postgresql"}:
        raise ValidationError("must begin with sqlite:/// or postgresql+psycopg://")
    if url.get_backend_name() == "sqlite" and url.database in {None, "", ":memory:"}:
        raise ValidationError("must name a file: what is held must outlive the process")


def _from(least: int, most: int) -> fields.Integer:
    return _WholeNumber(required=True, validate=validate.Range(least, most))


def _one_of(*choices: str) -> fields.String:
    return fields.String(required=True, validate=validate.OneOf(choices))


_DAY = 86_400
_SCHEMA = Schema.from_dict(
    {
        "database_url": fields.String(required=True, validate=_check_url),
        "http_bind": fields.String(required=True, validate=_check_bind),
        "grpc_bind": fields.String(required=True, validate=_check_address),
        "workers": _from(1, 64),
        "secret_key_file": fields.String(required=True, allow_none=True),
        "lock_seconds": _from(1, 30 * _DAY),
        "device_strategy": _one_of("first_fit", "best_fit", "spread"),
        "sweep_seconds": _from(1, 3600),
        "checkpoint_seconds": _from(10, 30 * _DAY),
        "node_silence_seconds": _from(1, 30 * _DAY),
        "engine_silence_seconds": _from(1, 30 * _DAY),
        "wait_age_seconds": _from(0, 30 * _DAY),
        "limits_url": fields.String(required=True, allow_none=True, validate=_check_http_url),
        "limits_keys": _KeySets(required=True),
        "limits_token_file": fields.String(required=True, allow_none=True),
        "limits_refresh_seconds": _from(1, _DAY),
        "limits_stale_seconds": _from(1, 365 * _DAY),
        "limits_stale_policy": _one_of("deny", "last_known", "ignore"),
        "limits_timeout_seconds": _from(1, 60),
        "si_policies": fields.String(required=True, allow_none=True),
        "si_resync_seconds": _from(1, 30 * _DAY),
        "si_echo_seconds": _from(0, 30 * _DAY),
        "si_pause_seconds": _from(1, 365 * _DAY),
        "si_stop_seconds": _from(1, 365 * _DAY),
        "si_when_stopped": _one_of("keep", "release"),
        "si_completing_seconds": _from(0, 30 * _DAY),
        "grpc_max_message_bytes": _from(1024, 1024 * 2**20),
        "http_threads": _from(1, 1024),
        "max_body_bytes": _from(1024, 256 * 2**20),
        "log_level": _one_of("debug", "info", "warning", "error"),
        "log_format": _one_of("console", "json"),
        "auth": _one_of("auto", "token", "none"),
        "conversions": fields.Raw(required=True, allow_none=True),
        "label_rules": fields.Raw(required=True, allow_none=True),
    },
    name="SettingsSchema",
)()
VARIABLES = tuple(
    f"{PREFIX}{name.upper()}" for name in _SCHEMA.fields if name not in {"conversions", "label_rules"}
)
"""Every environment variable that is a setting."""


def read_settings(file: Path | None, environment: Mapping[str, str]) -> Settings:
    """The effective settings. `file` replaces whole top-level keys of config/default.yaml.

    Raises SettingsError for a key, a variable that begins with RM_, or a value that is none.
    """
    values = _checked(bundled("config/default.yaml"), {})
    if file is not None:
        values = _checked(file, values)
    source = "the environment"
    spoken = {
        name: text
        for name, text in environment.items()
        if name.startswith(PREFIX) and name not in NOT_OURS and not name.startswith(TESTS_PREFIX)
    }
    unknown = sorted(spoken.keys() - set(VARIABLES))
    if unknown:
        raise SettingsError(source, {name: f"unknown; known are {', '.join(VARIABLES)}" for name in unknown})
    given = {name.removeprefix(PREFIX).lower(): text for name, text in spoken.items()}
    _load(given, source, PREFIX)
    values |= given
    loaded = _load(values, source, PREFIX, whole=True)
    _check_together(loaded)
    rules = {name: loaded.pop(name) for name in ("conversions", "label_rules")}
    return Settings(rules=rules, **loaded)


def is_loopback(bind: str) -> bool:
    """Whether `host:port` can be reached from this machine only."""
    host = bind.rpartition(":")[0].removeprefix("[").removesuffix("]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _checked(file: Path, under: dict[str, Any]) -> dict[str, Any]:
    """The file's keys over those given; each is checked here, so that the fault names this file."""
    try:
        document = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeError, yaml.YAMLError) as error:
        raise SettingsError(str(file), {"(the file)": str(error)}) from error
    if document is None:
        document = {}
    if not isinstance(document, dict):
        raise SettingsError(str(file), {"(the file)": "must be a mapping of settings"})
    unknown = [str(name) for name in document if name not in _SCHEMA.fields]
    if unknown:
        known = ", ".join(_SCHEMA.fields)
        raise SettingsError(str(file), dict.fromkeys(unknown, f"unknown; known are {known}"))
    _load(document, str(file), "")
    return {**under, **document}


def _load(values: Mapping[str, Any], source: str, prefix: str, *, whole: bool = False) -> dict[str, Any]:
    try:
        loaded: dict[str, Any] = _SCHEMA.load(dict(values), partial=not whole)
    except ValidationError as error:
        faults: dict[str, str] = {}
        for name, messages in dict(error.messages_dict).items():
            faults[f"{prefix}{name.upper()}" if prefix else name] = " ".join(map(str, messages))
        raise SettingsError(source, faults) from error
    return loaded


def _check_together(values: Mapping[str, Any]) -> None:
    if values["workers"] > 1 and make_url(values["database_url"]).get_backend_name() == "sqlite":
        raise SettingsError("the settings", {"workers": "SQLite serves one process: needs PostgreSQL"})
    if values["si_stop_seconds"] < values["si_pause_seconds"]:
        raise SettingsError("the settings", {"si_stop_seconds": "must not be less than si_pause_seconds"})
    if values["limits_stale_seconds"] < values["limits_refresh_seconds"]:
        fault = "must not be less than limits_refresh_seconds"
        raise SettingsError("the settings", {"limits_stale_seconds": fault})
    folder = values["si_policies"]
    if folder is not None and not (Path(folder) / "default.yaml").is_file():
        raise SettingsError("the settings", {"si_policies": f"{folder} holds no default.yaml"})
