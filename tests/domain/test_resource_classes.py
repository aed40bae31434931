"""Resource classes: what they select, what they cannot compare, and how they explain it."""

import operator
from collections.abc import Mapping
from fractions import Fraction

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from rm_service.domain.class_expressions import Outcome
from rm_service.domain.device_attributes import read_attributes, signature_of
from rm_service.domain.exact_quantities import read_exact_quantity
from rm_service.domain.resource_classes import check_class_name, explain, match, read_spec
from tests.domain.class_strategies import Expression, devices, keys, selectors, spec_of

HOLDS, FAILS, MISSING, UNCOMPARABLE = Outcome

HIGH_MEMORY = """
kind: ResourceClass
metadata:
  name: nvidia.high.mem
spec:
  resourceSelector:
    - matchExpressions:
        - key: "Kind"
          operator: "In"
          values:
            - "nvidia-gpu"
        - key: "memory"
          operator: "GtEq"
          values:
            - "30G"
"""
HUGE_PAGES = """
kind: ResourceClass
metadata:
  name: hugepages-1gig
spec:
  resourceSelector:
    - matchExpressions:
        - key: "Kind"
          operator: "In"
          values:
            - "huge-pages"
        - key: "size"
          operator: "GtEq"
          values:
            - "1G"
"""
FAST_NIC = """
kind: ResourceClass
metadata:
  name: fast.nic
spec:
  resourceSelector:
    - matchExpressions:
        - key: "Kind"
          operator: "In"
          values:
            - "nic"
        - key: "speed"
          operator: "GtEq"
          values:
            - "40GBPS"
"""


def outcome(name: str, values: list[str], device: Mapping[str, object]) -> Outcome:
    """How one expression about the attribute `a` comes out."""
    attributes = read_attributes(device, "attributes")
    spec = spec_of([("a", name, values)])
    [selector] = explain(spec, attributes)
    [expression] = selector.expressions
    found = match(spec, attributes)
    assert found.selected == (expression.outcome is HOLDS)
    assert bool(found.uncomparable) == (expression.outcome is UNCOMPARABLE) == bool(expression.why)
    return expression.outcome


@pytest.mark.parametrize(
    ("text", "device", "selected"),
    [
        (HIGH_MEMORY, {"Kind": "nvidia-gpu", "memory": "30G"}, True),
        (HIGH_MEMORY, {"Kind": "nvidia-gpu", "memory": "30Gi", "version": "2.1.0", "nvlink": True}, True),
        (HIGH_MEMORY, {"Kind": "nvidia-gpu", "memory": 40_000_000_000}, True),
        (HIGH_MEMORY, {"Kind": "nvidia-gpu", "memory": "29999M"}, False),
        (HIGH_MEMORY, {"Kind": "amd-gpu", "memory": "64G"}, False),
        (HIGH_MEMORY, {"kind": "nvidia-gpu", "memory": "64G"}, False),
        (HIGH_MEMORY, {"Kind": "nvidia-gpu"}, False),
        (HIGH_MEMORY, {"memory": "64G"}, False),
        (HIGH_MEMORY, {}, False),
        (HUGE_PAGES, {"Kind": "huge-pages", "size": "1G"}, True),
        (HUGE_PAGES, {"Kind": "huge-pages", "size": "1Gi"}, True),
        (HUGE_PAGES, {"Kind": "huge-pages", "size": "2Mi"}, False),
        (FAST_NIC, {"Kind": "nic", "speed": "40GBPS"}, True),
        (FAST_NIC, {"Kind": "nic", "speed": "100gbps"}, True),
        (FAST_NIC, {"Kind": "nic", "speed": "5GBps"}, True),
        (FAST_NIC, {"Kind": "nic", "speed": "25Gbps"}, False),
        (FAST_NIC, {"Kind": "nic", "speed": "40000Mbps"}, True),
    ],
)
def test_the_proposals_own_classes(text: str, device: dict[str, object], selected: bool) -> None:
    document = yaml.safe_load(text)
    check_class_name(document["metadata"]["name"])
    found = match(read_spec(document["spec"]), read_attributes(device, "attributes"))
    assert found.selected is selected
    assert not found.uncomparable


@pytest.mark.parametrize(
    "document",
    [
        None,
        {},
        {"resourceSelector": None},
        {"resourceSelector": []},
        {"resourceSelector": [None]},
        {"resourceSelector": [{}]},
        {"resourceSelector": [{"matchExpressions": None}]},
        {"resourceSelector": [{"matchExpressions": []}, {}]},
    ],
)
def test_a_null_or_empty_selector_selects_nothing(document: object) -> None:
    spec = read_spec(document)
    for device in ({}, {"Kind": "nvidia-gpu"}):
        found = match(spec, read_attributes(device, "attributes"))
        assert (found.selected, found.uncomparable) == (False, ())


def test_an_empty_selector_beside_others_leaves_them_their_say() -> None:
    spec = read_spec(
        {"resourceSelector": [{}, {"matchExpressions": [{"key": "a", "operator": "Exists"}]}, None]}
    )
    assert match(spec, read_attributes({"a": 1}, "")).selected
    assert not match(spec, read_attributes({"b": 1}, "")).selected


@pytest.mark.parametrize(
    ("name", "values", "missing", "present"),
    [
        ("In", ["x"], MISSING, HOLDS),
        ("In", ["y", "z"], MISSING, FAILS),
        ("Eq", ["x"], MISSING, HOLDS),
        ("Eq", ["y"], MISSING, FAILS),
        ("NotIn", ["x"], HOLDS, FAILS),
        ("NotIn", ["y", "z"], HOLDS, HOLDS),
        ("Exists", [], MISSING, HOLDS),
        ("DoesNotExist", [], HOLDS, FAILS),
        ("Gt", ["1"], MISSING, UNCOMPARABLE),
        ("GtEq", ["1"], MISSING, UNCOMPARABLE),
        ("Lt", ["1"], MISSING, UNCOMPARABLE),
        ("LtEq", ["1"], MISSING, UNCOMPARABLE),
    ],
)
def test_operators_on_a_missing_attribute_and_on_a_string(
    name: str, values: list[str], missing: Outcome, present: Outcome
) -> None:
    assert outcome(name, values, {}) is missing
    assert outcome(name, values, {"A": "x"}) is missing
    assert outcome(name, values, {"a": "x"}) is present


@pytest.mark.parametrize(
    ("device", "name", "value", "expected"),
    [
        # Numbers: integers and quantities, exactly.
        ("30G", "Eq", "30000M", HOLDS),
        ("30G", "Lt", "30Gi", HOLDS),
        ("30G", "Gt", "30G", FAILS),
        ("30G", "GtEq", "30e9", HOLDS),
        (5, "Eq", "5", HOLDS),
        (5, "Lt", "5.5", HOLDS),
        (5, "Gt", "4999m", HOLDS),
        (9007199254740993, "Gt", "9007199254740992", HOLDS),
        ("-1", "Lt", "0", HOLDS),
        (30, "Eq", "thirty", UNCOMPARABLE),
        (30, "Gt", "30W", UNCOMPARABLE),
        (30, "Gt", "1.2.3", UNCOMPARABLE),
        ("30G", "GtEq", "30GB", UNCOMPARABLE),
        # Measures: only of one dimension.
        ("40GBPS", "Eq", "5GB/s", HOLDS),
        ("40GBPS", "LtEq", "40Gbps", HOLDS),
        ("40GBPS", "Lt", "1Tbps", HOLDS),
        ("40GBPS", "GtEq", "40GHz", UNCOMPARABLE),
        ("40GBPS", "Eq", "40GB", UNCOMPARABLE),
        ("40GBPS", "GtEq", "40G", UNCOMPARABLE),
        ("80GB", "GtEq", "30GiB", HOLDS),
        ("80GB", "Gt", "640Gb", FAILS),
        # Versions.
        ("535.104.05", "GtEq", "535.54", HOLDS),
        ("535.104.05", "Eq", "535.104.5", HOLDS),
        ("535.104.05", "Lt", "536", HOLDS),
        ({"version": "1.10"}, "Gt", "1.9", HOLDS),
        ({"version": "1.0-rc1"}, "Lt", "1.0", HOLDS),
        ({"version": "1.10"}, "Gt", "1k", UNCOMPARABLE),
        # Numbers that are not versions: 1.10 is 1.1.
        ("1.10", "Gt", "1.9", FAILS),
        # Truth values and strings have no order.
        (True, "Eq", "true", HOLDS),
        (True, "Eq", "false", FAILS),
        (True, "Eq", "1", UNCOMPARABLE),
        (True, "Eq", "True", UNCOMPARABLE),
        (True, "GtEq", "1", UNCOMPARABLE),
        ("T4", "Eq", "T4", HOLDS),
        ("T4", "Eq", "t4", FAILS),
        ("T4", "Eq", "4", FAILS),
        ("T4", "Gt", "4", UNCOMPARABLE),
        ({"string": "1G"}, "Eq", "1000M", FAILS),
        ({"string": "1G"}, "Eq", "1G", HOLDS),
        ({"string": "5"}, "Gt", "4", UNCOMPARABLE),
        ("true", "Eq", "true", HOLDS),
    ],
)
def test_the_devices_value_says_how_it_is_compared(
    device: object, name: str, value: str, expected: Outcome
) -> None:
    assert outcome(name, [value], {"a": device}) is expected


@pytest.mark.parametrize(
    ("device", "values", "is_in", "is_not_in"),
    [
        ("30G", ["1", "30000M"], HOLDS, FAILS),
        ("30G", ["1", "2"], FAILS, HOLDS),
        ("30G", ["T4", "30000M"], HOLDS, FAILS),
        ("30G", ["T4", "1"], UNCOMPARABLE, UNCOMPARABLE),
        ("40GBPS", ["40W", "40gbps"], HOLDS, FAILS),
        ("40GBPS", ["40W", "41gbps"], UNCOMPARABLE, UNCOMPARABLE),
        ("T4", ["30G", "5"], FAILS, HOLDS),
        (True, ["true", "false"], HOLDS, FAILS),
    ],
)
def test_in_needs_one_equal_value_and_not_in_is_its_opposite(
    device: object, values: list[str], is_in: Outcome, is_not_in: Outcome
) -> None:
    assert outcome("In", values, {"a": device}) is is_in
    assert outcome("NotIn", values, {"a": device}) is is_not_in


@pytest.mark.parametrize(
    ("given_selectors", "selected", "uncomparable"),
    [
        # Inside a selector all must hold; what fails decides, whatever cannot be compared beside it.
        ([[("a", "Eq", ["1"]), ("b", "Eq", ["2"])]], True, []),
        ([[("a", "Eq", ["1"]), ("b", "Eq", ["3"])]], False, []),
        ([[("a", "Gt", ["1W"]), ("b", "Eq", ["3"])]], False, []),
        ([[("a", "Gt", ["1W"]), ("c", "Exists", [])]], False, []),
        ([[("a", "Gt", ["1W"]), ("b", "Eq", ["2"])]], False, [(0, 0)]),
        ([[("a", "Gt", ["1W"]), ("s", "Gt", ["2"])]], False, [(0, 0), (0, 1)]),
        # One selector that holds is enough; one that fails for good leaves the open one open.
        ([[("a", "Gt", ["1W"])], [("b", "Eq", ["2"])]], True, []),
        ([[("b", "Eq", ["2"])], [("a", "Gt", ["1W"])]], True, []),
        ([[("b", "Eq", ["3"])], [("a", "Gt", ["1W"])]], False, [(1, 0)]),
        ([[("a", "Gt", ["1W"])], [("b", "Eq", ["3"]), ("s", "Lt", ["1"])]], False, [(0, 0)]),
        ([[("a", "Gt", ["1W"])], [("s", "Lt", ["1"])]], False, [(0, 0), (1, 0)]),
        ([[("b", "Eq", ["3"])], [("a", "Eq", ["2"])]], False, []),
    ],
)
def test_selectors_are_alternatives_and_expressions_conditions(
    given_selectors: list[list[Expression]], selected: bool, uncomparable: list[tuple[int, int]]
) -> None:
    attributes = read_attributes({"a": 1, "b": 2, "s": "text"}, "attributes")
    found = match(spec_of(*given_selectors), attributes)
    assert found.selected is selected
    assert [(reason.selector, reason.expression) for reason in found.uncomparable] == uncomparable


@pytest.mark.parametrize(
    ("device", "name", "values", "why"),
    [
        ("T4", "Gt", ["4"], "the device's value is a string, which has no order"),
        (True, "Lt", ["4"], "the device's value is a truth value, which has no order"),
        ("30G", "Gt", ["30GB"], "the device's value is a number, '30GB' is none"),
        (5, "In", ["1", "five"], "the device's value is a number, 'five' is none"),
        ("40GBPS", "Gt", ["40GHz"], "the device's value is of rate, '40GHz' of frequency"),
        ("1.2.3", "NotIn", ["1.2.3a"], "the device's value is a version, '1.2.3a' is none"),
    ],
)
def test_what_cannot_be_compared_says_why(device: object, name: str, values: list[str], why: str) -> None:
    found = match(spec_of([("a", name, values)]), read_attributes({"a": device}, "attributes"))
    [reason] = found.uncomparable
    assert reason.why == why
    assert (reason.key, reason.operator, reason.class_values) == ("a", name, tuple(values))


def test_an_explanation_has_every_expression_with_both_values() -> None:
    spec = spec_of(
        [("Kind", "In", ["nvidia-gpu", "amd-gpu"]), ("memory", "GtEq", ["30G"]), ("nvlink", "Exists", [])],
        [("speed", "Gt", ["40GBPS"]), ("model", "NotIn", ["T4"]), ("old", "DoesNotExist", [])],
        [],
    )
    attributes = read_attributes({"Kind": "nvidia-gpu", "memory": "16000M", "speed": "5GHz"}, "attributes")
    explained = explain(spec, attributes)
    assert [selector.outcome for selector in explained] == [FAILS, UNCOMPARABLE, FAILS]
    assert [
        [(each.selector, each.expression, each.outcome, each.text) for each in selector.expressions]
        for selector in explained
    ] == [
        [
            (0, 0, HOLDS, "nvidia-gpu In [nvidia-gpu, amd-gpu]"),
            (0, 1, FAILS, "16G GtEq 30G"),
            (0, 2, MISSING, "(missing) Exists"),
        ],
        [
            (1, 0, UNCOMPARABLE, "5GHz Gt 40GBPS"),
            (1, 1, HOLDS, "(missing) NotIn [T4]"),
            (1, 2, HOLDS, "(missing) DoesNotExist"),
        ],
        [],
    ]
    assert [each.device_value for each in explained[0].expressions] == ["nvidia-gpu", "16G", None]
    assert match(spec, attributes).uncomparable == (explained[1].expressions[0],)


numbers = st.from_regex(r"-?[0-9]{1,4}(\.[0-9]{1,2})?(k|m|Ki|e2)?", fullmatch=True)


@given(numbers, numbers)
def test_orderings_agree_with_exact_fractions(device: str, wanted: str) -> None:
    left: Fraction = read_exact_quantity(device).value
    right: Fraction = read_exact_quantity(wanted).value
    for name, holds in (
        ("Eq", operator.eq),
        ("Gt", operator.gt),
        ("GtEq", operator.ge),
        ("Lt", operator.lt),
        ("LtEq", operator.le),
    ):
        assert (outcome(name, [wanted], {"a": device}) is HOLDS) == holds(left, right)


@given(selectors, devices)
def test_match_and_explanation_agree(chosen: list[list[Expression]], device: dict[str, object]) -> None:
    spec, attributes = spec_of(*chosen), read_attributes(device, "attributes")
    found, explained = match(spec, attributes), explain(spec, attributes)
    outcomes = [selector.outcome for selector in explained]
    assert found.selected == (HOLDS in outcomes)
    assert bool(found.uncomparable) == (HOLDS not in outcomes and UNCOMPARABLE in outcomes)
    for selector in explained:
        inner = {each.outcome for each in selector.expressions}
        assert (selector.outcome is HOLDS) == (inner == {HOLDS})
        assert (selector.outcome is UNCOMPARABLE) == (UNCOMPARABLE in inner <= {HOLDS, UNCOMPARABLE})


# Ways to say the same of a device.
same: st.SearchStrategy[list[object]] = st.sampled_from(
    [
        ["1k", "1000", 1000, {"quantity": "1e3"}],
        ["2W", "2000mW", {"measure": "0.002kW"}],
        ["1.2.0", {"version": "1.2"}, "1.2.0+build"],
        ["T4", {"string": "T4"}],
        [True, {"bool": True}],
    ]
)


@given(selectors, st.dictionaries(keys, same, max_size=3), st.data())
def test_no_class_tells_apart_what_shares_a_signature(
    chosen: list[list[Expression]], meanings: dict[str, list[object]], data: st.DataObject
) -> None:
    one, other = (
        read_attributes({key: data.draw(st.sampled_from(ways)) for key, ways in meanings.items()}, "")
        for _ in range(2)
    )
    assert signature_of(one) == signature_of(other)
    spec = spec_of(*chosen)
    assert match(spec, one).selected == match(spec, other).selected
    assert [each.why for each in match(spec, one).uncomparable] == [
        each.why for each in match(spec, other).uncomparable
    ]
    assert [selector.outcome for selector in explain(spec, one)] == [
        selector.outcome for selector in explain(spec, other)
    ]
