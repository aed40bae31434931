"""Devices over HTTP, asked for by resource class: granted, refused, repeated, waited for, given back."""

import pytest

from tests.facades.conftest import GIB, Api, Json, new_id
from tests.facades.gpus import (
    BIG_GPU,
    ON_SQLITE,
    PREFIX,
    SMALL_GPU,
    ask,
    gpus,
    quantities,
    register,
    standing,
)

__all__ = ["gpus"]


@ON_SQLITE
class TestAsking:
    def test_the_answer_names_node_devices_quantities_and_annotations(self, gpus: Api) -> None:
        document = ask(gpus, {"big": 1, "any": "500m"}, resource={"memory": GIB})
        assert (document["state"], document["node"]) == ("locked", "h1")
        assert document["classes"] == {"big": "1", "any": "500m"}
        assert document["resource"] == {"memory": GIB}
        fraction, whole = sorted(document["devices"], key=lambda each: str(each["class"]))
        assert fraction == {
            "class": "any",
            "device": "gpu0",
            "quantity": "500m",
            "units": [{"unit": 0, "quantity": "500m"}],
        }
        assert whole == {
            "class": "big",
            "device": "gpu0",
            "quantity": "1",
            "units": [{"unit": 1, "quantity": "1"}],
        }
        assert document["annotations"] == {f"{PREFIX}_big_gpu0": "1", f"{PREFIX}_any_gpu0": "500m"}
        assert gpus.get(f"/applications/{document['id']}") == document
        gpus.audit()

    def test_there_is_an_annotation_for_each_device_of_a_class(self, gpus: Api) -> None:
        document = ask(gpus, {"any": 3})
        assert document["annotations"] == {f"{PREFIX}_any_gpu0": "2", f"{PREFIX}_any_gpu1": "1"}

    def test_who_asks_for_no_class_has_no_devices(self, gpus: Api) -> None:
        document = gpus.apply()
        assert (document["classes"], document["devices"], document["annotations"]) == (None, [], {})

    def test_a_node_may_be_named(self, gpus: Api) -> None:
        register(gpus, "h2", BIG_GPU, status=201)
        assert ask(gpus, {"any": 1}, tags={"user": "a", "node": "h2"})["node"] == "h2"

    def test_a_selector_says_on_which_nodes_to_look(self, gpus: Api) -> None:
        register(gpus, "h2", BIG_GPU, status=201)
        assert ask(gpus, {"any": 1}, placement={"selector": "node=h2"})["node"] == "h2"

    @pytest.mark.parametrize(
        ("strategy", "device"), [("first_fit", "gpu0"), ("best_fit", "gpu1"), ("spread", "gpu0")]
    )
    def test_the_strategy_says_which_device(self, gpus: Api, strategy: str, device: str) -> None:
        register(gpus, "h1", {**BIG_GPU, "count": 4}, SMALL_GPU)
        document = ask(gpus, {"any": 1}, device_strategy=strategy)
        assert quantities(document) == {("any", device): "1"}

    def test_fractions_share_a_unit_and_leave_no_whole_one(self, gpus: Api) -> None:
        register(gpus, "h1", {**BIG_GPU, "count": 1})
        first, second = ask(gpus, {"big": "500m"}), ask(gpus, {"big": "0.4"})
        assert quantities(first) == {("big", "gpu0"): "500m"}
        assert quantities(second) == {("big", "gpu0"): "400m"}
        (short,) = ask(gpus, {"big": "200m"}, 409, tags={"node": "h1"})["shortfalls"]
        assert (short["requested"], short["left"]) == (200, 100)
        assert standing(gpus, "big") == ("1", "900m", "100m")

    def test_a_class_that_nobody_created_is_a_conflict(self, gpus: Api) -> None:
        problem = ask(gpus, {"any": 1, "fast.nic": 1}, 409)
        assert (problem["code"], problem["field"]) == ("unknown_class", "classes.fast.nic")
        assert "fast.nic" in problem["detail"]

    def test_a_shortfall_names_the_class_in_thousandths_of_a_device(self, gpus: Api) -> None:
        ask(gpus, {"big": 1})
        on_a_node = ask(gpus, {"big": 2}, 409, tags={"user": "bob", "node": "h1"})
        assert on_a_node["code"] == "insufficient_resources"
        (short,) = on_a_node["shortfalls"]
        assert short["label"] == {"node": "h1"}
        assert short["dimension"] == "class/big"
        assert (short["requested"], short["left"], short["total"]) == (2000, 1000, 2000)
        anywhere = ask(gpus, {"big": 2}, 409)
        (short,) = anywhere["shortfalls"]
        assert (short["dimension"], short["requested"], short["left"]) == ("class/big", 2000, 1000)
        assert short["reason"] == "no_node_fits"

    def test_classes_that_fit_one_by_one_and_not_together_are_told_so(self, gpus: Api) -> None:
        problem = ask(gpus, {"big": 2, "any": 3}, 409, tags={"node": "h1"})
        assert {each["dimension"]: each["reason"] for each in problem["shortfalls"]} == {
            "class/big": "classes_overlap",
            "class/any": "classes_overlap",
        }

    def test_amounts_and_classes_are_granted_together_or_not_at_all(self, gpus: Api) -> None:
        problem = ask(gpus, {"any": 1}, 409, resource={"memory": "9Gi"})
        assert {each["dimension"] for each in problem["shortfalls"]} == {"memory"}
        assert standing(gpus, "any") == ("4", "0", "4")


class TestFaults:
    @pytest.mark.parametrize(
        ("classes", "field", "reason"),
        [
            ({}, "classes", "at least one class"),
            (["big"], "classes", "must be an object"),
            ({"big": 0}, "classes.big", "above 0"),
            ({"big": -1}, "classes.big", "above 0"),
            ({"big": 1.5}, "classes.big", "a whole number or a quantity"),
            ({"big": True}, "classes.big", "a whole number or a quantity"),
            ({"big": "1500m"}, "classes.big", "whole number of units, or less than one"),
            ({"big": "0.5m"}, "classes.big", "in thousandths"),
            ({"big": "2x"}, "classes.big", "position 1"),
            ({"big": "1e1000000"}, "classes.big", "position 2"),
            ({"big": 10_001}, "classes", "at most 10000"),
            ({f"c{number}": 1 for number in range(9)}, "classes", "at most 8"),
            ({f"c{number}": "1m" for number in range(5)}, "classes", "at most 4"),
        ],
    )
    def test_what_cannot_be_asked_for_is_named(
        self, refusing: Api, classes: object, field: str, reason: str
    ) -> None:
        problem = ask(refusing, classes, 422)
        ((path, (said,)),) = problem["errors"].items()
        assert path == field
        assert reason in said

    @pytest.mark.parametrize(
        ("body", "field"),
        [
            ({"tags": {}}, "resource"),
            ({"tags": {}, "resource": {"memory": 1}, "device_strategy": "spread"}, "device_strategy"),
            ({"tags": {}, "classes": {"big": 1}, "device_strategy": "random"}, "device_strategy"),
        ],
    )
    def test_what_does_not_go_together_is_named(self, refusing: Api, body: Json, field: str) -> None:
        assert list(refusing.post("/applications", body, status=422)["errors"]) == [field]


@ON_SQLITE
class TestRepeating:
    def test_the_same_classes_in_other_words_are_the_same_request(self, gpus: Api) -> None:
        name = new_id()
        first = ask(gpus, {"big": 1, "any": "500m"}, id=name)
        assert ask(gpus, {"any": "0.5", "big": "1"}, 200, id=name) == first
        assert standing(gpus, "any")[1] == "1500m"

    @pytest.mark.parametrize(
        ("changes", "field"),
        [
            ({"classes": {"big": 2}}, "classes"),
            ({"classes": {"big": 1, "any": 1}}, "classes"),
            ({"classes": {"any": 1}}, "classes"),
            ({"device_strategy": "spread"}, "device_strategy"),
        ],
    )
    def test_another_request_under_the_same_id_is_refused(self, gpus: Api, changes: Json, field: str) -> None:
        name = new_id()
        ask(gpus, {"big": 1}, id=name)
        body: Json = {"tags": {"user": "alice"}, "classes": {"big": 1}, "id": name} | changes
        problem = gpus.post("/applications", body, status=409)
        assert (problem["code"], problem["field"]) == ("id_reused", field)

    def test_an_idempotency_key_stands_for_an_id(self, gpus: Api) -> None:
        body = {"tags": {"user": "alice"}, "classes": {"any": 1}}
        headers = {"Idempotency-Key": "mine"}
        first = gpus.call("POST", "/applications", body, status=201, headers=headers)
        assert gpus.call("POST", "/applications", body, status=200, headers=headers) == first


class TestLife:
    def test_use_keeps_the_devices_and_release_gives_them_back(self, gpus: Api) -> None:
        held = ask(gpus, {"big": 2})
        used = gpus.post(f"/applications/{held['id']}/use", {"resource": {"memory": GIB}}, status=200)
        assert (used["state"], used["devices"]) == ("used", held["devices"])
        assert standing(gpus, "big") == ("2", "2", "0")
        assert standing(gpus, "any") == ("4", "2", "2"), "a device counts in every class that selects it"
        gpus.post(f"/applications/{held['id']}/release", status=200)
        assert standing(gpus, "big") == ("2", "0", "2")
        gpus.audit()

    def test_who_waits_for_devices_is_woken_when_they_are_given_back(self, gpus: Api) -> None:
        held = ask(gpus, {"big": 2})
        waiting = ask(gpus, {"big": 1}, 202, wait_seconds=60)
        assert (waiting["state"], waiting["position"], waiting["devices"]) == ("waiting", 1, [])
        assert waiting["annotations"] == {}
        gpus.post(f"/applications/{held['id']}/release", status=200)
        gpus.post(f"/applications/{held['id']}/release", status=200)  # the wake came before this one
        granted = gpus.get(f"/applications/{waiting['id']}")
        assert (granted["state"], granted["node"]) == ("locked", "h1")
        assert granted["annotations"] == {f"{PREFIX}_big_gpu0": "1"}

    def test_who_waits_for_devices_is_woken_by_a_node_that_has_them(self, gpus: Api) -> None:
        waiting = ask(gpus, {"big": 3}, 202, wait_seconds=60)
        register(gpus, "h2", {**BIG_GPU, "count": 4}, status=201)
        register(gpus, "h2", {**BIG_GPU, "count": 4})  # the wake came before this one
        assert gpus.get(f"/applications/{waiting['id']}")["node"] == "h2"

    def test_who_waits_for_devices_does_not_hold_up_who_needs_none(self, gpus: Api) -> None:
        ask(gpus, {"big": 3}, 202, wait_seconds=60)
        assert gpus.apply()["state"] == "locked"
        assert ask(gpus, {"any": 1}, tags={"user": "bob"})["state"] == "locked"

    def test_a_lost_node_has_nothing_to_give(self, gpus: Api) -> None:
        ask(gpus, {"any": 1})
        gpus.delete("/nodes/h1", status=204)
        assert standing(gpus, "any") == ("0", "0", "0")
        gpus.audit()


@ON_SQLITE
class TestExplain:
    def test_what_would_be_granted_is_named_and_not_taken(self, gpus: Api) -> None:
        body = {"tags": {"user": "alice"}, "classes": {"big": 1, "any": 1}}
        explained = gpus.post("/applications/explain", body, status=200)
        assert (explained["would_fit"], explained["node"]) == (True, "h1")
        assert quantities(explained) == {("big", "gpu0"): "1", ("any", "gpu0"): "1"}
        assert standing(gpus, "any") == ("4", "0", "4")

    def test_what_is_short_is_named(self, gpus: Api) -> None:
        body = {"tags": {"user": "alice"}, "classes": {"big": 3}}
        explained = gpus.post("/applications/explain", body, status=200)
        assert (explained["would_fit"], explained["devices"]) == (False, [])
        assert [each["dimension"] for each in explained["shortfalls"]] == ["class/big"]

    def test_an_unknown_class_would_not_fit(self, gpus: Api) -> None:
        body = {"tags": {"user": "alice"}, "classes": {"fast.nic": 1}}
        explained = gpus.post("/applications/explain", body, status=200)
        assert (explained["would_fit"], explained["code"]) == (False, "unknown_class")


@ON_SQLITE
class TestBatch:
    def test_each_application_of_a_batch_may_ask_for_classes(self, gpus: Api) -> None:
        asks = [
            {"op": "apply", "tags": {"user": "alice"}, "classes": classes}
            for classes in ({"big": 2}, {"big": 1}, {"fast.nic": 1}, {"any": "500m"})
        ]
        results = gpus.post("/batch", {"operations": asks}, status=200)["results"]
        assert [each["status"] for each in results] == [201, 409, 409, 201]
        assert [each.get("code") for each in results[1:3]] == ["insufficient_resources", "unknown_class"]
        assert results[0]["annotations"] == {f"{PREFIX}_big_gpu0": "2"}
        assert results[3]["annotations"] == {f"{PREFIX}_any_gpu1": "500m"}
        gpus.audit()

    def test_an_atomic_batch_that_fails_takes_no_device(self, gpus: Api) -> None:
        asks = [
            {"op": "apply", "tags": {"user": "alice"}, "classes": classes}
            for classes in ({"big": 2}, {"big": 1})
        ]
        results = gpus.post("/batch", {"operations": asks, "atomic": True}, status=200)["results"]
        assert [each["status"] for each in results] == [424, 409]
        assert standing(gpus, "any") == ("4", "0", "4")
        gpus.audit()

    def test_what_is_wrong_is_named_by_its_place(self, gpus: Api) -> None:
        asks = [{"op": "apply", "tags": {}, "classes": {"big": each}} for each in (1, "2x")]
        problem = gpus.post("/batch", {"operations": asks}, status=422)
        assert list(problem["errors"]) == ["operations.1.classes.big"]
