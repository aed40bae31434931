"""What the proposal of resource classes says of classes, over the wire: names, selection, objects, status.

docs/resource-classes.md has a table that names a test for each of its sentences; what the scheduler does at
each event is in test_resource_class_events.py.
"""

import http.client
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import pytest
import yaml

from tests.system.client import API, Answer, Client, Json
from tests.system.service_process import ServiceProcess

pytestmark = pytest.mark.system

GROUP = "/apis/resourceclass.rm/v1alpha1"
CLASSES = f"{GROUP}/resourceclasses"
HELD = ("waiting", "locked", "used")
Expression = tuple[str, str, Sequence[str]]
"""Key, operator and values."""

GPU: Expression = ("Kind", "In", ["nvidia-gpu"])
BIG: Expression = ("memory", "GtEq", ["30G"])


def selector(*expressions: Expression) -> Json:
    """An entry of `resourceSelector`: all of these."""
    asked = [{"key": key, "operator": operator} for key, operator, _ in expressions]
    valued = [{"values": list(values)} if values else {} for _, _, values in expressions]
    return {"matchExpressions": [{**one, **more} for one, more in zip(asked, valued, strict=True)]}


def resource_class(name: str, *selectors: Json) -> Json:
    """A class as the proposal writes it, without an apiVersion."""
    return {
        "kind": "ResourceClass",
        "metadata": {"name": name},
        "spec": {"resourceSelector": list(selectors)},
    }


def device(name: str, count: int = 1, **attributes: object) -> Json:
    return {"name": name, "count": count, "attributes": attributes}


def gpu(name: str, count: int = 1, **attributes: object) -> Json:
    return device(name, count, Kind="nvidia-gpu", **attributes)


@dataclass
class Cluster:
    """Nodes, classes and applications of one test on a service; `clear` takes all of them away."""

    service: ServiceProcess
    client: Client

    def post_yaml(self, text: str) -> Answer:
        """Create a class from a manifest."""
        with closing(http.client.HTTPConnection("127.0.0.1", self.service.port, timeout=30)) as connection:
            connection.request("POST", CLASSES, text.encode(), {"Content-Type": "application/yaml"})
            response = connection.getresponse()
            return Answer(response.status, dict(response.getheaders()), response.read())

    def create(self, name: str, *selectors: Json) -> Json:
        """The class as it was created, with its status."""
        answer = self.post_yaml(yaml.safe_dump(resource_class(name, *selectors)))
        assert answer.status == 201, answer.body.decode()
        return answer.document

    def read(self, name: str, status: int = 200) -> Json:
        answer = self.client.send("GET", f"{CLASSES}/{name}")
        assert answer.status == status, answer.body.decode()
        return answer.document

    def delete(self, name: str) -> None:
        assert self.client.send("DELETE", f"{CLASSES}/{name}").status == 200

    def standing(self, name: str) -> tuple[str, str]:
        """Allocatable and Requested of a class."""
        status = self.read(name)["status"]
        return status["allocatable"], status["requested"]

    def node(self, name: str, *devices: Json, **more: object) -> Json:
        """Register a node, or what it has now."""
        body = {"total": {"memory": "64Gi"}, "devices": devices, **more}
        answer = self.client.send("PUT", f"{API}/nodes/{name}", body)
        assert answer.status in {200, 201}, answer.body.decode()
        return answer.document

    def remove_node(self, name: str) -> None:
        self.client.call("DELETE", f"/nodes/{name}", status=204)

    def ask(self, classes: Json, status: int = 201, **more: object) -> Json:
        """What an application that asks for these classes is answered."""
        body = {"tags": {"user": "alice"}, "classes": classes, **more}
        return self.client.post("/applications", body, status=status)

    def release(self, application: Json) -> None:
        self.client.post(f"/applications/{application['id']}/release")

    def selected(self, name: str) -> set[str]:
        """The devices that are given to who asks for all that a class has (on one node)."""
        count = int(self.standing(name)[0])
        if not count:
            return set()
        granted = self.ask({name: count})
        self.release(granted)
        return {each["device"] for each in granted["devices"]}

    def check_books(self) -> None:
        audit = self.client.get("/audit")
        assert audit["consistent"], audit

    def clear(self) -> None:
        for state in HELD:
            for application in list(self.client.pages(f"/applications?state={state}")):
                self.release(application)
        for node in list(self.client.pages("/nodes")):
            if node["state"] != "lost":
                self.remove_node(node["instance"])
        for item in self.client.send("GET", CLASSES).document["items"]:
            self.delete(item["metadata"]["name"])


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    """One service on SQLite for a module's tests, in which leases and silence end soon."""
    folder = tmp_path_factory.mktemp("classes")
    url = f"sqlite:///{folder / 'rm.db'}"
    process = ServiceProcess(url, folder, sweep_seconds=1, node_silence_seconds=1)
    process.migrate()
    process.start()
    yield process
    process.close()


@pytest.fixture
def cluster(process: ServiceProcess) -> Iterator[Cluster]:
    """The module's service, empty; after each test its books balance."""
    with Client(process.port) as client:
        cluster = Cluster(process, client)
        yield cluster
        cluster.check_books()
        cluster.clear()
        cluster.check_books()


# ---- motivation ----


def test_a_device_carries_metadata_and_a_class_asks_for_more_than_a_version(cluster: Cluster) -> None:
    cluster.node(
        "host1",
        gpu("older", driver={"version": "535.54.03"}),
        gpu("newer", driver={"version": "535.104.05"}),
    )
    cluster.create("new.driver", selector(("driver", "Gt", ["535.54.03"])))
    assert cluster.selected("new.driver") == {"newer"}


def test_what_is_asked_for_is_no_name_of_what_there_is(cluster: Cluster) -> None:
    cluster.node("host1", gpu("tesla", memory="40G"))
    cluster.node("host2", gpu("quadro", memory="48G"))
    cluster.create("nvidia.high.mem", selector(GPU, BIG))
    given = [cluster.ask({"nvidia.high.mem": 1}) for _ in range(2)]
    assert [(each["node"], each["devices"][0]["device"]) for each in given] == [
        ("host1", "tesla"),
        ("host2", "quadro"),
    ]


# ---- use cases ----


def test_classes_have_portable_names_and_metadata(cluster: Cluster) -> None:
    cluster.node("host1", gpu("large", 4, memory="40G"), device("mlx", 2, Kind="nic", speed="100GBPS"))
    cluster.create("nvidia.gpu.high.mem", selector(GPU, ("memory", "Gt", ["30G"])))
    cluster.create("fast.nic", selector(("Kind", "In", ["nic"]), ("speed", "Gt", ["40GBPS"])))
    assert cluster.standing("nvidia.gpu.high.mem") == ("4", "0")
    assert cluster.standing("fast.nic") == ("2", "0")


def test_any_gpu_with_enough_memory_will_do_whatever_else_it_is(cluster: Cluster) -> None:
    cluster.node(
        "host1",
        gpu("old", memory="30G", version="1.0"),
        gpu("linked", memory="80G", version="3.2", nvlink=True),
        gpu("small", memory="16G", version="3.2", nvlink=True),
        device("other", Kind="amd-gpu", memory="80G"),
    )
    cluster.create("nvidia.gpu.high.mem", selector(GPU, BIG))
    assert cluster.selected("nvidia.gpu.high.mem") == {"old", "linked"}


@pytest.mark.parametrize(
    ("operator", "devices"), [("Gt", {"faster"}), ("GtEq", {"fast", "faster"})], ids=["Gt", "GtEq"]
)
def test_any_nic_with_enough_speed_will_do(cluster: Cluster, operator: str, devices: set[str]) -> None:
    speeds = {"slow": "10GBPS", "fast": "40GBPS", "faster": "100GBPS"}
    cluster.node("host1", *(device(name, Kind="nic", speed=speed) for name, speed in speeds.items()))
    cluster.create("fast.nic", selector(("Kind", "In", ["nic"]), ("speed", operator, ["40GBPS"])))
    assert cluster.selected("fast.nic") == devices


@pytest.mark.parametrize(
    ("operator", "values", "devices"),
    [
        ("Eq", ["30G"], {"b"}),
        ("Lt", ["30G"], {"a"}),
        ("LtEq", ["30G"], {"a", "b"}),
        ("Gt", ["30G"], {"c"}),
        ("GtEq", ["30G"], {"b", "c"}),
        ("In", ["16G", "40000M"], {"a", "c"}),
        ("NotIn", ["16G", "40G"], {"b", "none"}),
        ("Exists", [], {"a", "b", "c"}),
        ("DoesNotExist", [], {"none"}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_each_operator_compares_the_devices_value_with_the_classs(
    cluster: Cluster, operator: str, values: list[str], devices: set[str]
) -> None:
    cluster.node("host1", gpu("a", memory="16G"), gpu("b", memory="30G"), gpu("c", memory="40G"), gpu("none"))
    cluster.create("asked", selector(("memory", operator, values)))
    assert cluster.selected("asked") == devices


# ---- the class ----


def test_one_selector_that_matches_is_enough(cluster: Cluster) -> None:
    cluster.node("host1", gpu("gpu0"), device("fpga0", Kind="fpga"), device("nic0", Kind="nic"))
    cluster.create("accelerator", selector(GPU), selector(("Kind", "Eq", ["fpga"])))
    assert cluster.selected("accelerator") == {"gpu0", "fpga0"}


def test_within_a_selector_every_expression_must_match(cluster: Cluster) -> None:
    cluster.node(
        "host1",
        gpu("both", memory="40G"),
        gpu("kind-alone", memory="16G"),
        device("memory-alone", Kind="fpga", memory="40G"),
    )
    cluster.create("both", selector(GPU, BIG))
    assert cluster.selected("both") == {"both"}


@pytest.mark.parametrize(
    "spec",
    [
        "{}",
        "{resourceSelector: null}",
        "{resourceSelector: []}",
        "{resourceSelector: [{}]}",
        "{resourceSelector: [{matchExpressions: null}]}",
        "{resourceSelector: [{matchExpressions: []}]}",
    ],
)
def test_a_null_or_empty_selector_matches_nothing(cluster: Cluster, spec: str) -> None:
    cluster.node("host1", gpu("gpu0"))
    answer = cluster.post_yaml(f"kind: ResourceClass\nmetadata: {{name: empty}}\nspec: {spec}\n")
    assert answer.status == 201, answer.body
    assert cluster.standing("empty") == ("0", "0")
    assert cluster.ask({"empty": 1}, 409)["code"] == "insufficient_resources"


def test_an_empty_selector_takes_nothing_from_one_beside_it(cluster: Cluster) -> None:
    cluster.node("host1", gpu("gpu0"), device("nic0", Kind="nic"))
    cluster.create("mixed", selector(), selector(GPU))
    assert cluster.selected("mixed") == {"gpu0"}


def test_a_class_belongs_to_no_namespace(cluster: Cluster) -> None:
    (kind,) = cluster.client.send("GET", GROUP).document["resources"]
    assert (kind["name"], kind["namespaced"]) == ("resourceclasses", False)
    assert "namespace" not in cluster.create("gpu", selector(GPU))["metadata"]
    there = f"{GROUP}/namespaces/default/resourceclasses/gpu"
    assert cluster.client.send("GET", there).status == 404


def test_a_class_that_was_created_never_changes(cluster: Cluster) -> None:
    cluster.node("host1", gpu("gpu0", memory="16G"))
    created = cluster.create("gpu", selector(GPU))
    other = {**created, "spec": {"resourceSelector": [selector(GPU, BIG)]}}
    refused = cluster.client.send("PUT", f"{CLASSES}/gpu", other)
    assert (refused.status, refused.document["reason"]) == (422, "Invalid")
    assert [each["field"] for each in refused.document["details"]["causes"]] == ["spec"]
    assert cluster.client.send("PUT", f"{CLASSES}/gpu", created).status == 200, "nothing would change"
    assert cluster.read("gpu") == created


EXAMPLE = """\
kind: ResourceClass
metadata:
  name: {name}
spec:
  resourceSelector:
    - matchExpressions:
        - key: "Kind"
          operator: "In"
          values:
            - "{kind}"
        - key: "{key}"
          operator: "GtEq"
          values:
            - "{least}"
"""


@pytest.mark.parametrize(
    ("name", "kind", "key", "least", "values"),
    [
        (
            "nvidia.high.mem",
            "nvidia-gpu",
            "memory",
            "30G",
            {"16G": False, "29999M": False, "30G": True, "30000M": True, "30Gi": True, "80G": True},
        ),
        ("hugepages-1gig", "huge-pages", "size", "1G", {"2Mi": False, "1G": True, "1Gi": True}),
        (
            "fast.nic",
            "nic",
            "speed",
            "40GBPS",
            {"25GBPS": False, "40GBPS": True, "40Gbps": True, "5GB/s": True, "100GBPS": True},
        ),
    ],
    ids=["gpu", "hugepages", "nic"],
)
def test_the_manifests_of_the_proposal_select_what_it_says(
    cluster: Cluster, name: str, kind: str, key: str, least: str, values: dict[str, bool]
) -> None:
    named = {f"d{number}": value for number, value in enumerate(values)}
    devices = [{"name": each, "attributes": {"Kind": kind, key: value}} for each, value in named.items()]
    cluster.node("host1", *devices, {"name": "else", "attributes": {"Kind": "else", key: "1000G"}})
    answer = cluster.post_yaml(EXAMPLE.format(name=name, kind=kind, key=key, least=least))
    assert answer.status == 201, answer.body
    assert {named[each] for each in cluster.selected(name)} == {value for value in values if values[value]}


def test_keys_are_compared_exactly(cluster: Cluster) -> None:
    cluster.node("host1", device("upper", Kind="nvidia-gpu"), device("lower", kind="nvidia-gpu"))
    cluster.create("upper", selector(GPU))
    cluster.create("lower", selector(("kind", "In", ["nvidia-gpu"])))
    assert (cluster.selected("upper"), cluster.selected("lower")) == ({"upper"}, {"lower"})


@pytest.mark.parametrize(
    ("speed", "reason"),
    [
        ("40", "40 GtEq 40GBPS: the device's value is a number, '40GBPS' is none"),
        ("40GB", "40GB GtEq 40GBPS: the device's value is of information, '40GBPS' of rate"),
        ("fast", "fast GtEq 40GBPS: the device's value is a string, which has no order"),
    ],
)
def test_what_cannot_be_compared_is_counted_with_its_reason(
    cluster: Cluster, speed: str, reason: str
) -> None:
    cluster.node("host1", device("odd", 3, Kind="nic", speed=speed))
    status = cluster.create("fast.nic", selector(("speed", "GtEq", ["40GBPS"])))["status"]
    assert (status["allocatable"], status["uncomparable"]) == ("0", 3)
    assert status["uncomparableReasons"] == [reason]


# ---- the object and its status ----


def test_the_type_is_an_object_of_an_api_group(cluster: Cluster) -> None:
    created = cluster.create("gpu", selector(GPU))
    assert (created["apiVersion"], created["kind"]) == ("resourceclass.rm/v1alpha1", "ResourceClass")
    assert created["metadata"]["name"] == "gpu"
    assert created["spec"] == {"resourceSelector": [selector(GPU)]}
    assert cluster.read("gpu") == created
    listed = cluster.client.send("GET", CLASSES).document
    assert (listed["kind"], [each["metadata"]["name"] for each in listed["items"]]) == (
        "ResourceClassList",
        ["gpu"],
    )


def test_a_status_is_the_services_word_alone(cluster: Cluster) -> None:
    sent = {**resource_class("gpu", selector(GPU)), "status": {"allocatable": "100", "requested": "7"}}
    assert cluster.post_yaml(yaml.safe_dump(sent)).status == 201
    assert cluster.standing("gpu") == ("0", "0")


def test_the_status_has_two_quantities(cluster: Cluster) -> None:
    cluster.node("host1", gpu("gpu0", 2))
    cluster.create("gpu", selector(GPU))
    assert cluster.standing("gpu") == ("2", "0")
    cluster.ask({"gpu": "250m"})
    assert cluster.standing("gpu") == ("2", "250m")
    cluster.ask({"gpu": 1})
    assert cluster.standing("gpu") == ("2", "1250m")
