"""Messages as JSON: what clients that speak HTTP send and get."""

import json
from typing import Any

import pytest
from google.protobuf.message import Message
from hypothesis import given
from hypothesis import strategies as st

from rm_service.facades.si.json_mapping import MessageJsonError, UnknownFieldError, parse_json, to_json
from rm_service.facades.si.proto import si_pb2 as si
from rm_service.facades.si.proto import si_v0_pb2 as si_v0


def parse(document: Any) -> si.AllocationRequest:
    return parse_json(si.AllocationRequest, json.dumps(document))


def test_names_and_values_are_protobufs() -> None:
    message = parse(
        {
            "rmID": "rm",
            "asks": [
                {
                    "allocationKey": "pod",
                    "resourceAsk": {
                        "resources": {"memory": {"value": "9007199254740993"}, "vcore": {"value": 5}}
                    },
                    "maxAllocations": 1.0,
                    "priority": -5,
                    "tags": {"t": "1"},
                    "placeholder": True,
                    "preemptionPolicy": None,
                }
            ],
            "releases": {
                "allocationsToRelease": [
                    {"UUID": "u", "terminationType": "TIMEOUT"},
                    {"UUID": "v", "terminationType": 77},
                ]
            },
        }
    )
    assert message == si.AllocationRequest(
        rmID="rm",
        asks=[
            si.AllocationAsk(
                allocationKey="pod",
                resourceAsk={"resources": {"memory": {"value": 9007199254740993}, "vcore": {"value": 5}}},
                maxAllocations=1,
                priority=-5,
                tags={"t": "1"},
                placeholder=True,
            )
        ],
        releases={
            "allocationsToRelease": [
                si.AllocationRelease(UUID="u", terminationType=si.TIMEOUT),
                {"UUID": "v", "terminationType": 77},
            ]
        },
    )


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"askz": []}, "askz"),
        ({"asks": [{}, {"prio": 1}]}, "asks[1].prio"),
        ({"asks": [{"resourceAsk": {"memory": 1}}]}, "asks[0].resourceAsk.memory"),
        ({"asks": [{"resourceAsk": {"resources": {"m": {"v": 1}}}}]}, "asks[0].resourceAsk.resources[m].v"),
    ],
)
def test_a_name_that_a_message_does_not_have_is_named(document: Any, field: str) -> None:
    with pytest.raises(UnknownFieldError) as caught:
        parse(document)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("document", "field", "reason"),
    [
        ([], "", "must be an object"),
        (5, "", "must be an object"),
        ({"asks": {}}, "asks", "must be an array"),
        ({"asks": [5]}, "asks[0]", "must be an object"),
        ({"asks": [None]}, "asks[0]", "must be an object"),
        ({"releases": []}, "releases", "must be an object"),
        ({"rmID": 5}, "rmID", "must be a text"),
        ({"rmID": "\ud800"}, "rmID", "holds half of a character"),
        ({"asks": [{"tags": []}]}, "asks[0].tags", "must be an object"),
        ({"asks": [{"tags": {"a": None}}]}, "asks[0].tags[a]", "must be a text"),
        ({"asks": [{"tags": {"\ud800": "a"}}]}, "asks[0].tags", "a key holds half of a character"),
        ({"asks": [{"placeholder": "true"}]}, "asks[0].placeholder", "must be true or false"),
        ({"asks": [{"priority": "x"}]}, "asks[0].priority", "must be an integer of 32 bits"),
        ({"asks": [{"priority": 1.5}]}, "asks[0].priority", "must be an integer of 32 bits"),
        ({"asks": [{"priority": True}]}, "asks[0].priority", "must be an integer of 32 bits"),
        ({"asks": [{"priority": 2**31}]}, "asks[0].priority", "must be an integer of 32 bits"),
        (
            {"asks": [{"executionTimeoutMilliSeconds": str(2**63)}]},
            "asks[0].executionTimeoutMilliSeconds",
            "must be an integer of 64 bits",
        ),
        (
            {"asks": [{"resourceAsk": {"resources": {"memory": 5}}}]},
            "asks[0].resourceAsk.resources[memory]",
            "must be an object",
        ),
    ],
)
def test_a_value_that_a_field_cannot_hold_is_named(document: Any, field: str, reason: str) -> None:
    with pytest.raises(MessageJsonError) as caught:
        parse(document)
    assert (caught.value.field, caught.value.reason) == (field, reason)


@pytest.mark.parametrize("termination", ["LATE", [], 2**31])
def test_an_enum_takes_its_names_and_any_number(termination: Any) -> None:
    with pytest.raises(MessageJsonError, match="must be a number or one of UNKNOWN_TERMINATION_TYPE"):
        parse({"releases": {"allocationsToRelease": [{"terminationType": termination}]}})


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        b"\xff",
        "{'rmID': 'x'}",
        '{"asks": [{"priority": NaN}]}',
        '{"rmID": "x"} x',
        "[" * 100_000,
        '{"asks": [{"priority": ' + "9" * 5000 + "}]}",
    ],
)
def test_what_is_not_json_is_refused(text: str | bytes) -> None:
    with pytest.raises(MessageJsonError, match="not JSON"):
        parse_json(si.AllocationRequest, text)


def test_a_number_beyond_every_float_is_refused() -> None:
    with pytest.raises(MessageJsonError, match="priority: must be an integer"):
        parse_json(si.AllocationRequest, '{"asks": [{"priority": 1e999}]}')


def test_a_key_that_stands_twice_is_refused() -> None:
    with pytest.raises(MessageJsonError) as caught:
        parse_json(si.AllocationRequest, '{"rmID": "a", "rmID": "b"}')
    assert caught.value.field == "rmID"


@pytest.mark.parametrize(
    ("message_class", "spelt", "field"),
    [
        (si_v0.AllocationAskRelease, "allocationkey", "allocationkey"),
        (si_v0.AllocationAskRelease, "allocationKey", "allocationkey"),
        (si.AllocationAskRelease, "allocationkey", "allocationKey"),
        (si.AllocationAskRelease, "allocationKey", "allocationKey"),
        (si_v0.UpdateContainerSchedulingStateRequest, "applicartionID", "applicartionID"),
        (si_v0.UpdateContainerSchedulingStateRequest, "applicationID", "applicartionID"),
        (si.UpdateContainerSchedulingStateRequest, "applicartionID", "applicationID"),
        (si_v0.Allocation, "allocationID", "UUID"),
        (si_v0.AllocationRelease, "allocationID", "UUID"),
    ],
)
def test_another_dialects_spelling_is_understood(
    message_class: type[Message], spelt: str, field: str
) -> None:
    message = parse_json(message_class, json.dumps({spelt: "x"}))
    assert getattr(message, field) == "x"


def test_the_originator_is_spelt_either_way() -> None:
    assert parse({"asks": [{"originator": True}]}) == parse({"asks": [{"Originator": True}]})


def test_two_spellings_of_one_field_are_refused() -> None:
    with pytest.raises(MessageJsonError, match="allocationkey too"):
        parse_json(si_v0.AllocationAskRelease, '{"allocationkey": "a", "allocationKey": "b"}')


def test_the_old_dialect_is_written_as_it_spells() -> None:
    message = si_v0.UpdateResponse(releasedAllocationAsks=[{"allocationkey": "pod"}])
    assert json.loads(to_json(message)) == {"releasedAllocationAsks": [{"allocationkey": "pod"}]}


amounts = st.dictionaries(st.text(), st.integers(-(2**63), 2**63 - 1), max_size=3)


@given(
    key=st.text(),
    tags=st.dictionaries(st.text(), st.text(), max_size=3),
    resource=amounts,
    priority=st.integers(-(2**31), 2**31 - 1),
)
def test_what_is_written_is_read_again(
    key: str, tags: dict[str, str], resource: dict[str, int], priority: int
) -> None:
    message = si.AllocationRequest(
        asks=[
            si.AllocationAsk(
                allocationKey=key,
                tags=tags,
                priority=priority,
                resourceAsk={"resources": {name: {"value": value} for name, value in resource.items()}},
            )
        ]
    )
    text = to_json(message)
    assert "\n" not in text
    assert parse_json(si.AllocationRequest, text) == message
