"""Resource classes written shortly, and drawn by hypothesis."""

from typing import Any

from hypothesis import strategies as st

from rm_service.domain.resource_classes import ResourceClassSpec, read_spec

# key, operator, values
Expression = tuple[str, str, list[str]]


def document_of(*selectors: list[Expression]) -> dict[str, Any]:
    return {
        "resourceSelector": [
            {
                "matchExpressions": [
                    {"key": key, "operator": name, "values": values} for key, name, values in selector
                ]
            }
            for selector in selectors
        ]
    }


def spec_of(*selectors: list[Expression]) -> ResourceClassSpec:
    return read_spec(document_of(*selectors))


texts = st.sampled_from(["1", "1k", "1000", "2W", "2000mW", "1.2.3", "1.2", "true", "T4", "30G", "1Hz", ""])
values = texts | st.sampled_from([True, 1, 1000, {"string": "1"}, {"version": "1.2"}])
devices = st.dictionaries(st.sampled_from("abc"), values, max_size=3)
keys = st.sampled_from("abc")
ordered = st.sampled_from(["1", "1k", "1000", "2W", "2000mW", "1.2.3", "1.2"])
expressions: st.SearchStrategy[Expression] = (
    st.tuples(keys, st.sampled_from(["Exists", "DoesNotExist"]), st.just([]))
    | st.tuples(keys, st.sampled_from(["In", "NotIn"]), st.lists(texts, min_size=1, max_size=3))
    | st.tuples(keys, st.just("Eq"), st.lists(texts, min_size=1, max_size=1))
    | st.tuples(
        keys, st.sampled_from(["Gt", "GtEq", "Lt", "LtEq"]), st.lists(ordered, min_size=1, max_size=1)
    )
)
selectors = st.lists(st.lists(expressions, max_size=3), max_size=3)
