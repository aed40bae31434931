"""Resource classes as documents: what is read, written and refused, and how a class may be named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rm_service.domain.class_expressions import Operator
from rm_service.domain.resource_classes import ResourceClassError, check_class_name, read_spec, write_spec
from tests.domain.class_strategies import Expression, document_of, keys, selectors, spec_of, texts

EXPRESSIONS = "spec.resourceSelector[0].matchExpressions"
GOOD = {"key": "Kind", "operator": "In", "values": ["nvidia-gpu"]}


@pytest.mark.parametrize(
    ("expression", "field", "value", "reason"),
    [
        (None, "", "null", "must be an object"),
        ("memory>1", "", "memory>1", "must be an object"),
        ({"operator": "Exists"}, ".key", "null", "is required"),
        ({"key": "", "operator": "Exists"}, ".key", "", "is required"),
        ({"key": 5, "operator": "Exists"}, ".key", "5", "not a text"),
        ({"key": "a b", "operator": "Exists"}, ".key", "a b", "the key needs"),
        ({"key": "k" * 64, "operator": "Exists"}, ".key", "k" * 64, "longer than 63"),
        ({"key": "a"}, ".operator", "null", "is required"),
        ({"key": "a", "operator": ""}, ".operator", "", "is required"),
        ({"key": "a", "operator": "Like", "values": ["1"]}, ".operator", "Like", "is unknown, must be one"),
        ({"key": "a", "operator": "in", "values": ["1"]}, ".operator", "in", "is unknown, must be one"),
        ({"key": "a", "operator": ["In"]}, ".operator", "a list of 1", "is unknown"),
        ({"key": "a", "operator": "Exists", "value": "1"}, ".value", "1", "unknown field"),
        ({"key": "a", "operator": "Exists", "values": ["1"]}, ".values", "a list of 1", "must be empty"),
        ({"key": "a", "operator": "DoesNotExist", "values": [""]}, ".values", "a list of 1", "must be empty"),
        ({"key": "a", "operator": "In"}, ".values", "a list of 0", "at least one is required for In"),
        ({"key": "a", "operator": "NotIn", "values": []}, ".values", "a list of 0", "at least one"),
        ({"key": "a", "operator": "Eq"}, ".values", "a list of 0", "exactly one is required for Eq"),
        ({"key": "a", "operator": "Eq", "values": ["1", "2"]}, ".values", "a list of 2", "exactly one"),
        ({"key": "a", "operator": "Gt", "values": ["1", "2"]}, ".values", "a list of 2", "exactly one"),
        ({"key": "a", "operator": "LtEq", "values": []}, ".values", "a list of 0", "exactly one"),
        ({"key": "a", "operator": "In", "values": "x"}, ".values", "x", "must be a list"),
        ({"key": "a", "operator": "In", "values": {}}, ".values", "an object", "must be a list"),
        ({"key": "a", "operator": "In", "values": ["x", 30]}, ".values[1]", "30", "must be a text"),
        ({"key": "a", "operator": "In", "values": [None]}, ".values[0]", "null", "must be a text"),
        ({"key": "a", "operator": "In", "values": [True]}, ".values[0]", "true", "must be a text"),
        ({"key": "a", "operator": "In", "values": ["v" * 65]}, ".values[0]", "v" * 64, "longer than 64"),
        ({"key": "a", "operator": "In", "values": ["a\0"]}, ".values[0]", "a\0", "control character"),
        ({"key": "a", "operator": "In", "values": ["\ud800"]}, ".values[0]", "\\ud800", "control character"),
        ({"key": "a", "operator": "In", "values": ["x"] * 65}, ".values", "a list of 65", "more than 64"),
        (
            {"key": "a", "operator": "Gt", "values": ["T4"]},
            ".values[0]",
            "T4",
            "position 0: Gt needs a number",
        ),
        ({"key": "a", "operator": "Gt", "values": ["1K"]}, ".values[0]", "1K", "position 1: .*kilo is k"),
        ({"key": "a", "operator": "Lt", "values": ["1gb"]}, ".values[0]", "1gb", "leaves open what is meant"),
        (
            {"key": "a", "operator": "GtEq", "values": ["1e1000000"]},
            ".values[0]",
            "1e1000000",
            "the exponent is beyond 64",
        ),
        ({"key": "a", "operator": "GtEq", "values": [""]}, ".values[0]", "", "GtEq needs a number"),
        ({"key": "a", "operator": "GtEq", "values": ["٣"]}, ".values[0]", "٣", "a digit is expected"),
        ({"key": "a", "operator": "Gt", "values": ["," * 1_000_000]}, ".values[0]", "," * 64, "longer than"),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_a_bad_expression_is_refused_with_field_value_and_reason(
    expression: object, field: str, value: str, reason: str
) -> None:
    document = {"resourceSelector": [{"matchExpressions": [GOOD, expression]}]}
    with pytest.raises(ResourceClassError, match=reason) as refusal:
        read_spec(document)
    [fault] = refusal.value.faults
    assert (fault.field, fault.value) == (f"{EXPRESSIONS}[1]{field}", value)
    assert len(str(refusal.value)) < 500


@pytest.mark.parametrize(
    ("document", "field", "reason"),
    [
        ([], "spec", "must be an object"),
        ("x", "spec", "must be an object"),
        ({"resourceSelector": {}}, "spec.resourceSelector", "must be a list"),
        ({"resourceSelectors": []}, "spec.resourceSelectors", "unknown field"),
        ({"resourceSelector": ["x"]}, "spec.resourceSelector[0]", "must be an object"),
        (
            {"resourceSelector": [{"matchLabels": {}}]},
            "spec.resourceSelector[0].matchLabels",
            "unknown field",
        ),
        ({"resourceSelector": [{"matchExpressions": {}}]}, EXPRESSIONS, "must be a list"),
        ({"resourceSelector": [{"matchExpressions": [GOOD] * 65}]}, EXPRESSIONS, "more than 64 entries"),
        (
            {"resourceSelector": [{"matchExpressions": [GOOD] * 33}] * 2},
            "spec.resourceSelector",
            "more than 64 expressions",
        ),
        ({"resourceSelector": [{}] * 65}, "spec.resourceSelector", "more than 64 entries"),
    ],
)
def test_a_bad_selector_is_refused_with_field_and_reason(document: object, field: str, reason: str) -> None:
    with pytest.raises(ResourceClassError, match=reason) as refusal:
        read_spec(document)
    [fault] = refusal.value.faults
    assert fault.field == field


def test_every_fault_is_told_at_once() -> None:
    document = document_of([("a", "Like", ["1"]), ("b", "Gt", ["x"])], [("", "In", [])])
    with pytest.raises(ResourceClassError) as refusal:
        read_spec({**document, "extra": 1})
    assert [fault.field for fault in refusal.value.faults] == [
        "spec.extra",
        f"{EXPRESSIONS}[0].operator",
        f"{EXPRESSIONS}[1].values[0]",
        "spec.resourceSelector[1].matchExpressions[0].key",
    ]


def test_of_very_many_faults_64_are_told() -> None:
    with pytest.raises(ResourceClassError) as refusal:
        read_spec({f"field{number}": None for number in range(1000)})
    assert len(refusal.value.faults) == 64


def test_a_class_has_up_to_64_expressions_and_512_values() -> None:
    spec = spec_of(*[[(f"k{number}", "In", ["v" * 64] * 8)] * 8 for number in range(8)])
    assert read_spec(write_spec(spec)) == spec
    expressions = [{"key": "k", "operator": "In", "values": ["v"] * 64}] * 9
    document = {"resourceSelector": [{"matchExpressions": expressions}]}
    with pytest.raises(ResourceClassError, match="more than 512 values"):
        read_spec(document)


@pytest.mark.parametrize(
    "name", ["a", "7", "nvidia.high.mem", "hugepages-1gig", "fast.nic", "a--b", "x" * 253, "a.b.c-d.9"]
)
def test_a_class_is_named_like_a_dns_subdomain(name: str) -> None:
    assert check_class_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        None,
        5,
        "A",
        "a_b",
        "-a",
        "a-",
        ".a",
        "a.",
        "a..b",
        "a.-b",
        "a b",
        "a\n",
        "ä",
        "x" * 254,
        "-" * 10**6,
    ],
    ids=lambda value: repr(value)[:20],
)
def test_any_other_name_is_refused(name: object) -> None:
    with pytest.raises(ResourceClassError) as refusal:
        check_class_name(name)
    [fault] = refusal.value.faults
    assert fault.field == "metadata.name"
    assert len(fault.value) <= 64


@pytest.mark.parametrize("prefix", ["", "yarn.", "k8s."])
@pytest.mark.parametrize("amount", ["memory", "vcore", "instances", "apps"])
def test_an_amount_that_the_service_knows_gives_no_class_its_name(prefix: str, amount: str) -> None:
    with pytest.raises(ResourceClassError) as refusal:
        check_class_name(prefix + amount)
    [fault] = refusal.value.faults
    assert (fault.field, fault.value) == ("metadata.name", prefix + amount)
    assert fault.reason == "is the name of an amount, which asks of the Scheduler Interface mean by it"


@pytest.mark.parametrize("name", ["memory.high", "gpu.memory", "apps1", "yarn.gpu", "k8s.io", "memory-30g"])
def test_a_name_may_hold_the_word_for_an_amount(name: str) -> None:
    assert check_class_name(name) == name


@pytest.mark.parametrize("dimension", ["device/nvidia-gpu-0ed83741266e", "port/8080"])
def test_nor_do_dimensions_that_the_service_makes(dimension: str) -> None:
    with pytest.raises(ResourceClassError):
        check_class_name(dimension)


@given(selectors)
def test_a_spec_reads_back(chosen: list[list[Expression]]) -> None:
    spec = spec_of(*chosen)
    assert read_spec(write_spec(spec)) == spec
    assert [
        [(each.key, each.operator, list(each.values)) for each in selector.expressions]
        for selector in spec.selectors
    ] == [[(key, Operator(name), given_values) for key, name, given_values in each] for each in chosen]


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10) | texts,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["resourceSelector", "matchExpressions", "key", "operator", "values"])
            | st.text(),
            inner,
            max_size=3,
        )
    ),
    max_leaves=20,
)
almost = st.fixed_dictionaries(
    {},
    optional={
        "key": keys | anything,
        "operator": st.sampled_from(list(Operator)) | anything,
        "values": st.lists(texts | anything, max_size=3) | anything,
    },
)
almost_specs = st.lists(
    st.fixed_dictionaries({"matchExpressions": st.lists(almost, max_size=3) | anything}) | anything,
    max_size=3,
).map(lambda chosen: {"resourceSelector": chosen})


@given(anything | almost_specs)
def test_any_document_is_read_or_refused(document: object) -> None:
    try:
        spec = read_spec(document)
    except ResourceClassError as error:
        assert all(fault.field.startswith("spec") and fault.reason for fault in error.faults)  # noqa: PT017
        assert error.faults  # noqa: PT017 - either way is fine
        str(error).encode()
    else:
        assert read_spec(write_spec(spec)) == spec
