"""The OpenAPI documents that kubectl reads: for `explain`, and to know that the server checks fields."""

import hashlib
from functools import cache

import orjson

from rm_service import __version__
from rm_service.domain.class_expressions import Operator
from rm_service.facades.kubernetes.group import (
    CLASSES_PATH,
    GROUP,
    GROUP_VERSION,
    KIND,
    LIST_KIND,
    VERSION,
)
from rm_service.facades.kubernetes.media_types import JSON, YAML
from rm_service.facades.kubernetes.objects import Document

OPENAPI = "/openapi/v3"
GROUP_DOCUMENT = f"{OPENAPI}/apis/{GROUP_VERSION}"
_SCHEMAS = "#/components/schemas/"
_OWN = "rm.resourceclass.v1alpha1."
_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_QUANTITY = "io.k8s.apimachinery.pkg.api.resource.Quantity"
_KIND_OF = "x-kubernetes-group-version-kind"
_CLASS_KIND = {"group": GROUP, "version": VERSION, "kind": KIND}


@cache
def index() -> bytes:
    """Which documents there are. The address of one changes with it, so that clients may keep it."""
    digest = hashlib.sha256(group_document()).hexdigest()[:32]
    path = f"apis/{GROUP_VERSION}"
    return orjson.dumps({"paths": {path: {"serverRelativeURL": f"{GROUP_DOCUMENT}?hash={digest}"}}})


@cache
def group_document() -> bytes:
    """The whole of the group."""
    return orjson.dumps(
        {
            "openapi": "3.0.0",
            "info": {"title": "rm-service: resource classes", "version": __version__},
            "paths": {CLASSES_PATH: _collection(), f"{CLASSES_PATH}/{{name}}": _item()},
            "components": {"schemas": _schemas()},
        }
    )


def _collection() -> Document:
    asked = ("labelSelector", "fieldSelector", "limit", "continue", "watch", "resourceVersion")
    sending = [_query("dryRun"), _query("fieldValidation")]
    return {
        "get": _operation("list", LIST_KIND, [*map(_query, (*asked, "timeoutSeconds"))]),
        "post": {**_operation("post", KIND, sending, status="201"), **_body((JSON, YAML))},
    }


def _item() -> Document:
    deleted = {
        **_operation("delete", "", [_query("dryRun"), _query("propagationPolicy")]),
        "responses": {"200": _content({"$ref": f"{_SCHEMAS}{_META}Status"})},
    }
    sending = [_query("dryRun"), _query("fieldValidation")]
    return {
        "parameters": [{"name": "name", "in": "path", "required": True, "schema": {"type": "string"}}],
        "get": _operation("get", KIND, []),
        "delete": deleted,
        # Both succeed only where nothing changes; kubectl looks here for the parameters that it may send.
        "put": {**_operation("put", KIND, sending), **_body((JSON, YAML))},
        "patch": {**_operation("patch", KIND, sending), **_body(("application/merge-patch+json",))},
    }


def _operation(action: str, answered: str, parameters: list[Document], *, status: str = "200") -> Document:
    return {
        "tags": [f"{GROUP.replace('.', '_')}_{VERSION}"],
        "operationId": f"{action}ResourceClass",
        "parameters": parameters,
        "responses": {status: _content({"$ref": f"{_SCHEMAS}{_OWN}{answered}"})},
        "x-kubernetes-action": action,
        _KIND_OF: _CLASS_KIND,
    }


def _query(name: str) -> Document:
    kinds = {"limit": "integer", "timeoutSeconds": "integer", "watch": "boolean"}
    return {"name": name, "in": "query", "schema": {"type": kinds.get(name, "string"), "uniqueItems": True}}


def _content(schema: Document) -> Document:
    return {"description": "OK", "content": {JSON: {"schema": schema}}}


def _body(media_types: tuple[str, ...]) -> Document:
    schema = {"$ref": f"{_SCHEMAS}{_OWN}{KIND}"}
    return {"requestBody": {"content": {each: {"schema": schema} for each in media_types}}}


def _schemas() -> Document:
    return {
        f"{_OWN}{KIND}": _class_schema(),
        f"{_OWN}{LIST_KIND}": _list_schema(),
        f"{_OWN}ResourceClassSpec": _object(
            "What a class selects.",
            resourceSelector=_array(
                _ref(f"{_OWN}ResourcePropertySelector"),
                "Selectors of devices: one that holds is enough. Without any the class selects nothing.",
            ),
        ),
        f"{_OWN}ResourcePropertySelector": _object(
            "Selects the devices for which all of its expressions hold.",
            matchExpressions=_array(
                _ref(f"{_OWN}ResourceSelectorRequirement"),
                "All of them must hold. A selector without any selects nothing.",
            ),
        ),
        f"{_OWN}ResourceSelectorRequirement": _requirement_schema(),
        f"{_OWN}ResourceClassStatus": _status_schema(),
        _QUANTITY: _text("An amount as Kubernetes writes it: `3`, `2500m`."),
        f"{_META}ObjectMeta": _object_meta_schema(),
        f"{_META}ListMeta": _object(
            "What is about a list as such.",
            resourceVersion=_text("How far the outbox had come: a watch from here misses nothing."),
            **{"continue": _text("Where the list goes on, if it does.")},
            remainingItemCount=_whole("How many more there are."),
        ),
        f"{_META}Status": _object("What came of a request.", status=_text(""), message=_text("")),
    }


def _class_schema() -> Document:
    schema = _object(
        "A resource class is a named question to devices: it selects those that it may be served by, whoever"
        " made them and wherever they are. It belongs to the whole cluster and never changes.",
        apiVersion=_text(f"The version of this form of the object: {GROUP_VERSION}."),
        kind=_text(f"The kind of the object: {KIND}."),
        metadata=_described(_ref(f"{_META}ObjectMeta"), "Its name, labels and annotations."),
        spec=_described(_ref(f"{_OWN}ResourceClassSpec"), "What the class selects. It never changes."),
        status=_described(
            _ref(f"{_OWN}ResourceClassStatus"),
            "How many devices there are, and how many are held. Read only.",
        ),
    )
    return {**schema, _KIND_OF: [_CLASS_KIND]}


def _list_schema() -> Document:
    schema = _object(
        "A list of resource classes.",
        apiVersion=_text(""),
        kind=_text(""),
        metadata=_ref(f"{_META}ListMeta"),
        items=_array(_ref(f"{_OWN}{KIND}"), "The classes by name."),
    )
    return {**schema, _KIND_OF: [{**_CLASS_KIND, "kind": LIST_KIND}]}


def _requirement_schema() -> Document:
    operator = _text(
        "How the device's value is compared with those of the class: device value OPERATOR class value."
        " Gt, GtEq, Lt and LtEq compare quantities, measures (40GBPS) and versions."
    )
    schema = _object(
        "One expression: an attribute of a device, an operator, and values.",
        key=_text("The name of the attribute, compared exactly: Kind is not kind."),
        operator={**operator, "enum": [str(each) for each in Operator]},
        values=_array(
            {"type": "string"},
            "At least one for In and NotIn, none for Exists and DoesNotExist, exactly one for the others.",
        ),
    )
    return {**schema, "required": ["key", "operator"]}


def _status_schema() -> Document:
    return _object(
        "How a class stands. A device counts in every class that selects it: sums over classes mean nothing.",
        allocatable=_described(
            _ref(_QUANTITY), "Devices that the class selects, on nodes that are not lost."
        ),
        requested=_described(
            _ref(_QUANTITY), "What of them is held, whoever asked for it and by which class."
        ),
        free=_described(_ref(_QUANTITY), "What of them is left."),
        uncomparable=_whole("Devices of which it cannot be said whether the class selects them."),
        uncomparableReasons=_array({"type": "string"}, "Why not, each reason once, at most eight."),
    )


def _object_meta_schema() -> Document:
    texts: Document = {"type": "object", "additionalProperties": {"type": "string", "default": ""}}
    return _object(
        "What is about the object as such.",
        name=_text("A DNS subdomain (RFC 1123) of at most 253 characters; no other class has it."),
        generateName=_text("How the name begins, where `name` is empty."),
        uid=_text("Never given to another object. Read only."),
        resourceVersion=_text("How far the outbox had come when the object was read. Read only."),
        generation=_whole("Always 1: the object never changes. Read only."),
        creationTimestamp={**_text("When it was created. Read only."), "format": "date-time"},
        labels=_described(texts, "What lists and watches can select by."),
        annotations=_described(texts, "Whatever else is to be kept with it."),
    )


def _object(description: str, **properties: Document) -> Document:
    return {"description": description, "type": "object", "properties": properties}


def _array(items: Document, description: str) -> Document:
    return {"description": description, "type": "array", "items": items}


def _text(description: str) -> Document:
    return {"description": description, "type": "string"}


def _whole(description: str) -> Document:
    return {"description": description, "type": "integer", "format": "int64"}


def _ref(name: str) -> Document:
    return {"$ref": f"{_SCHEMAS}{name}"}


def _described(schema: Document, description: str) -> Document:
    """A reference takes no description beside it, so it stands within `allOf`, as Kubernetes has it."""
    if "$ref" in schema:
        return {"description": description, "default": {}, "allOf": [schema]}
    return {**schema, "description": description}
