"""What the proposal of resource classes says the scheduler does at each event, over the wire.

docs/resource-classes.md has a table that names a test for each of its sentences; what it says of classes
themselves is in test_resource_classes.py.
"""

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

import pytest

from tests.si.answers import ACCEPTED_APPLICATION, NEW, RELEASED
from tests.si.dialects import Ask
from tests.si.shim import Shim
from tests.system.client import Client, Json, event_stream
from tests.system.conftest import StartService
from tests.system.test_resource_classes import (
    BIG,
    CLASSES,
    GPU,
    Cluster,
    cluster,
    device,
    gpu,
    process,
    selector,
)

__all__ = ["cluster", "process"]

pytestmark = pytest.mark.system

PREFIX = "scheduler.alpha.kubernetes.io/resClass"
NIC = ("Kind", "In", ["nic"])
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
Told = Callable[[str, str, str, str], None]


@contextmanager
def watching(cluster: Cluster) -> Iterator[Told]:
    """`told(event, class, allocatable, requested)` reads on until a watch of all classes says so.

    It has told of the classes that there are when the block begins: what comes then are changes.
    """
    known = cluster.client.send("GET", CLASSES).document["items"]
    connection = http.client.HTTPConnection("127.0.0.1", cluster.service.port, timeout=20)
    with closing(connection):
        connection.request("GET", f"{CLASSES}?watch=1")
        response = connection.getresponse()
        assert response.status == 200, response.read()
        seen: list[tuple[str, str, str, str]] = []

        def told(*wanted: str) -> None:
            while wanted not in seen:
                line = response.readline()
                assert line, f"the watch has ended: {seen}"
                event = json.loads(line)
                item, status = event["object"], event["object"]["status"]
                name = item["metadata"]["name"]
                seen.append((event["type"], name, status["allocatable"], status["requested"]))

        for each in known:
            told(
                "ADDED", each["metadata"]["name"], each["status"]["allocatable"], each["status"]["requested"]
            )
        yield told
        response.close()


def given(application: Json) -> dict[tuple[str, str], str]:
    """Of each class and device how much an application was given."""
    return {(each["class"], each["device"]): each["quantity"] for each in application["devices"]}


@pytest.fixture
def gpus(cluster: Cluster) -> Cluster:
    """host1 with two GPUs of each kind and a NIC, and the classes `any` and `big`."""
    cluster.node(
        "host1",
        gpu("large", 2, memory="40G"),
        gpu("small", 2, memory="16G"),
        device("nic0", Kind="nic", speed="40GBPS"),
    )
    cluster.create("any", selector(GPU))
    cluster.create("big", selector(GPU, BIG))
    return cluster


# ---- classes ----


def test_a_new_class_counts_what_nodes_have_and_what_is_held_of_it(gpus: Cluster) -> None:
    gpus.ask({"big": 1})
    with watching(gpus) as told:
        created = gpus.create("late", selector(GPU))
        told("ADDED", "late", "4", "1")
    assert (created["status"]["allocatable"], created["status"]["requested"]) == ("4", "1")
    gpus.create("nothing", selector(("Kind", "Eq", ["fpga"])))
    assert gpus.standing("nothing") == ("0", "0")


def test_a_class_that_is_deleted_takes_nothing_from_who_has_its_devices(gpus: Cluster) -> None:
    granted = gpus.ask({"big": 2})
    with watching(gpus) as told:
        gpus.delete("big")
        told("DELETED", "big", "2", "2")
    gpus.read("big", 404)
    assert gpus.ask({"big": 1}, 409)["code"] == "unknown_class"
    kept = gpus.client.get(f"/applications/{granted['id']}")
    assert (kept["state"], kept["devices"]) == ("locked", granted["devices"])
    assert gpus.standing("any") == ("4", "2")
    gpus.check_books()
    gpus.create("big", selector(GPU, BIG))
    assert gpus.standing("big") == ("2", "2"), "one of that name counts them at once"
    gpus.release(granted)
    assert gpus.standing("big") == ("2", "0")


# ---- nodes ----


def test_a_node_that_is_added_counts_in_every_class_that_selects_its_devices(gpus: Cluster) -> None:
    gpus.create("nic", selector(NIC))
    gpus.node("plain")
    assert gpus.standing("any") == ("4", "0"), "no devices, nothing to count"
    with watching(gpus) as told:
        gpus.node("host2", gpu("more", 3, memory="80G"))
        told("MODIFIED", "big", "5", "0")
    assert [gpus.standing(name) for name in ("any", "big", "nic")] == [("7", "0"), ("5", "0"), ("1", "0")]


def test_a_node_that_is_removed_counts_no_more_nor_what_is_held_there(gpus: Cluster) -> None:
    gpus.node("host2", gpu("more", 3, memory="80G"))
    there = gpus.ask({"big": 2}, tags={"node": "host2"})
    assert [gpus.standing(name) for name in ("any", "big")] == [("7", "2"), ("5", "2")]
    with watching(gpus) as told:
        gpus.remove_node("host2")
        told("MODIFIED", "big", "2", "0")
    assert gpus.standing("any") == ("4", "0")
    assert gpus.client.get(f"/applications/{there['id']}")["state"] == "lost"


def test_a_node_that_changes_is_counted_anew(gpus: Cluster) -> None:
    held = gpus.ask({"big": 1})
    with watching(gpus) as told:
        gpus.node("host1", gpu("large", 3, memory="40G"))
        told("MODIFIED", "any", "3", "1")
    assert gpus.standing("big") == ("3", "1")
    gpus.node("host1", gpu("large", 3, memory="24G"))
    assert (gpus.standing("any"), gpus.standing("big")) == (("3", "1"), ("0", "0")), "other attributes"
    gone = gpus.node("host1")
    assert gone["over_limit"], "what runs cannot be refused"
    assert gpus.standing("any") == ("0", "1")
    gpus.release(held)
    assert gpus.standing("any") == ("0", "0")
    assert not gpus.client.get("/nodes/host1")["over_limit"]


def test_a_node_that_falls_silent_is_counted_again_when_it_comes_back(gpus: Cluster) -> None:
    used = gpus.ask({"any": 3})
    gpus.client.post(f"/applications/{used['id']}/use")
    with watching(gpus) as told:
        gpus.client.post("/nodes/host1/heartbeat")
        told("MODIFIED", "any", "0", "0")
    assert gpus.client.get("/nodes/host1")["state"] == "lost"
    devices = gpu("large", 2, memory="40G"), gpu("small", 2, memory="16G")
    gpus.node("host1", *devices, applications=[used["id"]])
    assert gpus.standing("any") == ("4", "3")
    assert given(gpus.client.get(f"/applications/{used['id']}")) == given(used)


def test_a_draining_node_is_counted_and_gives_nothing(gpus: Cluster) -> None:
    gpus.client.post("/nodes/host1/drain", {})
    assert gpus.standing("any") == ("4", "0")
    gpus.ask({"any": 1}, 409)


# ---- applications ----


def test_a_grant_raises_what_is_requested_of_every_class_that_could_select_the_device(gpus: Cluster) -> None:
    gpus.create("nic", selector(NIC))
    with watching(gpus) as told:
        granted = gpus.ask({"big": 2})
        told("MODIFIED", "big", "2", "2")
    assert granted["node"] == "host1"
    assert [gpus.standing(name) for name in ("any", "nic")] == [("4", "2"), ("1", "0")]


def test_a_release_lowers_it_in_every_class_again(gpus: Cluster) -> None:
    first, _ = gpus.ask({"big": 1}), gpus.ask({"any": 2})
    with watching(gpus) as told:
        gpus.release(first)
        told("MODIFIED", "big", "2", "1")
    assert gpus.standing("any") == ("4", "2")


def test_a_lock_that_nobody_uses_gives_its_devices_back(gpus: Cluster) -> None:
    with event_stream(gpus.service.port, gpus.client.get("/audit")["seq"]) as events:
        lock = gpus.ask({"big": 2}, lock_seconds=1)
        assert gpus.standing("any") == ("4", "2")
        told = next(event for event in events if event["kind"] == "application.reclaimed")
    assert told["subject"] == lock["id"]
    assert (gpus.standing("any"), gpus.standing("big")) == (("4", "0"), ("2", "0"))


def test_the_status_judges_who_asks(gpus: Cluster) -> None:
    gpus.ask({"big": 1})
    (short,) = gpus.ask({"big": 2}, 409, tags={"node": "host1"})["shortfalls"]
    assert (short["dimension"], short["requested"], short["left"]) == ("class/big", 2000, 1000)
    assert gpus.standing("big") == ("2", "1")
    gpus.ask({"big": 1})


def test_who_finds_no_device_waits_for_one(gpus: Cluster) -> None:
    held = gpus.ask({"big": 2})
    waiting = gpus.ask({"big": 1}, 202, wait_seconds=60)
    gpus.release(held)
    granted = gpus.client.get(f"/applications/{waiting['id']}?wait=20")
    assert (granted["state"], given(granted)) == ("locked", {("big", "large"): "1"})


def test_a_user_reads_the_status(gpus: Cluster) -> None:
    gpus.ask({"any": 1, "big": "500m"})
    client = http.client.HTTPConnection("127.0.0.1", gpus.service.port, timeout=20)
    with closing(client):
        client.request("GET", CLASSES, headers={"Accept": TABLE})
        table = json.loads(client.getresponse().read())
    columns = [each["name"] for each in table["columnDefinitions"]][:4]
    assert columns == ["Name", "Allocatable", "Requested", "Free"]
    assert [row["cells"][:4] for row in table["rows"]] == [
        ["any", "4", "1500m", "2500m"],
        ["big", "2", "1500m", "500m"],
    ]


# ---- selection of devices ----


def test_the_annotation_is_that_of_the_proposal(cluster: Cluster) -> None:
    cluster.node("host1", gpu("nvidia-tesla-gpu", 6), gpu("nvidia-k80", 2))
    cluster.create("test-res-class", selector(GPU))
    four, rest = cluster.ask({"test-res-class": 4}), cluster.ask({"test-res-class": 3})
    assert four["annotations"] == {f"{PREFIX}_test-res-class_nvidia-tesla-gpu": "4"}
    assert rest["annotations"] == {
        f"{PREFIX}_test-res-class_nvidia-tesla-gpu": "2",
        f"{PREFIX}_test-res-class_nvidia-k80": "1",
    }


@pytest.mark.parametrize(
    ("strategy", "chosen"),
    [(None, "large"), ("first_fit", "large"), ("best_fit", "small"), ("spread", "wide")],
)
def test_first_fit_is_the_strategy_unless_another_is_asked_for(
    cluster: Cluster, strategy: str | None, chosen: str
) -> None:
    cluster.node("host1", gpu("large", 3), gpu("small", 2, odd=True), gpu("wide", 8, wide=True))
    cluster.create("any", selector(GPU))
    more: Json = {} if strategy is None else {"device_strategy": strategy}
    assert given(cluster.ask({"any": 2}, **more)) == {("any", chosen): "2"}


def test_an_administrator_configures_the_strategy(sqlite_url: str, start_service: StartService) -> None:
    service = start_service(sqlite_url, device_strategy="best_fit")
    with Client(service.port) as client:
        cluster = Cluster(service, client)
        cluster.node("host1", gpu("large", 3), gpu("small", 2, odd=True))
        cluster.create("any", selector(GPU))
        assert given(cluster.ask({"any": 2})) == {("any", "small"): "2"}
        assert given(cluster.ask({"any": 2}, device_strategy="first_fit")) == {("any", "large"): "2"}
        cluster.check_books()


def test_classes_that_overlap_in_one_request_are_served_whenever_that_is_possible(cluster: Cluster) -> None:
    cluster.node("host1", gpu("large", memory="40G"), gpu("small", memory="16G"))
    cluster.create("any", selector(GPU))
    cluster.create("big", selector(GPU, BIG))
    granted = cluster.ask({"any": 1, "big": 1})
    assert given(granted) == {("any", "small"): "1", ("big", "large"): "1"}
    assert (cluster.standing("any"), cluster.standing("big")) == (("2", "2"), ("1", "1"))


def test_several_classes_and_amounts_come_from_one_node_or_not_at_all(gpus: Cluster) -> None:
    gpus.create("nic", selector(NIC))
    gpus.node("host2", gpu("alone", 8, memory="80G"))
    granted = gpus.ask({"big": 1, "nic": 1}, resource={"memory": "1Gi"})
    assert (granted["node"], len(granted["devices"])) == ("host1", 2)
    gpus.ask({"big": 1, "nic": 1}, 409)
    gpus.ask({"big": 1}, 409, resource={"memory": "65Gi"})
    assert gpus.standing("big") == ("10", "1")


# ---- the story ----


def test_the_story_of_a_user_from_asking_to_giving_back(gpus: Cluster) -> None:
    gpus.node("host0", gpu("few", memory="80G"))
    granted = gpus.ask({"big": 2})  # 1: asked for by class
    assert granted["node"] == "host1", "2: host0 has too few"
    assert granted["annotations"] == {f"{PREFIX}_big_large": "2"}  # 3: the device is selected
    (there,) = gpus.client.get("/nodes/host1/assignments")["items"]  # 4: what the node is to set up
    assert (there["application"], there["annotations"]) == (granted["id"], granted["annotations"])
    gpus.client.post(f"/applications/{granted['id']}/use")
    gpus.release(granted)  # 5: it ends
    assert gpus.client.get("/nodes/host1/assignments")["items"] == []  # 6: and what it is to take down
    assert gpus.standing("big") == ("3", "0")


def test_a_batch_and_explain_name_classes_too(gpus: Cluster) -> None:
    operations = [{"op": "apply", "tags": {"user": "alice"}, "classes": {"big": n}} for n in (2, 1)]
    results = gpus.client.post("/batch", {"operations": operations})["results"]
    assert [each["status"] for each in results] == [201, 409]
    body = {"tags": {"user": "alice"}, "classes": {"any": 2}}
    explained = gpus.client.post("/applications/explain", body)
    assert (explained["would_fit"], given(explained)) == (True, {("any", "small"): "2"})
    assert gpus.standing("any") == ("4", "2")


def test_an_ask_of_the_scheduler_interface_names_classes_as_resources(gpus: Cluster) -> None:
    with closing(Shim.twin("newest", gpus.service.port, "rm-1")) as shim:
        shim.start(extra={"rm.nodePool": "shared"})
        shim.add_application("app-1")
        shim.expect(ACCEPTED_APPLICATION, app="app-1")
        shim.ask(Ask(key="pod", app="app-1", resource={"memory": 1000, "big": 2}))
        new = shim.expect(NEW, key="pod")
        assert new.node == "host1"
        assert new.document["allocationTags"][f"{PREFIX}_big_large"] == "2"
        assert (gpus.standing("any"), gpus.standing("big")) == (("4", "2"), ("2", "2"))
        shim.release(new.allocation)
        shim.expect(RELEASED, key="pod")
        assert gpus.standing("any") == ("4", "0")


def test_all_of_it_is_kept_when_the_service_dies(sqlite_url: str, start_service: StartService) -> None:
    service = start_service(sqlite_url)
    with Client(service.port) as client:
        cluster = Cluster(service, client)
        cluster.node("host1", gpu("large", 4, memory="40G"))
        created = cluster.create("big", selector(GPU, BIG))
        granted = cluster.ask({"big": 3})
        before = client.get("/nodes/host1/assignments")["items"]
    service.kill()
    service.start()
    with Client(service.port) as client:
        cluster = Cluster(service, client)
        assert cluster.read("big")["metadata"]["uid"] == created["metadata"]["uid"]
        assert cluster.standing("big") == ("4", "3")
        assert client.get("/nodes/host1/assignments")["items"] == before
        cluster.release(granted)
        assert cluster.standing("big") == ("4", "0")
        cluster.check_books()


# ---- opaque resources, and plain ones ----


def test_who_needs_only_processors_and_memory_needs_no_class(cluster: Cluster) -> None:
    cluster.node("plain", total={"memory": "8Gi", "vcore": 4000})
    cluster.node("special", gpu("gpu0"), total={"memory": "8Gi", "vcore": 4000})
    for node in ("plain", "special"):
        body = {"tags": {"user": "alice", "node": node}, "resource": {"memory": "1Gi", "vcore": 1000}}
        granted = cluster.client.post("/applications", body, status=201)
        assert (granted["node"], granted["devices"]) == (node, [])


def test_a_plain_opaque_dimension_still_works_beside_devices(cluster: Cluster) -> None:
    cluster.node("host1", gpu("gpu0", 2), total={"memory": "64Gi", "licences": 3})
    cluster.create("gpu", selector(GPU))
    granted = cluster.ask({"gpu": 1}, resource={"licences": 2})
    assert granted["resource"] == {"licences": 2}
    (short,) = cluster.ask({"gpu": 1}, 409, tags={"node": "host1"}, resource={"licences": 2})["shortfalls"]
    assert (short["dimension"], short["requested"], short["left"]) == ("licences", 2, 1)
    assert cluster.standing("gpu") == ("2", "1"), "both or nothing"
    refused = cluster.client.post("/applications", {"tags": {}, "resource": {"licences": "500m"}}, status=422)
    assert list(refused["errors"]) == ["resource.licences"], "a count is whole"


def test_a_tool_that_told_of_a_count_tells_of_devices_instead(cluster: Cluster) -> None:
    cluster.create("fpga", selector(("Kind", "Eq", ["fpga"])))
    cluster.node("host1", total={"memory": "64Gi", "fpga": 4})
    assert cluster.standing("fpga") == ("0", "0")
    cluster.node("host1", device("fpga0", 4, Kind="fpga"))
    assert cluster.standing("fpga") == ("4", "0")
    assert "fpga" not in cluster.client.get("/nodes/host1")["total"]
