"""A manager on loopback that answers JSON, and other things, by the path that it is asked for."""

import json
import ssl
from datetime import UTC, datetime, timedelta
from email.message import Message
from ipaddress import ip_address
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from tests.external_providers.loopback import LoopbackHandler, LoopbackServer


class Tls:
    """A certificate for 127.0.0.1 that only itself vouches for."""

    def __init__(self, folder: Path) -> None:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
        now = datetime.now(UTC)
        certificate = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(days=1))
            .not_valid_after(now + timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(
                x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False
            )
            .sign(key, hashes.SHA256())
        )
        self.ca_file = str(folder / "ca.pem")
        self._both = folder / "both.pem"
        pem = certificate.public_bytes(serialization.Encoding.PEM)
        Path(self.ca_file).write_bytes(pem)
        self._both.write_bytes(
            pem
            + key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._both)
        return context


class JsonServer(LoopbackServer):
    """Answers while it is entered. What it answers may be changed at any time."""

    def __init__(self, tls: Tls | None = None) -> None:
        self.answers: dict[str, Any] = {}
        self.redirects: dict[str, str] = {}
        self.raw: dict[str, bytes] = {}
        """Sent as they are, then the line is closed."""
        self.drip: dict[str, bytes] = {}
        """Sent as they are, then a blank now and then, without end."""
        self.asked: list[str] = []
        self.headers = Message()
        """Those of the last question."""
        super().__init__(_Handler, None if tls is None else tls.context())


class _Handler(LoopbackHandler):
    desk: JsonServer

    def answer(self) -> None:
        desk, path = self.desk, self.path.partition("?")[0]
        desk.asked.append(self.path)
        desk.headers = self.headers
        if path in desk.raw or path in desk.drip:
            self.wfile.write(desk.raw.get(path) or desk.drip[path])
            if path in desk.drip:
                self.drip()
        elif path in desk.redirects:
            self.send_response(302)
            self.send_header("Location", desk.redirects[path])
            self.end_headers()
        else:
            self.send_response(200 if path in desk.answers else 404)
            self.end_headers()
            self.wfile.write(json.dumps(desk.answers.get(path)).encode())
