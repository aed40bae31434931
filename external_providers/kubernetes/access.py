"""How an API server is reached: its address, whom to trust, and as whom to ask.

Files are read each time anew: tokens and certificates are exchanged while the service runs.
"""

import os
import ssl
import stat
import tempfile
from base64 import b64decode
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
MAX_FILE = 1024 * 1024
BEGIN = "-----BEGIN "


class AccessError(ValueError):
    """The way to the API server is described wrongly: the `field` and the reason. No secrets in the text."""

    def __init__(self, name: str, reason: str) -> None:
        self.field = name
        self.reason = reason
        super().__init__(f"{name}: {reason}")


@dataclass(frozen=True, slots=True)
class Access:
    """A way to an API server. Texts of certificates and keys are PEM."""

    server: str
    """E.g. `https://10.0.0.1:6443`, without a slash at the end."""
    authorities: str = ""
    """Certificates of those who may vouch for the server; empty: those that the machine trusts."""
    token: str = field(default="", repr=False)
    certificate: str = ""
    key: str = field(default="", repr=False)

    def tls(self) -> ssl.SSLContext:
        """Raises AccessError when a certificate or key cannot be used."""
        try:
            context = ssl.create_default_context(cadata=self.authorities or None)
        except (ssl.SSLError, ValueError) as error:
            raise AccessError("ca_data", "holds no certificate that can be read") from error
        # Newer Pythons insist on a detail of certificates (RFC 5280) that those of many clusters lack.
        context.verify_flags &= ~ssl.VerifyFlags.VERIFY_X509_STRICT
        if self.certificate:
            _present(context, self.certificate, self.key)
        return context


def in_cluster(environment: Mapping[str, str] = os.environ) -> Access:
    """As the service account of the pod that this process runs in. Raises AccessError."""
    host = environment.get("KUBERNETES_SERVICE_HOST", "")
    port = environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise AccessError("in_cluster", "this process runs in no pod: KUBERNETES_SERVICE_HOST is not set")
    return Access(
        server=f"https://[{host}]:{port}" if ":" in host else f"https://{host}:{port}",
        authorities=read_text(ACCOUNT / "ca.crt", "in_cluster"),
        token=bearer(read_text(ACCOUNT / "token", "in_cluster"), "in_cluster"),
    )


def direct(params: Mapping[str, Any]) -> Access:
    """As the configuration itself says. Raises AccessError."""
    server = address(str(params["server"]), "server")
    return checked(
        Access(
            server=server,
            authorities=pem_or_path(params, data="ca_data", path="ca_file"),
            token=bearer(str(params.get("token", "")), "token"),
            certificate=pem_or_path(params, data="client_certificate", path="client_certificate"),
            key=pem_or_path(params, data="client_key", path="client_key"),
        )
    )


def checked(access: Access) -> Access:
    """The same. Raises AccessError when its parts do not go together."""
    if bool(access.certificate) != bool(access.key):
        missing = "client_key" if access.certificate else "client_certificate"
        raise AccessError(missing, "a client certificate and its key go together")
    if access.server.startswith("http://") and (access.token or access.key):
        raise AccessError("server", "must be https: a token or a key is not sent over http")
    if access.server.startswith("https://"):
        access.tls()
    return access


def address(url: str, name: str) -> str:
    """The address of an API server without a slash at the end. Raises AccessError."""
    try:
        parts = urlsplit(url)
        valid = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        valid = False
        parts = urlsplit("")
    if not valid:
        raise AccessError(name, "must be an address that begins with http:// or https://")
    if parts.username is not None or parts.query or parts.fragment:
        raise AccessError(name, "must be an address only, without user, query or fragment")
    return url.rstrip("/")


def bearer(token: str, name: str) -> str:
    """A token as it goes into a header. Raises AccessError."""
    token = token.strip()
    if not token.isascii() or not token.isprintable() or " " in token:
        raise AccessError(name, "the token has characters that no token has")
    return token


def pem_or_path(params: Mapping[str, Any], *, data: str, path: str) -> str:
    """The PEM that is given as such, in base64, or as the path of a file. Raises AccessError."""
    given = str(params.get(data) or "")
    if given.lstrip().startswith(BEGIN):
        return given
    if given and data != path:
        return decoded(given, data)
    file = str(params.get(path) or "")
    return read_text(Path(file), path) if file else ""


def decoded(text: str, name: str) -> str:
    """The PEM that is given in base64. Raises AccessError."""
    try:
        pem = b64decode(text, validate=True).decode("ascii")
    except ValueError:
        # Python's error would carry what was decoded.
        raise AccessError(name, "is neither PEM nor PEM in base64") from None
    if BEGIN not in pem:
        raise AccessError(name, "is neither PEM nor PEM in base64")
    return pem


def read_text(path: Path, name: str) -> str:
    """A small text file. Raises AccessError, which does not tell what is in it."""
    try:
        # Opening a pipe would wait for somebody who writes into it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise AccessError(name, f"{path} is no file")
            content = file.read(MAX_FILE + 1)
        if len(content) > MAX_FILE:
            raise AccessError(name, f"{path} is longer than {MAX_FILE} bytes")
        return content.decode()
    except UnicodeDecodeError:
        raise AccessError(name, f"{path} is no text") from None
    except OSError as error:
        raise AccessError(name, f"{path} cannot be read: {error.strerror}") from error


def _present(context: ssl.SSLContext, certificate: str, key: str) -> None:
    """Python reads a client's certificate from files only; ours is gone when it has been read."""
    with tempfile.TemporaryDirectory(prefix="rm-k8s-") as folder:
        chain = Path(folder, "client.pem")
        chain.touch(mode=0o600)
        chain.write_text(f"{certificate}\n{key}\n", encoding="ascii")
        try:
            context.load_cert_chain(chain, password=_no_password)
        except (ssl.SSLError, ValueError) as error:
            raise AccessError("client_key", "the client certificate and its key cannot be used") from error


def _no_password() -> str:
    raise ValueError
