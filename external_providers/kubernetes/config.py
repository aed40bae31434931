"""The configuration of a cluster: which, how to reach it, and which of its namespaces are places."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from marshmallow import Schema, ValidationError, fields, validates_schema
from marshmallow.validate import Length

from external_providers.base import SECRET
from external_providers.kubernetes.access import Access, AccessError, direct, in_cluster
from external_providers.kubernetes.kubeconfig import read_kubeconfig
from external_providers.kubernetes.selectors import selector_fault

WAYS = ("kubeconfig", "in_cluster", "server")
OF_SERVER = ("token", "client_certificate", "client_key", "ca_file", "ca_data")
RECIPIENTS = (*WAYS, "context", "ca_file", "ca_data")
"""What decides to whom a token or a certificate is shown."""
MAX_NAMESPACES = 10_000
MAX_SELECTOR = 2_000

_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")

_NAMED = Length(min=1, max=253)
_PATH = Length(min=1, max=4096)
_DATA = Length(min=1, max=1024 * 1024)


class Namespaces(fields.Field[str | list[str]]):
    """Names of namespaces, or a label selector as kubectl takes it."""

    def _deserialize(self, value: Any, *_: object, **__: object) -> str | list[str]:  # noqa: ANN401
        if isinstance(value, str) and 0 < len(value.strip()) <= MAX_SELECTOR and value.isprintable():
            fault = selector_fault(value)
            if fault is not None:
                raise ValidationError(f"Not a label selector: it {fault}.")
            return value.strip()
        if not isinstance(value, list) or not 0 < len(value) <= MAX_NAMESPACES:
            raise ValidationError("Must be a list of names, or a label selector.")
        for name in value:
            if not isinstance(name, str) or not _LABEL.fullmatch(name):
                raise ValidationError(f"Not the name of a namespace: {str(name)[:80]!r}.")
        return sorted(set(value))


class KubernetesConfig(Schema):
    """What a record of this provider holds. Certificates and keys are PEM, or paths of files with PEM."""

    cluster = fields.String(validate=_NAMED)
    kubeconfig = fields.String(validate=_PATH)
    context = fields.String(validate=_NAMED)
    in_cluster = fields.Boolean()
    server = fields.String(validate=_PATH)
    token = fields.String(validate=_DATA, metadata=SECRET)
    client_certificate = fields.String(validate=_DATA)
    client_key = fields.String(validate=_DATA, metadata=SECRET)
    ca_file = fields.String(validate=_PATH)
    ca_data = fields.String(validate=_DATA)
    namespaces = Namespaces()
    tolerations = fields.List(fields.String(validate=_NAMED), validate=Length(max=100))

    @validates_schema(skip_on_field_errors=True)
    def check(self, data: Mapping[str, Any], **_: object) -> None:
        """One way in, with nothing of another, and what can be read here and now."""
        ways = [way for way in WAYS if data.get(way)]
        if len(ways) != 1:
            reason = "Give one of kubeconfig, in_cluster: true, server."
            raise ValidationError(reason, ways[-1] if ways else "server")
        strange = [name for name in OF_SERVER if name in data and ways != ["server"]]
        if "context" in data and ways != ["kubeconfig"]:
            strange.append("context")
        if strange:
            raise ValidationError({name: [f"Does not go with {ways[0]}."] for name in strange})
        if "ca_file" in data and "ca_data" in data:
            raise ValidationError("Give ca_file or ca_data, not both.", "ca_data")
        try:
            access_of(data)
        except AccessError as error:
            raise ValidationError(error.reason, error.field) from error


def access_of(params: Mapping[str, Any]) -> Access:
    """The way that a checked configuration names, with files as they are now. Raises AccessError."""
    if params.get("in_cluster"):
        return in_cluster()
    if "kubeconfig" in params:
        return read_kubeconfig(Path(params["kubeconfig"]), str(params.get("context", "")))
    return direct(params)
