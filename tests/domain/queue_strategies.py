"""Valid queue configurations, drawn by hypothesis, and where each queue stands in its document."""

from collections.abc import Iterator
from typing import Any

from hypothesis import strategies as st

Document = dict[str, Any]

NAMES = ["alpha", "beta", "gamma", "Delta"]
MOST = 1000


@st.composite
def queue_trees(
    draw: st.DrawFn, *, room: int = MOST, budget: int = MOST, most: int | None = None, depth: int = 3
) -> Document:
    """A queue without a name, and below it others, that hold all inequalities.

    `room` is the smallest maximum above, `budget` what it may be guaranteed, `most` what its parent allows.
    """
    queue: Document = {}
    own = draw(st.integers(max(budget, 1), room)) if budget <= room and draw(st.booleans()) else None
    if own is not None:
        queue.setdefault("resources", {})["max"] = {"memory": str(own)}
    if budget and draw(st.booleans()):
        queue.setdefault("resources", {})["guaranteed"] = {"memory": str(budget)}
    if most is not None or draw(st.booleans()):
        most = draw(st.integers(1, most or 50))
        queue["maxapplications"] = most
    names = draw(st.lists(st.sampled_from(NAMES), unique=True, max_size=3)) if depth else []
    left = budget
    for name in names:
        part = draw(st.integers(0, left))
        left -= part
        child = draw(queue_trees(room=own or room, budget=part, most=most, depth=depth - 1))
        queue.setdefault("queues", []).append({"name": name, **child})
    if not names and draw(st.booleans()):
        queue["parent"] = True
    if draw(st.booleans()):
        queue["submitacl"] = draw(st.sampled_from(["*", "alice", "bob,alice dev", " dev"]))
    return queue


@st.composite
def partitions(draw: st.DrawFn) -> Document:
    """A partition whose root is written out."""
    root = draw(queue_trees(depth=3))
    root.pop("resources", None)
    rules = draw(st.lists(placement_rules(), max_size=4))
    return {"name": "default", "queues": [{**root, "name": "root"}], "placementrules": rules}


@st.composite
def placement_rules(draw: st.DrawFn, depth: int = 2) -> Document:
    """A rule, perhaps with rules for the parent."""
    kind = draw(st.sampled_from(["provided", "tag", "fixed", "user"]))
    values = {"tag": "namespace", "fixed": draw(st.sampled_from(["alpha", "beta.gamma", "new"]))}
    rule: Document = {"name": kind, "create": draw(st.booleans())}
    if kind in values:
        rule["value"] = values[kind]
    if depth and draw(st.booleans()):
        rule["parent"] = draw(placement_rules(depth=depth - 1))
    if draw(st.booleans()):
        rule["filter"] = draw(
            st.sampled_from([{"type": "deny", "users": ["alice"]}, {"groups": ["dev"]}, {"users": ["^b.*"]}])
        )
    return rule


def places(document: Document) -> Iterator[tuple[str, Document, Document | None]]:
    """Every queue of a partition's document: its path in the document, itself and its parent."""
    open_places: list[tuple[str, Document, Document | None]] = [
        ("partitions[0].queues[0]", document["queues"][0], None)
    ]
    while open_places:
        path, queue, parent = open_places.pop()
        yield path, queue, parent
        for at, child in enumerate(queue.get("queues", [])):
            open_places.append((f"{path}.queues[{at}]", child, queue))
