"""Devices and resource classes over HTTP: registered, looked at, explained."""

import pytest

from tests.facades.conftest import GIB, Api, Json
from tests.facades.gpus import BIG_GPU, NIC, ON_SQLITE, SMALL_GPU, ask, free, gpus, register, standing

__all__ = ["gpus"]


@ON_SQLITE
class TestRegistration:
    def test_devices_are_shown_as_they_were_sent_with_what_is_free_of_each(self, gpus: Api) -> None:
        node = gpus.get("/nodes/h1")
        assert node["devices"] == [BIG_GPU, SMALL_GPU, {"count": 1, **NIC}]
        assert free(gpus) == {"gpu0": (2, "1"), "gpu1": (2, "1"), "nic0": (1, "1")}
        assert node["total"] == {"memory": 8 * GIB}, "devices are shown by themselves"
        ask(gpus, {"big": "300m"})
        assert free(gpus)["gpu0"] == (1, "1")
        ask(gpus, {"big": 1})
        assert free(gpus)["gpu0"] == (0, "700m")

    def test_a_limit_may_be_one_of_devices(self, gpus: Api) -> None:
        signature = gpus.get("/nodes/h1")["free_devices"][0]["signature"]
        gpus.put("/limits", {"tags": {"user": "alice"}, "total": {f"device/{signature}": 1500}}, status=201)
        ask(gpus, {"big": 1})
        (short,) = ask(gpus, {"big": 1}, 409)["shortfalls"]
        assert (short["label"], short["dimension"]) == ({"user": "alice"}, f"device/{signature}")
        assert (short["requested"], short["left"]) == (1000, 500)

    def test_a_device_that_goes_while_it_is_held_stays_held_until_it_is_given_back(self, gpus: Api) -> None:
        held = ask(gpus, {"big": 1})
        node = register(gpus, "h1", SMALL_GPU)
        assert node["over_limit"]
        assert free(gpus) == {"gpu1": (2, "1"), "gpu0": (0, "0")}
        assert standing(gpus, "big") == ("0", "1", "0")
        gpus.post(f"/applications/{held['id']}/release", status=200)
        assert free(gpus) == {"gpu1": (2, "1")}
        assert not gpus.get("/nodes/h1")["over_limit"]
        gpus.audit()


class TestFaults:
    @pytest.mark.parametrize(
        ("device", "field", "reason"),
        [
            (
                {"attributes": {"memory": {"quantity": "1e1000000"}}},
                "attributes.memory.quantity",
                "position 2:",
            ),
            ({"attributes": {"driver": {"version": "1.x"}}}, "attributes.driver.version", "position 1:"),
            ({"attributes": {"speed": {"measure": "40"}}}, "attributes.speed.measure", "position 2:"),
            (
                {"attributes": {"memory": 1.5}},
                "attributes.memory",
                "write a number with a fraction as a text",
            ),
            ({"attributes": {"memory": None}}, "attributes.memory", "must be a text"),
            ({"attributes": {"memory": {"bytes": 1}}}, "attributes.memory", "unknown kind"),
            ({"attributes": {"model": "x" * 65}}, "attributes.model", "longer than 64"),
            ({"attributes": {"a b": 1}}, "attributes.a b", "the key needs"),
            ({"attributes": {f"key{n}": n for n in range(33)}}, "attributes", "at most 32"),
            ({"attributes": ["gpu"]}, "attributes", "must be an object"),
            ({"count": 0}, "count", "greater than or equal to 1"),
            ({"count": "2"}, "count", "Not a valid integer"),
            ({"name": "gpu/0"}, "name", "without /"),
            ({"color": "red"}, "color", "Unknown field"),
        ],
    )
    def test_what_is_wrong_with_a_device_is_named_by_field_and_position(
        self, refusing: Api, device: Json, field: str, reason: str
    ) -> None:
        problem = register(refusing, "h0", {"name": "gpu0"}, {"name": "gpu1", **device}, status=422)
        ((path, (said,)),) = problem["errors"].items()
        assert path == f"devices.1.{field}"
        assert reason in said

    def test_two_devices_of_one_name_are_refused(self, refusing: Api) -> None:
        problem = register(refusing, "h0", {"name": "gpu0"}, {"name": "gpu0"}, status=422)
        assert problem["errors"] == {"devices": ["two devices have one name"]}

    @pytest.mark.parametrize(
        ("method", "path", "body", "field"),
        [
            ("PUT", "/nodes/h9", {"total": {"device/gpu-1": 1000}}, "total.device/gpu-1"),
            ("POST", "/applications", {"tags": {}, "resource": {"device/gpu-1": 1}}, "resource.device/gpu-1"),
            (
                "POST",
                "/applications/01a1f7aa-c970-7464-95f6-322eeb11b8ca/use",
                {"resource": {"device/gpu-1": 1}},
                "resource.device/gpu-1",
            ),
        ],
    )
    def test_devices_are_no_amounts_that_one_may_have_or_ask_for(
        self, refusing: Api, method: str, path: str, body: Json, field: str
    ) -> None:
        problem = refusing.call(method, path, body, status=422)
        assert list(problem["errors"]) == [field]


@ON_SQLITE
class TestClasses:
    def test_they_are_listed_by_name_with_how_they_stand(self, gpus: Api) -> None:
        ask(gpus, {"big": 1})
        found = gpus.get("/classes")
        assert found["next_cursor"] is None
        assert [(each["name"], each["allocatable"], each["requested"]) for each in found["items"]] == [
            ("any", "4", "1"),
            ("big", "2", "1"),
        ]
        assert gpus.get("/classes/big") == found["items"][1]

    def test_devices_that_cannot_be_compared_are_counted_with_reasons(self, gpus: Api) -> None:
        odd = {"name": "odd", "count": 3, "attributes": {"Kind": "nvidia-gpu", "memory": "lots"}}
        register(gpus, "h2", odd, status=201)
        found = gpus.get("/classes/big")
        assert (found["allocatable"], found["uncomparable"]) == ("2", 3)
        (reason,) = found["uncomparable_reasons"]
        assert reason.startswith("lots GtEq 30G: ")

    def test_explaining_a_class_shows_both_values_of_each_expression(self, gpus: Api) -> None:
        found = gpus.get("/classes/big/explain")
        explained = {each["attributes"].get("memory"): each for each in found["signatures"]}
        assert [explained[memory]["selected"] for memory in ("40G", "16G", None)] == [True, False, False]
        assert [explained[memory]["devices"] for memory in ("40G", "16G", None)] == [2, 2, 1]
        (selector,) = explained["16G"]["selectors"]
        assert selector["outcome"] == "fails"
        assert [(each["outcome"], each["text"]) for each in selector["expressions"]] == [
            ("holds", "nvidia-gpu In [nvidia-gpu]"),
            ("fails", "16G GtEq 30G"),
        ]
        (of_the_nic,) = explained[None]["selectors"]
        assert of_the_nic["expressions"][1]["text"] == "(missing) GtEq 30G"

    def test_what_classes_share_is_told_with_what_is_free_without_it(self, gpus: Api) -> None:
        ask(gpus, {"big": 1})
        (overlap,) = gpus.get("/classes/any/explain")["overlaps"]
        assert overlap == {"class": "big", "shared": "2", "shared_free": "1", "free_without_shared": "2"}
        (overlap,) = gpus.get("/classes/big/explain")["overlaps"]
        assert overlap == {"class": "any", "shared": "2", "shared_free": "1", "free_without_shared": "0"}

    @pytest.mark.parametrize("path", ["/classes/fast.nic", "/classes/fast.nic/explain"])
    def test_an_unknown_class_is_not_found(self, gpus: Api, path: str) -> None:
        assert gpus.get(path, 404)["code"] == "unknown_class"


class TestAssignments:
    def test_they_are_listed_by_application(self, gpus: Api) -> None:
        held, used, _ = ask(gpus, {"big": 1}), ask(gpus, {"any": "500m"}), gpus.apply()
        gpus.post(f"/applications/{used['id']}/use", status=200)
        found = gpus.get("/nodes/h1/assignments")
        assert found["seq"] == gpus.get("/audit")["seq"]
        assert found["items"] == [
            {
                "application": each["id"],
                "state": state,
                "tags": {"user": "alice", "node": "h1"},
                "devices": each["devices"],
                "annotations": each["annotations"],
            }
            for each, state in ((held, "locked"), (used, "used"))
        ]

    def test_they_are_those_of_one_node(self, gpus: Api) -> None:
        register(gpus, "h2", BIG_GPU, status=201)
        ask(gpus, {"any": 1}, tags={"node": "h2"})
        assert gpus.get("/nodes/h1/assignments")["items"] == []

    def test_what_is_given_back_is_none_any_more(self, gpus: Api) -> None:
        held = ask(gpus, {"any": 1})
        gpus.post(f"/applications/{held['id']}/release", status=200)
        assert gpus.get("/nodes/h1/assignments")["items"] == []

    def test_a_node_that_is_not_registered_has_none(self, gpus: Api) -> None:
        assert gpus.get("/nodes/h9/assignments", 404)["code"] == "unknown_node"
        gpus.delete("/nodes/h1", status=204)
        assert gpus.get("/nodes/h1/assignments", 404)["code"] == "unknown_node"
