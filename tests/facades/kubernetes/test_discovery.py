"""What a client learns of the API before it asks for anything."""

from typing import Any

import pytest

from tests.facades.kubernetes.served import CLASSES, Served

GROUP = "/apis/resourceclass.rm"
VERSION = f"{GROUP}/v1alpha1"
V2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
V2BETA1 = "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"


def references(part: object) -> set[str]:
    if isinstance(part, dict):
        own = {part["$ref"]} if isinstance(part.get("$ref"), str) else set()
        return own.union(*(references(below) for below in part.values()))
    if isinstance(part, list):
        return set().union(*(references(below) for below in part))
    return set()


def test_the_group_has_one_kind_for_the_whole_cluster(served: Served) -> None:
    (group,) = served.get("/apis")["groups"]
    assert group["preferredVersion"]["groupVersion"] == "resourceclass.rm/v1alpha1"
    assert served.get(GROUP)["versions"] == group["versions"]
    (resource,) = served.get(VERSION)["resources"]
    assert (resource["name"], resource["singularName"]) == ("resourceclasses", "resourceclass")
    assert (resource["kind"], resource["namespaced"]) == ("ResourceClass", False)
    assert resource["shortNames"] == ["rc"]
    assert resource["verbs"] == ["create", "delete", "get", "list", "watch"]


def test_of_kubernetes_own_objects_there_are_none(served: Served) -> None:
    assert served.get("/api")["versions"] == []


@pytest.mark.parametrize(("accept", "version"), [(V2, "v2"), (V2BETA1, "v2beta1")])
def test_all_of_it_is_told_in_one_document(served: Served, accept: str, version: str) -> None:
    reply = served.ask("GET", "/apis", headers={"Accept": f"{accept},application/json"}, status=200)
    assert reply.headers["content-type"] == accept
    assert reply.document["apiVersion"] == f"apidiscovery.k8s.io/{version}"
    (group,) = reply.document["items"]
    (described,) = group["versions"]
    (resource,) = described["resources"]
    assert group["metadata"]["name"] == "resourceclass.rm"
    assert (resource["resource"], resource["scope"]) == ("resourceclasses", "Cluster")
    assert resource["responseKind"]["kind"] == "ResourceClass"
    core = served.ask("GET", "/api", headers={"Accept": accept}, status=200).document
    assert (core["kind"], core["items"]) == ("APIGroupDiscoveryList", [])


def test_a_form_of_discovery_that_is_not_known_falls_back(served: Served) -> None:
    later = "application/json;g=apidiscovery.k8s.io;v=v9;as=APIGroupDiscoveryList"
    assert served.get("/apis", accept=f"{later},application/json")["kind"] == "APIGroupList"


def test_the_version_reads_like_one_of_kubernetes(served: Served) -> None:
    version = served.get("/version")
    assert version["gitVersion"].startswith(f"v{version['major']}.{version['minor']}.0+rm-service-")


def test_openapi_describes_the_objects(served: Served) -> None:
    index = served.get("/openapi/v3")["paths"]
    document = served.get(index["apis/resourceclass.rm/v1alpha1"]["serverRelativeURL"])
    schemas = document["components"]["schemas"]
    assert references(document) <= {f"#/components/schemas/{name}" for name in schemas}
    described = schemas["rm.resourceclass.v1alpha1.ResourceClass"]
    kind = {"group": "resourceclass.rm", "version": "v1alpha1", "kind": "ResourceClass"}
    assert described["x-kubernetes-group-version-kind"] == [kind]
    assert set(described["properties"]) == {"apiVersion", "kind", "metadata", "spec", "status"}
    # Where kubectl looks whether it may leave the checking of fields to the server.
    patch: dict[str, Any] = document["paths"][f"{CLASSES}/{{name}}"]["patch"]
    assert patch["x-kubernetes-group-version-kind"] == kind
    assert {"fieldValidation", "dryRun"} <= {each["name"] for each in patch["parameters"]}


def test_describe_finds_no_events_of_an_object(served: Served) -> None:
    path = "/api/v1/events?fieldSelector=involvedObject.uid%3D1%2CinvolvedObject.name%3Dx&limit=500"
    events = served.get(path, accept="application/vnd.kubernetes.protobuf,application/json")
    assert (events["kind"], events["items"]) == ("EventList", [])


@pytest.mark.parametrize(
    "path", ["/api/v1/events", "/api/v1/events?fieldSelector=x", "/api/v1/nodes", "/healthz"]
)
def test_other_paths_are_left_to_others(served: Served, path: str) -> None:
    assert served.ask("GET", path).headers["content-type"] != "application/json", "the application behind"


@pytest.mark.parametrize(
    "path", ["/apis/apps/v1", f"{VERSION}/pods", f"{CLASSES}/x/status", f"{CLASSES}/", "/openapi/v2"]
)
def test_what_is_not_there_is_not_found(served: Served, path: str) -> None:
    status = served.refused("GET", path)
    assert (status["code"], status["reason"]) == (404, "NotFound")
    assert "details" not in status


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/apis"),
        ("DELETE", "/version"),
        ("PUT", CLASSES),
        ("DELETE", CLASSES),
        ("POST", f"{CLASSES}/x"),
    ],
)
def test_a_method_that_is_not_allowed_is_said_so(served: Served, method: str, path: str) -> None:
    status = served.refused(method, path)
    assert (status["code"], status["reason"]) == (405, "MethodNotAllowed")


@pytest.mark.parametrize("path", ["/api", "/apis", VERSION, "/version", "/openapi/v3", CLASSES])
def test_only_json_is_answered(served: Served, path: str) -> None:
    status = served.refused("GET", path, Accept="application/vnd.kubernetes.protobuf")
    assert (status["code"], status["reason"]) == (406, "NotAcceptable")


def test_requests_are_counted_by_route_and_not_by_class(served: Served) -> None:
    served.get("/version")
    served.get()
    served.refused("GET", f"{CLASSES}/one")
    served.refused("GET", "/apis/other")
    assert served.requests == [
        ("GET", "/version", 200),
        ("GET", CLASSES, 200),
        ("GET", f"{CLASSES}/{{name}}", 404),
        ("GET", "(none)", 404),
    ]
