"""The tests' own protos say what the field tables say, each in a world of its own."""

import pytest

from tests.si.answers import NEW, RELEASED, STOPPED_BY_RM, answers_in
from tests.si.dialects import DIALECTS, Ask
from tests.si.wire import ROW, wire


@pytest.mark.parametrize(("dialect", "number"), [("old", 0), ("seed", 1), ("newest", 1)])
def test_each_dialect_has_its_own_numbers_for_the_same_names(dialect: str, number: int) -> None:
    sent = wire(dialect).encode("AllocationRelease", {"terminationType": STOPPED_BY_RM})
    assert sent == (bytes([4 << 3, number]) if number else b"")


@pytest.mark.parametrize(
    ("dialect", "sent"),
    [
        # field 1 asks: {1: "k", 5: 1, 6: {1: 7}}
        ("old", b"\x0a\x09\x0a\x01k\x28\x01\x32\x02\x08\x07"),
        # field 1 asks: {1: "k", 5: 1, 6: 7}
        ("seed", b"\x0a\x07\x0a\x01k\x28\x01\x30\x07"),
        # field 4 allocations: {1: "k", 6: 7}
        ("newest", b"\x22\x05\x0a\x01k\x30\x07"),
    ],
)
def test_an_ask_travels_as_its_dialect_writes_it(dialect: str, sent: bytes) -> None:
    speaks = DIALECTS[dialect]
    method, body = speaks.asks([Ask(key="k", priority=7)])
    assert wire(dialect).encode(speaks.methods[method].request, body) == sent


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_row_is_read_though_the_proto_does_not_know_it(dialect: str) -> None:
    method = DIALECTS[dialect].methods["Update" if dialect == "old" else "UpdateNode"]
    row = b"\xc0\x3e\xac\x02"  # field 1000: 300
    assert wire(dialect).decode(method.response, row) == {ROW: 300}


def test_answers_of_all_dialects_read_alike() -> None:
    old, seed = DIALECTS["old"], DIALECTS["seed"]
    amount = {"resources": {"memory": {"value": "5"}}}
    new = {"allocationKey": "k", "UUID": "u", "nodeID": "n", "resourcePerAlloc": amount}
    responses = [
        (old.methods["Update"], old, {"newAllocations": [new], "releasedAllocations": [{"UUID": "u"}]}),
        (
            seed.methods["UpdateAllocation"],
            seed,
            {"new": [new], "released": [{"UUID": "u", "terminationType": STOPPED_BY_RM}]},
        ),
    ]
    for method, dialect, response in responses:
        first, second = answers_in(response, method.fields, dialect)
        assert (first.kind, first.key, first.resource) == (NEW, "k", {"memory": 5})
        assert (second.kind, second.id, second.termination) == (RELEASED, "u", STOPPED_BY_RM)
