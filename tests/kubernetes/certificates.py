"""Certificates for a server and its clients on 127.0.0.1, by an authority of the test's own."""

import datetime as dt
import ipaddress
from dataclasses import dataclass

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BEGIN = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
END = dt.datetime(2120, 1, 1, tzinfo=dt.UTC)


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate and its key, as PEM."""

    certificate: str
    key: str


class Authority:
    """Vouches for whom it made a certificate."""

    def __init__(self, name: str = "authority of a test") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        certificate = (
            _builder(self._name, self._name, self._key)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.certificate = certificate.public_bytes(serialization.Encoding.PEM).decode()

    def server(self) -> Certificate:
        """For whoever listens on 127.0.0.1."""
        address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
        return self._issue([(NameOID.COMMON_NAME, "127.0.0.1")], ExtendedKeyUsageOID.SERVER_AUTH, address)

    def client(self, user: str, group: str = "testers") -> Certificate:
        """For a user and his group, as Kubernetes reads them."""
        names = [(NameOID.ORGANIZATION_NAME, group), (NameOID.COMMON_NAME, user)]
        return self._issue(names, ExtendedKeyUsageOID.CLIENT_AUTH)

    def _issue(
        self,
        names: list[tuple[x509.ObjectIdentifier, str]],
        use: x509.ObjectIdentifier,
        *address: x509.IPAddress,
    ) -> Certificate:
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(kind, value) for kind, value in names])
        builder = _builder(name, self._name, key).add_extension(x509.ExtendedKeyUsage([use]), critical=False)
        if address:
            builder = builder.add_extension(x509.SubjectAlternativeName(address), critical=False)
        certificate = builder.sign(self._key, hashes.SHA256())
        return Certificate(
            certificate.public_bytes(serialization.Encoding.PEM).decode(),
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            ).decode(),
        )


def _builder(name: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(BEGIN)
        .not_valid_after(END)
    )
