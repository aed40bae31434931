"""A real Kubernetes API server with its etcd, on loopback, without controllers, scheduler and kubelets.

Its authority is the test's own. Who asks is told by a token or a client certificate; who may do what by RBAC.
"""

import contextlib
import os
import shutil
import ssl
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import requests
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.kubernetes.certificates import Authority
from tests.kubernetes.objects import Document
from tests.kubernetes.programs import Programs
from tests.postgres import free_port

START_SECONDS = 120.0
STOP_SECONDS = 30.0
LOG_TAIL = 4000
ADMIN = "admin-of-a-test"

# Waits until our end of its standard input closes, however this process ends, and then ends the program.
GUARD = 'cat >/dev/null; kill -KILL "$0"'

PATHS = {
    "Namespace": "/api/v1/namespaces",
    "Node": "/api/v1/nodes",
    "ResourceQuota": "/api/v1/namespaces/{namespace}/resourcequotas",
    "Pod": "/api/v1/namespaces/{namespace}/pods",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
}


class ApiServerError(RuntimeError):
    """A program did not start, or refused what was asked; the message says what it said."""


class Process:
    """A program that ends with us, whatever happens; what it says goes into a file."""

    def __init__(self, command: list[str], log: Path) -> None:
        self.log = log
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                env={"PATH": os.defpath, "HOME": str(log.parent)},
                start_new_session=True,
            )
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", GUARD, str(self._process.pid)], stdin=subprocess.PIPE, start_new_session=True
        )

    @property
    def running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        self._guard.kill()
        self._guard.wait()
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def trouble(self, what: str) -> ApiServerError:
        return ApiServerError(f"{what}:\n{self.log.read_text(errors='replace')[-LOG_TAIL:]}")


class ApiServer:
    """Entered, it runs at `url`, the same after `stop` and `start`; `tokens` are users by their tokens."""

    def __init__(self, programs: Programs, tokens: Mapping[str, str]) -> None:
        self._programs = programs
        self._tokens = {**tokens, ADMIN: "admin,admin,system:masters"}
        self.authority = Authority("authority of the API server")
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self._folder = Path(tempfile.mkdtemp(prefix="rm-apiserver-"))
        self.ca_file = self._folder / "ca.crt"
        self._etcd: Process | None = None
        self._server: Process | None = None
        self._admin = requests.Session()
        self._admin.trust_env = False
        self._admin.headers["Authorization"] = f"Bearer {ADMIN}"
        self._admin.verify = str(self.ca_file)

    def __enter__(self) -> Self:
        self._write_files()
        try:
            self._start_etcd()
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Start the API server, and return when it is ready. Nothing when it runs."""
        if self._server is not None:
            return
        self._server = Process(self._command(), self._folder / "apiserver.log")
        self._await_ready(self._server)

    def stop(self) -> None:
        """Stop the API server; what it stored stays."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    def close(self) -> None:
        self.stop()
        if self._etcd is not None:
            self._etcd.stop()
            self._etcd = None
        self._admin.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def create(self, document: Document) -> None:
        """Create an object, and then its status as it is given: there is nobody else who would set it."""
        namespace = document["metadata"].get("namespace", "")
        path = PATHS[document["kind"]].format(namespace=namespace)
        stored = self._post(path, document)
        if document.get("status"):
            stored["status"] = {**stored.get("status", {}), **document["status"]}
            self._ask("PUT", f"{path}/{document['metadata']['name']}/status", stored)

    def _post(self, path: str, document: Document) -> Document:
        """A pod is let in when the server has heard of the status of the quotas, which takes a moment."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            try:
                return self._ask("POST", path, document)
            except ApiServerError as error:
                if "status unknown for quota" not in str(error) or time.monotonic() > deadline:
                    raise
            time.sleep(0.02)

    def delete(self, kind: str, name: str, namespace: str = "") -> None:
        path = PATHS[kind].format(namespace=namespace)
        self._ask("DELETE", f"{path}/{name}", {"gracePeriodSeconds": 0})

    def get(self, kind: str, name: str, namespace: str = "") -> Document:
        return self._ask("GET", f"{PATHS[kind].format(namespace=namespace)}/{name}", None)

    def _ask(self, method: str, path: str, body: Document | None) -> dict[str, Any]:
        answer = self._admin.request(method, self.url + path, json=body, timeout=30)
        if not answer.ok:
            raise ApiServerError(f"{method} {path}: {answer.status_code} {answer.text[:LOG_TAIL]}")
        found: dict[str, Any] = answer.json()
        return found

    def _write_files(self) -> None:
        self.ca_file.write_text(self.authority.certificate)
        server = self.authority.server()
        (self._folder / "server.crt").write_text(server.certificate)
        (self._folder / "server.key").write_text(server.key)
        accounts = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        (self._folder / "accounts.key").write_bytes(
            accounts.private_bytes(
                serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
            )
        )
        lines = []
        for token, user in self._tokens.items():
            name, uid, *groups = user.split(",", 2) if "," in user else (user, user)
            lines.append(",".join([token, name, uid, *(f'"{group}"' for group in groups)]))
        (self._folder / "tokens.csv").write_text("\n".join(lines) + "\n")

    def _start_etcd(self) -> None:
        clients, peers = (f"http://127.0.0.1:{free_port()}" for _ in range(2))
        self._etcd_url = clients
        command = [
            str(self._programs.etcd),
            f"--data-dir={self._folder / 'etcd'}",
            f"--listen-client-urls={clients}",
            f"--advertise-client-urls={clients}",
            f"--listen-peer-urls={peers}",
            f"--initial-advertise-peer-urls={peers}",
            f"--initial-cluster=default={peers}",
            "--unsafe-no-fsync",
            "--logger=zap",
        ]
        self._etcd = Process(command, self._folder / "etcd.log")

    def _command(self) -> list[str]:
        folder = self._folder
        return [
            str(self._programs.apiserver),
            f"--etcd-servers={self._etcd_url}",
            "--bind-address=127.0.0.1",
            "--advertise-address=127.0.0.1",
            "--endpoint-reconciler-type=none",
            f"--secure-port={self.port}",
            f"--cert-dir={folder / 'certs'}",
            f"--tls-cert-file={folder / 'server.crt'}",
            f"--tls-private-key-file={folder / 'server.key'}",
            f"--client-ca-file={self.ca_file}",
            f"--token-auth-file={folder / 'tokens.csv'}",
            "--authorization-mode=RBAC",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--service-account-issuer=https://rm-service.test",
            f"--service-account-key-file={folder / 'accounts.key'}",
            f"--service-account-signing-key-file={folder / 'accounts.key'}",
            "--disable-admission-plugins=ServiceAccount",  # no controller makes the accounts
            "--v=1",
        ]

    def _await_ready(self, process: Process) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            if not process.running:
                raise process.trouble("the API server ended")
            with contextlib.suppress(requests.RequestException, ssl.SSLError):
                if self._admin.get(f"{self.url}/readyz", timeout=5).ok:
                    return
            time.sleep(0.05)
        raise process.trouble(f"the API server is not ready after {START_SECONDS:.0f} s")
