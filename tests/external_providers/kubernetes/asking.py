"""What the tests of the Kubernetes provider share."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from external_providers.base import ExternalResourceRequest, ProviderRecord
from external_providers.kubernetes import KubernetesProvider
from tests.kubernetes.certificates import Authority, Certificate


@dataclass(frozen=True, slots=True)
class Keys:
    """An authority, and whom it vouches for."""

    authority: Authority
    server: Certificate
    client: Certificate

    def server_side(self, folder: Path, *, clients: bool = False) -> ssl.SSLContext:
        """What a server speaks TLS with; `clients`: only with those who show a certificate."""
        chain = folder / "server.pem"
        chain.write_text(self.server.certificate + self.server.key)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=self.authority.certificate)
        context.load_cert_chain(chain)
        if clients:
            context.verify_mode = ssl.CERT_REQUIRED
        return context


def ask(config: Mapping[str, Any], *, timeout: float = 10) -> ExternalResourceRequest:
    """The request that the service makes of a stored configuration."""
    matched = KubernetesProvider().parser.parse(ProviderRecord("kubernetes", "c1", config))
    return ExternalResourceRequest(matched, timeout)
