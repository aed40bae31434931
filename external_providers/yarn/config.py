"""How a YARN cluster is described in a provider's record."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from marshmallow import Schema, ValidationError, fields, validate, validates_schema

from external_providers.base import (
    SECRET,
    ExternalResourceProviderParser,
    Identity,
    MatchedProvider,
    ProviderConfigError,
    ProviderRecord,
)
from external_providers.yarn import kerberos
from external_providers.yarn.queues import APPS, MEMORY, VCORE
from rm_service.domain.tags import value_fault

IDENTITY = Identity("yarn", "yarnCluster", "yarnQueue", frozenset({MEMORY, VCORE, APPS}))
MOST_ADDRESSES = 8


def _check_address(text: str) -> None:
    try:
        parts = urlsplit(text)
        _ = parts.port  # raises for one that is no port
    except ValueError as error:
        raise ValidationError(f"is no URL: {error}") from error
    if parts.scheme not in {"http", "https"} or not parts.hostname:
        raise ValidationError("must be a URL that begins with http:// or https:// and names a host")
    if parts.username is not None or parts.password is not None:
        raise ValidationError("must not hold a user or a password: they have fields of their own")
    if parts.query or parts.fragment:
        raise ValidationError("must end with the path: no ? and no #")


def _check_cluster(text: str) -> None:
    if fault := value_fault(text):
        raise ValidationError(fault)


class KerberosConfig(Schema):
    principal = fields.String(required=True, validate=validate.Length(1, 256))
    """`user@REALM`, as the keytab has it."""
    keytab = fields.String(required=True, validate=validate.Length(1, 4096))
    """A file on the service's machine."""


class YarnConfig(Schema):
    addresses = fields.List(
        fields.String(validate=_check_address), required=True, validate=validate.Length(1, MOST_ADDRESSES)
    )
    """The web addresses of the ResourceManagers: one, or all of those that stand in for each other."""
    cluster = fields.String(validate=[validate.Length(1), _check_cluster])
    """The value of the tag `yarnCluster`; the record's name unless said."""
    user = fields.String(validate=validate.Length(1, 256))
    password = fields.String(metadata=dict(SECRET), validate=validate.Length(1, 4096))
    kerberos = fields.Nested(KerberosConfig)
    ca_file = fields.String(validate=validate.Length(1, 4096))
    """The certificates that https addresses are checked with; the machine's own unless said."""
    verify = fields.Boolean(load_default=True, truthy={True}, falsy={False})
    """false: certificates are not checked at all."""
    connect_timeout_seconds = fields.Float(
        load_default=2.0, validate=validate.Range(0, 60, min_inclusive=False)
    )

    @validates_schema
    def _check_credentials(self, data: Mapping[str, Any], **_: object) -> None:
        for one, other in (("user", "password"), ("password", "user")):
            if one in data and other not in data:
                raise ValidationError(f"is missing: {one} is nothing without it", other)
        if "kerberos" in data and "user" in data:
            raise ValidationError("is one way, user and password another: only one of them", "kerberos")
        if "ca_file" in data and not data["verify"]:
            raise ValidationError("is of no use while verify is false", "ca_file")


class YarnParser(ExternalResourceProviderParser):
    """The schema, and whether this installation can speak Kerberos."""

    def __init__(self) -> None:
        super().__init__(IDENTITY, YarnConfig, ("addresses", "verify", "ca_file"))

    def parse(self, record: ProviderRecord) -> MatchedProvider:
        if not record.config.get("cluster") and (fault := value_fault(record.name)):
            raise ProviderConfigError(
                {"cluster": f"is needed: as a tag the record's name will not do, {fault}"}
            )
        matched = super().parse(record)
        if "kerberos" in matched.params and not kerberos.installed():
            raise ProviderConfigError({"kerberos": f"needs the extra: {kerberos.HOW_TO_INSTALL}"})
        return matched
