"""The real kubectl against a real service: everything that docs/kubectl.md says of it."""

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

import pytest
import yaml

from tests.kubernetes.certificates import Authority
from tests.kubernetes.programs import CLIENT, find_kubectl, version
from tests.kubernetes.tls_proxy import TlsProxy
from tests.system.client import Client
from tests.system.conftest import StartService
from tests.system.service_process import ROOT, ServiceProcess
from tests.system.test_readme import read_commands, run_commands

# The first test may build kubectl.
pytestmark = [pytest.mark.system, pytest.mark.timeout(1800)]

PAGE = ROOT / "docs" / "kubectl.md"
PATIENCE = 30.0  # seconds for a line that must come
GPU = {"key": "Kind", "operator": "In", "values": ["nvidia-gpu"]}
BIG = {"key": "memory", "operator": "GtEq", "values": ["30G"]}


Grant = Callable[..., str]


class Kubectl:
    """kubectl with a configuration of its own that knows nothing but the service."""

    def __init__(self, program: Path, folder: Path, server: str, *arguments: str) -> None:
        self.folder = folder
        self._command = [str(program), "--server", server, *arguments]
        self.environment = {
            "PATH": os.defpath,
            "HOME": str(folder),
            "KUBECONFIG": str(folder / "kubeconfig"),
            "NO_PROXY": "*",
        }

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*self._command, *arguments],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    def done(self, *arguments: str) -> str:
        """What it prints; it must succeed without a word of warning."""
        done = self.run(*arguments)
        assert (done.returncode, done.stderr) == (0, ""), (arguments, done)
        return done.stdout

    def refused(self, *arguments: str) -> str:
        """What it says of why it fails."""
        done = self.run(*arguments)
        assert done.returncode != 0, (arguments, done)
        return done.stderr

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*self._command, *arguments],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def write(self, name: str, *expressions: dict[str, Any], **more: Any) -> str:
        """A file with a class, and what it is called."""
        document = {
            "apiVersion": "resourceclass.rm/v1alpha1",
            "kind": "ResourceClass",
            "metadata": {"name": name},
            "spec": {"resourceSelector": [{"matchExpressions": list(expressions or (GPU,))}], **more},
        }
        (self.folder / f"{name}.yaml").write_text(yaml.safe_dump(document), encoding="utf-8")
        return f"{name}.yaml"

    def create(self, name: str, *expressions: dict[str, Any]) -> None:
        self.done("create", "-f", self.write(name, *expressions))


class Lines:
    """What a kubectl that goes on running prints, row by row."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._lines: SimpleQueue[str] = SimpleQueue()
        self._seen: list[str] = []
        Thread(target=self._read, args=(process,), daemon=True).start()

    def row(self) -> list[str]:
        """The next row, without the age."""
        try:
            self._seen.append(self._lines.get(timeout=PATIENCE))
        except Empty:
            pytest.fail(f"kubectl prints nothing more after {self._seen}")
        return self._seen[-1].split()[:4]

    def _read(self, process: subprocess.Popen[str]) -> None:
        for line in process.stdout or ():
            self._lines.put(line)


@pytest.fixture(scope="module")
def program() -> Path:
    return find_kubectl()


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """A service on SQLite with one node: four large GPUs, two small ones."""
    folder = tmp_path_factory.mktemp("kubectl")
    process = ServiceProcess(f"sqlite:///{folder / 'rm.db'}", folder)
    process.migrate()
    process.start()
    with Client(process.port) as client:
        devices = [
            {"name": "large", "count": 4, "attributes": {"Kind": "nvidia-gpu", "memory": "40G"}},
            {"name": "small", "count": 2, "attributes": {"Kind": "nvidia-gpu", "memory": "16G"}},
        ]
        client.put("/nodes/gpu-1", {"total": {"memory": "64Gi"}, "devices": devices}, status=201)
    yield process
    process.close()


@pytest.fixture
def client(service: ServiceProcess) -> Iterator[Client]:
    with Client(service.port) as client:
        yield client


@pytest.fixture
def kubectl(program: Path, service: ServiceProcess, tmp_path: Path) -> Iterator[Kubectl]:
    """At the end no class is left."""
    kubectl = Kubectl(program, tmp_path, service.url)
    yield kubectl
    kubectl.run("delete", "rc", "--all")


@pytest.fixture
def watch(kubectl: Kubectl) -> Iterator[Callable[..., Lines]]:
    """`watch("get", "rc", "-w")`: what it prints; it is ended after the test."""
    with ExitStack() as stack:

        def start(*arguments: str) -> Lines:
            process = stack.enter_context(kubectl.start(*arguments))
            stack.callback(process.terminate)
            return Lines(process)

        yield start


@pytest.fixture
def grant(client: Client) -> Iterator[Grant]:
    """`grant(big=2)`: the id of an application that holds these classes until the end of the test."""
    granted: list[str] = []

    def apply(**classes: object) -> str:
        body = {"tags": {"user": "alice"}, "resource": {"memory": "1Gi"}, "classes": classes}
        granted.append(client.post("/applications", body, status=201)["id"])
        return granted[-1]

    yield apply
    for application in granted:
        client.post(f"/applications/{application}/release")


def rows(printed: str) -> list[list[str]]:
    """Every row of a table, without its head and without the age."""
    return [line.split()[:4] for line in printed.splitlines()[1:]]


def test_it_finds_out_what_there_is(kubectl: Kubectl) -> None:
    said = kubectl.done("version")
    assert f"Client Version: {version(CLIENT)}" in said
    assert re.search(r"^Server Version: v1\.34\.0\+rm-service-", said, re.MULTILINE)
    (resource,) = rows(kubectl.done("api-resources"))
    assert resource == ["resourceclasses", "rc", "resourceclass.rm/v1alpha1", "false"]
    assert kubectl.done("api-versions") == "resourceclass.rm/v1alpha1\n"


def test_it_explains_the_fields(kubectl: Kubectl) -> None:
    said = kubectl.done("explain", "rc.spec")
    assert "resourceSelector\t<[]ResourcePropertySelector>" in said
    assert "one that holds is enough" in " ".join(said.split())
    operator = kubectl.done("explain", "rc.spec.resourceSelector.matchExpressions.operator")
    assert "device value OPERATOR class value" in " ".join(operator.split())
    whole = kubectl.done("explain", "resourceclass", "--recursive")
    assert "uncomparableReasons\t<[]string>" in whole


def test_a_class_lives_as_any_object_does(kubectl: Kubectl, client: Client, grant: Grant) -> None:
    created = kubectl.done("create", "-f", kubectl.write("big", GPU, BIG))
    assert created == "resourceclass.resourceclass.rm/big created\n"
    application = grant(big=2)
    assert rows(kubectl.done("get", "rc")) == [["big", "4", "2", "2"]]
    head, row = kubectl.done("get", "resourceclasses", "-o", "wide").splitlines()
    assert head.split() == ["NAME", "ALLOCATABLE", "REQUESTED", "FREE", "AGE", "UNCOMPARABLE"]
    assert row.split()[-1] == "0"

    (item,) = yaml.safe_load(kubectl.done("get", "rc", "-o", "yaml"))["items"]
    assert item["spec"]["resourceSelector"] == [{"matchExpressions": [GPU, BIG]}]
    assert item["status"] == {"allocatable": "4", "requested": "2", "free": "2", "uncomparable": 0}
    described = kubectl.done("describe", "rc", "big")
    for line in (r"Name: +big", r"Operator: +GtEq", r"Requested: +2", r"Events: +<none>"):
        assert re.search(line, described), described

    client.post(f"/applications/{application}/release")
    assert rows(kubectl.done("get", "rc", "big")) == [["big", "4", "0", "4"]]
    assert kubectl.done("delete", "rc", "big") == 'resourceclass.resourceclass.rm "big" deleted\n'
    assert kubectl.run("get", "rc").stderr == "No resources found\n"


def test_a_watch_prints_what_is_granted_and_given_back(
    kubectl: Kubectl, client: Client, grant: Grant, watch: Callable[..., Lines]
) -> None:
    kubectl.create("any")
    kubectl.create("big", GPU, BIG)
    every, one = watch("get", "rc", "-w"), watch("get", "rc", "--field-selector=metadata.name=any", "-w")
    assert [every.row() for _ in range(3)][1:] == [["any", "6", "0", "6"], ["big", "4", "0", "4"]]
    assert [one.row() for _ in range(2)][1] == ["any", "6", "0", "6"]
    application = grant(big=3)
    assert one.row() == ["any", "6", "3", "3"]
    assert sorted([every.row(), every.row()]) == [["any", "6", "3", "3"], ["big", "4", "3", "1"]]
    client.post(f"/applications/{application}/release")
    assert one.row() == ["any", "6", "0", "6"]
    assert sorted([every.row(), every.row()]) == [["any", "6", "0", "6"], ["big", "4", "0", "4"]]
    kubectl.done("delete", "rc", "any")
    kubectl.create("later")
    # What is deleted is printed as it last stood.
    assert [every.row(), every.row()] == [["any", "6", "0", "6"], ["later", "6", "0", "6"]]


def test_events_are_told_apart_and_waited_for(
    kubectl: Kubectl, grant: Grant, watch: Callable[..., Lines]
) -> None:
    kubectl.create("any")
    events = watch("get", "rc", "-w", "--output-watch-events")
    assert [events.row() for _ in range(2)][1] == ["ADDED", "any", "6", "0"]
    waiting = kubectl.start("wait", "rc/any", "--for=jsonpath={.status.requested}=1500m", "--timeout=60s")
    with waiting:
        grant(any=1)
        grant(any="500m")
        assert waiting.wait(60) == 0
    while (row := events.row())[3] != "1500m":
        assert row[0] == "MODIFIED"
    kubectl.done("delete", "rc", "any")
    assert events.row() == ["DELETED", "any", "6", "1500m"]


def test_apply_creates_and_then_changes_nothing(kubectl: Kubectl) -> None:
    file = kubectl.write("big", GPU, BIG)
    assert kubectl.done("apply", "-f", file) == "resourceclass.resourceclass.rm/big created\n"
    assert kubectl.done("apply", "-f", file) == "resourceclass.resourceclass.rm/big unchanged\n"
    assert kubectl.done("diff", "-f", file) == ""
    edited = kubectl.refused("apply", "-f", kubectl.write("big", GPU))
    assert 'The ResourceClass "big" is invalid' in edited
    assert "a resource class cannot be changed: delete it and create it anew" in edited
    assert "cannot be changed" in kubectl.refused("label", "rc", "big", "team=a")
    assert "Server-side apply not available" in kubectl.refused("apply", "--server-side", "-f", file)
    kubectl.done("replace", "--force", "-f", file)


def test_apply_and_create_do_not_mix(kubectl: Kubectl) -> None:
    kubectl.create("big", GPU, BIG)
    assert "metadata.annotations" in kubectl.refused("apply", "-f", "big.yaml")
    assert kubectl.done("replace", "-f", "big.yaml") == "resourceclass.resourceclass.rm/big replaced\n"
    kubectl.done("delete", "-f", "big.yaml")
    kubectl.done("create", "--save-config", "-f", "big.yaml")
    assert kubectl.done("apply", "-f", "big.yaml") == "resourceclass.resourceclass.rm/big unchanged\n"


def test_a_bad_class_is_refused_with_every_fault(kubectl: Kubectl) -> None:
    file = kubectl.write(
        "bad",
        {"key": "memory", "operator": "Above", "values": ["30G"]},
        {"key": "memory", "operator": "GtEq", "values": ["30G", "40G"]},
        {"operator": "Exists"},
    )
    said = kubectl.refused("create", "-f", file)
    path = "* spec.resourceSelector[0].matchExpressions"
    head, *faults = said.splitlines()
    assert head == 'The ResourceClass "bad" is invalid: '
    assert [fault.split(": ")[0] for fault in faults] == [
        f"{path}[0].operator",
        f"{path}[1].values",
        f"{path}[2].key",
    ]
    assert "Required value" in faults[2]
    assert kubectl.refused("get", "rc", "bad") == (
        'Error from server (NotFound): resourceclasses.resourceclass.rm "bad" not found\n'
    )


def test_fields_that_are_not_known_are_refused_unless_only_warned_of(kubectl: Kubectl) -> None:
    file = kubectl.write("big", GPU, extra=1)
    assert 'unknown field "spec.extra"' in kubectl.refused("create", "-f", file)
    warned = kubectl.run("create", "--validate=warn", "-f", file)
    assert (warned.returncode, warned.stderr) == (0, 'Warning: unknown field "spec.extra"\n')


def test_what_is_there_already_is_not_created_and_a_rehearsal_creates_nothing(kubectl: Kubectl) -> None:
    rehearsed = kubectl.done("create", "--dry-run=server", "-f", kubectl.write("big"))
    assert rehearsed == "resourceclass.resourceclass.rm/big created (server dry run)\n"
    kubectl.done("create", "-f", "big.yaml")
    for more in ([], ["--dry-run=server"]):
        said = kubectl.refused("create", "-f", "big.yaml", *more)
        assert "Error from server (AlreadyExists)" in said
        assert 'resourceclasses.resourceclass.rm "big" already exists' in said
    kubectl.done("delete", "rc", "big", "--dry-run=server")
    kubectl.done("delete", "rc", "big")


def test_lists_are_chosen_from_and_come_in_parts(kubectl: Kubectl) -> None:
    for name in ("a", "b", "c"):
        kubectl.create(name)
    assert rows(kubectl.done("get", "rc", "--chunk-size=1")) == [[name, "6", "0", "6"] for name in "abc"]
    named = kubectl.done("get", "rc", "--field-selector=metadata.name!=b", "-o", "name")
    assert named.split() == ["resourceclass.resourceclass.rm/a", "resourceclass.resourceclass.rm/c"]
    assert kubectl.run("get", "rc", "-l", "team=a").stderr == "No resources found\n"
    last_first = kubectl.done("get", "rc", "--sort-by={.metadata.name}", "--no-headers")
    assert [line.split()[0] for line in last_first.splitlines()] == ["a", "b", "c"]


def test_a_token_is_sent_over_tls_and_not_without(
    program: Path, start_service: StartService, sqlite_url: str, tmp_path: Path
) -> None:
    service = ServiceProcess(sqlite_url, tmp_path)
    service.migrate()
    token = service.run("token", "create", "operator").stdout.strip()
    started = start_service(sqlite_url, auth="token")
    plain = Kubectl(program, tmp_path, started.url, "--token", token)
    assert "You must be logged in to the server" in plain.refused("get", "rc")

    authority = Authority()
    (tmp_path / "ca.crt").write_text(authority.certificate)
    with TlsProxy(authority.server(), started.port, tmp_path) as proxy:
        trusted = ("--certificate-authority", str(tmp_path / "ca.crt"))
        kubectl = Kubectl(program, tmp_path, proxy.url, *trusted, "--token", token)
        kubectl.create("big", GPU, BIG)
        assert rows(kubectl.done("get", "rc")) == [["big", "0", "0", "0"]]
        stranger = Kubectl(program, tmp_path, proxy.url, *trusted, "--token", "another")
        assert "You must be logged in to the server" in stranger.refused("get", "rc")


def test_the_page_prints_what_kubectl_prints(
    program: Path,
    start_service: StartService,
    sqlite_url: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    text = PAGE.read_text(encoding="utf-8")
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    monkeypatch.setenv("KUBECACHEDIR", str(tmp_path / "cache"))
    service = start_service(sqlite_url)
    found = re.search(r"^```yaml\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    (service.folder / "class.yaml").write_text(found[1], encoding="utf-8")
    commands = read_commands(text, "A walk")
    outputs = run_commands(commands, service)
    wrong = [
        f"$ {command.text}\npage:    {chr(10).join(command.printed)}\nprinted: {output}"
        for command, output in zip(commands, outputs, strict=True)
        if not command.prints(output)
    ]
    assert not wrong, "\n\n".join(wrong)
