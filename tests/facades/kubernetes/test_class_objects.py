"""Resource classes as objects: created, read, listed, deleted, and never changed."""

from typing import Any

import pytest

from tests.facades.kubernetes.served import BIG, CLASSES, GPU, TABLE, Served, class_document

MERGE_PATCH = {"Content-Type": "application/merge-patch+json"}
LARGE = {"Kind": "nvidia-gpu", "memory": "40G"}
SMALL = {"Kind": "nvidia-gpu", "memory": "16G"}


def names(document: Any) -> list[str]:
    return [item["metadata"]["name"] for item in document["items"]]


class TestCreate:
    def test_the_object_comes_back_with_its_status(self, served_on_each: Served) -> None:
        served = served_on_each
        served.node("n1", gpu=(4, LARGE), old=(2, SMALL))
        made = served.create("nvidia.high.mem", GPU, BIG, labels={"team": "a"}, annotations={"for": "tests"})
        assert (made["apiVersion"], made["kind"]) == ("resourceclass.rm/v1alpha1", "ResourceClass")
        metadata = made["metadata"]
        assert (metadata["name"], metadata["generation"]) == ("nvidia.high.mem", 1)
        assert (metadata["labels"], metadata["annotations"]) == ({"team": "a"}, {"for": "tests"})
        assert made["spec"] == class_document("", GPU, BIG)["spec"]
        assert made["status"] == {"allocatable": "4", "requested": "0", "free": "4", "uncomparable": 0}
        assert served.get(f"{CLASSES}/nvidia.high.mem") == made

    def test_a_status_that_is_sent_counts_nothing(self, served: Served) -> None:
        document = class_document("a") | {"status": {"allocatable": "100"}}
        assert served.ask("POST", CLASSES, document).document["status"]["allocatable"] == "0"

    def test_what_it_is_need_not_be_said(self, served: Served) -> None:
        assert served.ask("POST", CLASSES, {"metadata": {"name": "a"}}, status=201).document["spec"] == {
            "resourceSelector": []
        }

    def test_yaml_is_read_too(self, served: Served) -> None:
        text = """
            kind: ResourceClass
            metadata: {name: fast.nic}
            spec:
              resourceSelector:
                - matchExpressions:
                    - {key: "Kind", operator: "In", values: ["nic"]}
                    - {key: "speed", operator: "GtEq", values: ["40GBPS"]}
        """
        made = served.ask("POST", CLASSES, text, headers={"Content-Type": "application/yaml"}, status=201)
        (selector,) = made.document["spec"]["resourceSelector"]
        assert selector["matchExpressions"][1]["values"] == ["40GBPS"]

    def test_a_name_may_be_made_by_chance(self, served: Served) -> None:
        made = [served.create("", generateName="gpu-")["metadata"]["name"] for _ in range(3)]
        assert len(set(made)) == 3
        assert all(name.startswith("gpu-") and len(name) == 9 for name in made)

    def test_a_name_is_taken_once(self, served: Served) -> None:
        served.create("a")
        status = served.refused("POST", CLASSES, class_document("a", BIG))
        assert (status["code"], status["reason"]) == (409, "AlreadyExists")
        assert status["message"] == 'resourceclasses.resourceclass.rm "a" already exists'
        assert status["details"] == {"name": "a", "group": "resourceclass.rm", "kind": "resourceclasses"}

    def test_a_rehearsal_creates_nothing(self, served: Served) -> None:
        rehearsed = served.ask("POST", f"{CLASSES}?dryRun=All", class_document("a"), status=201).document
        assert rehearsed["metadata"]["uid"]
        assert names(served.get()) == []
        served.create("a")
        assert (
            served.refused("POST", f"{CLASSES}?dryRun=All", class_document("a"))["reason"] == "AlreadyExists"
        )

    def test_an_object_that_was_read_is_not_created_again(self, served: Served) -> None:
        read = served.create("a")
        served.delete("a")
        assert "resourceVersion should not be set" in served.refused("POST", CLASSES, read)["message"]


class TestStatus:
    def test_it_follows_what_is_granted_and_given_back(self, served_on_each: Served) -> None:
        served = served_on_each
        served.node("n1", gpu=(4, LARGE), old=(2, SMALL))
        served.create("any", GPU)
        served.create("big", GPU, BIG)

        def standing(name: str) -> tuple[str, str, str]:
            status = served.get(f"{CLASSES}/{name}")["status"]
            return status["allocatable"], status["requested"], status["free"]

        granted = served.grant(big=2000)
        assert [standing("any"), standing("big")] == [("6", "2", "4"), ("4", "2", "2")], (
            "one device, two classes"
        )
        served.grant(any=500)
        served.release(granted)
        assert standing("any") == ("6", "500m", "5500m")

    def test_what_cannot_be_compared_is_counted_and_said(self, served: Served) -> None:
        served.node("n1", odd=(3, {"Kind": "nvidia-gpu", "memory": "large"}))
        status = served.create("big", GPU, BIG)["status"]
        assert (status["allocatable"], status["uncomparable"]) == ("0", 3)
        (reason,) = status["uncomparableReasons"]
        assert "large GtEq 30G" in reason

    def test_the_version_is_how_far_the_outbox_had_come(self, served: Served) -> None:
        created = int(served.create("a")["metadata"]["resourceVersion"])
        served.node("n1")
        assert (
            served.version() == int(served.get(f"{CLASSES}/a")["metadata"]["resourceVersion"]) == created + 1
        )


class TestRead:
    def test_a_class_that_is_not_there_is_not_found(self, served: Served) -> None:
        for method in ("GET", "DELETE"):
            status = served.refused(method, f"{CLASSES}/x.y")
            assert (status["code"], status["reason"]) == (404, "NotFound")
            assert status["message"] == 'resourceclasses.resourceclass.rm "x.y" not found'
            assert status["details"] == {
                "name": "x.y",
                "group": "resourceclass.rm",
                "kind": "resourceclasses",
            }

    def test_a_list_comes_by_name_and_in_parts(self, served: Served) -> None:
        for name in ("c", "a", "e", "b", "d"):
            served.create(name)
        whole = served.get()
        assert (whole["kind"], names(whole)) == ("ResourceClassList", ["a", "b", "c", "d", "e"])
        first = served.get(f"{CLASSES}?limit=2")
        assert (names(first), first["metadata"]["remainingItemCount"]) == (["a", "b"], 3)
        served.create("f")
        second = served.get(f"{CLASSES}?limit=9&continue={first['metadata']['continue']}")
        assert names(second) == ["c", "d", "e", "f"]
        # A watch from here tells what came between the parts.
        assert second["metadata"] == {"resourceVersion": first["metadata"]["resourceVersion"]}

    @pytest.mark.parametrize(
        ("query", "found"),
        [
            ("labelSelector=team%3Da", ["one", "two"]),
            ("labelSelector=team%3D%3Da,tier!%3Dgold", ["two"]),
            ("labelSelector=tier", ["one"]),
            ("labelSelector=!team", ["three"]),
            ("labelSelector=team+in+(a,b)", ["one", "two"]),
            ("fieldSelector=metadata.name%3Dtwo", ["two"]),
            ("fieldSelector=metadata.name!%3Dtwo", ["one", "three"]),
            ("fieldSelector=metadata.name%3Dtwo,metadata.name%3Done", []),
            ("fieldSelector=metadata.name%3Dtwo&labelSelector=tier", []),
        ],
    )
    def test_selectors_choose(self, served: Served, query: str, found: list[str]) -> None:
        served.create("one", labels={"team": "a", "tier": "gold"})
        served.create("two", labels={"team": "a"})
        served.create("three")
        assert sorted(names(served.get(f"{CLASSES}?{query}"))) == sorted(found)

    def test_a_version_that_is_not_there_yet_is_to_be_asked_for_anew(self, served: Served) -> None:
        version = served.version()
        served.get(f"{CLASSES}?resourceVersion={version}&resourceVersionMatch=NotOlderThan")
        status = served.refused("GET", f"{CLASSES}?resourceVersion={version + 1}")
        assert (status["code"], status["reason"]) == (410, "Expired")

    def test_a_table_has_a_row_for_each(self, served: Served) -> None:
        served.node("n1", gpu=(4, LARGE), odd=(1, {"Kind": "nvidia-gpu", "memory": "large"}))
        served.create("big", GPU, BIG)
        served.grant(big=1000)
        table = served.get(f"{CLASSES}?includeObject=Object", accept=TABLE)
        assert (table["kind"], table["apiVersion"]) == ("Table", "meta.k8s.io/v1")
        shown = [(each["name"], each["priority"]) for each in table["columnDefinitions"]]
        assert shown == [
            ("Name", 0),
            ("Allocatable", 0),
            ("Requested", 0),
            ("Free", 0),
            ("Age", 0),
            ("Uncomparable", 1),
        ]
        (row,) = table["rows"]
        name, allocatable, requested, free, age, uncomparable = row["cells"]
        assert (name, allocatable, requested, free, uncomparable) == ("big", "4", "1", "3", 1)
        assert age.endswith("s")
        assert row["object"]["spec"]["resourceSelector"]
        one = served.get(f"{CLASSES}/big", accept=TABLE)
        assert one["rows"][0]["object"]["kind"] == "PartialObjectMetadata", (
            "the metadata, unless said otherwise"
        )
        bare = served.get(f"{CLASSES}?includeObject=None", accept=TABLE)
        assert set(bare["rows"][0]) == {"cells"}

    def test_who_wants_only_the_metadata_gets_only_that(self, served: Served) -> None:
        served.create("a", labels={"team": "a"})
        accept = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
        listed = served.get(accept=accept)
        assert listed["kind"] == "PartialObjectMetadataList"
        (item,) = listed["items"]
        assert (set(item), item["metadata"]["labels"]) == ({"apiVersion", "kind", "metadata"}, {"team": "a"})


class TestDelete:
    def test_a_status_says_what_is_gone(self, served_on_each: Served) -> None:
        served = served_on_each
        uid = served.create("a")["metadata"]["uid"]
        status = served.delete("a")
        assert (status["kind"], status["status"]) == ("Status", "Success")
        assert status["details"]["uid"] == uid
        assert names(served.get()) == []

    def test_what_it_gave_stays_and_is_counted_again(self, served: Served) -> None:
        served.node("n1", gpu=(4, LARGE))
        served.create("a")
        served.grant(a=3000)
        served.delete("a")
        assert served.create("a")["status"]["requested"] == "3"

    def test_only_the_one_that_is_meant(self, served: Served) -> None:
        first = served.create("a")["metadata"]
        served.delete("a")
        second = served.create("a")["metadata"]
        for conditions in ({"uid": first["uid"]}, {"resourceVersion": first["resourceVersion"]}):
            status = served.refused("DELETE", f"{CLASSES}/a", {"preconditions": conditions})
            assert (status["code"], status["reason"]) == (409, "Conflict")
        options = {"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": "Foreground"}
        conditions = {"uid": second["uid"], "resourceVersion": second["resourceVersion"]}
        served.ask("DELETE", f"{CLASSES}/a", {**options, "preconditions": conditions}, status=200)

    def test_a_rehearsal_removes_nothing(self, served: Served) -> None:
        served.create("a")
        served.ask("DELETE", f"{CLASSES}/a?dryRun=All", status=200)
        served.ask("DELETE", f"{CLASSES}/a", {"dryRun": ["All"]}, status=200)
        assert names(served.get()) == ["a"]


class TestChange:
    def test_what_stays_as_it_is_succeeds(self, served: Served) -> None:
        stored = served.create("a", GPU, labels={"team": "a"})
        replaced = served.ask("PUT", f"{CLASSES}/a", stored, status=200).document
        assert replaced["metadata"]["uid"] == stored["metadata"]["uid"]
        for patch in ({}, {"metadata": {"labels": {"team": "a", "other": None}}}, {"status": {"free": "9"}}):
            served.ask("PATCH", f"{CLASSES}/a", patch, headers=MERGE_PATCH, status=200)

    @pytest.mark.parametrize(
        ("patch", "field"),
        [
            ({"spec": {"resourceSelector": []}}, "spec"),
            ({"spec": None}, "spec"),
            ({"metadata": {"labels": {"team": "b"}}}, "metadata.labels"),
            ({"metadata": {"annotations": {"for": "tests"}}}, "metadata.annotations"),
        ],
    )
    def test_what_would_be_different_is_refused_with_its_field(
        self, served: Served, patch: Any, field: str
    ) -> None:
        before = served.create("a", GPU, labels={"team": "a"})
        reply = served.ask("PATCH", f"{CLASSES}/a", patch, headers=MERGE_PATCH, status=422)
        assert reply.document["reason"] == "Invalid"
        (cause,) = reply.document["details"]["causes"]
        assert (cause["field"], cause["reason"]) == (field, "FieldValueInvalid")
        assert "cannot be changed" in cause["message"]
        assert served.get(f"{CLASSES}/a") == before

    def test_a_replacement_of_another_is_refused(self, served: Served) -> None:
        stored = served.create("a", GPU)
        assert served.refused("PUT", f"{CLASSES}/a", class_document("a", BIG))["reason"] == "Invalid"
        assert served.refused("PUT", f"{CLASSES}/b", class_document("b"))["reason"] == "NotFound"
        stored["metadata"]["uid"] = "another"
        assert served.refused("PUT", f"{CLASSES}/a", stored)["reason"] == "Conflict"
        status = served.refused("PUT", f"{CLASSES}/a", class_document("b"))
        assert status["message"] == "the name of the object (b) does not match the name on the URL (a)"

    @pytest.mark.parametrize("media_type", ["application/json-patch+json", "application/apply-patch+yaml"])
    def test_patches_of_other_kinds_are_not_taken(self, served: Served, media_type: str) -> None:
        served.create("a")
        status = served.refused("PATCH", f"{CLASSES}/a", "[]", Content_Type=media_type)
        assert (status["code"], status["reason"]) == (415, "UnsupportedMediaType")
