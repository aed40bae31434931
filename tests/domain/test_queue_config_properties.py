"""What holds of every queue configuration."""

import copy
from collections.abc import Callable, Mapping

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rm_service.domain.queue_config import Configuration, PartitionConfig, Queue, QueueConfigError
from rm_service.domain.queue_documents import read_configuration
from tests.domain.queue_reading import refused
from tests.domain.queue_strategies import Document, partitions, places


def read_one(document: Document) -> PartitionConfig:
    return read_configuration({"partitions": [document]}).partitions[0]


def least_max(partition: PartitionConfig, queue: Queue, dimension: str) -> int | None:
    known = [above.max[dimension] for above in partition.upwards(queue.path) if dimension in above.max]
    return min(known, default=None)


def guaranteed(queue: Queue) -> int:
    return queue.guaranteed.get("memory") or sum(guaranteed(child) for child in queue.children)


@given(partitions())
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_an_accepted_configuration_holds_every_inequality(document: Document) -> None:
    partition = read_one(document)
    for queue in partition.queues.values():
        most = least_max(partition, queue, "memory")
        promised = sum(guaranteed(child) for child in queue.children)
        if most is not None:
            assert queue.max.get("memory", 0) <= most
            assert queue.guaranteed.get("memory", 0) <= most
            assert promised <= most
        if "memory" in queue.guaranteed:
            assert promised <= queue.guaranteed["memory"]
        for child in queue.children:
            assert child.path.rpartition(".")[0] == queue.path
            if queue.max_applications is not None:
                assert child.max_applications is not None
                assert child.max_applications <= queue.max_applications


Mutation = Callable[[Document, Document | None], str | None]


def unknown_field(queue: Document, parent: Document | None) -> str | None:
    queue["colour"] = "red"
    return ".colour"


def bad_quantity(queue: Document, parent: Document | None) -> str | None:
    if parent is None:
        return None
    queue.setdefault("resources", {})["max"] = {"memory": "1.5"}
    return ".resources.max.memory"


def beyond_the_parent(queue: Document, parent: Document | None) -> str | None:
    if parent is None or "max" not in parent.get("resources", {}):
        return None
    most = int(parent["resources"]["max"]["memory"])
    queue.setdefault("resources", {})["max"] = {"memory": str(most + 1)}
    return ".resources.max.memory"


def promised_beyond_its_own(queue: Document, parent: Document | None) -> str | None:
    if "max" not in queue.get("resources", {}):
        return None
    most = int(queue["resources"]["max"]["memory"])
    queue["resources"]["guaranteed"] = {"memory": str(most + 1)}
    return ".resources.guaranteed.memory"


def children_promised_more(queue: Document, parent: Document | None) -> str | None:
    if "guaranteed" not in queue.get("resources", {}):
        return None
    children = queue.setdefault("queues", [])
    beyond = int(queue["resources"]["guaranteed"]["memory"]) + 1
    most = {"maxapplications": queue["maxapplications"]} if "maxapplications" in queue else {}
    children.append({"name": "more", "resources": {"guaranteed": {"memory": str(beyond)}}, **most})
    return ".resources.guaranteed.memory"


def more_applications(queue: Document, parent: Document | None) -> str | None:
    if parent is None or "maxapplications" not in parent:
        return None
    queue["maxapplications"] = parent["maxapplications"] + 1
    return ".maxapplications"


def unlimited_applications(queue: Document, parent: Document | None) -> str | None:
    if parent is None or "maxapplications" not in parent:
        return None
    queue.pop("maxapplications")
    return ".maxapplications"


def limit_of_nothing(queue: Document, parent: Document | None) -> str | None:
    queue["limits"] = [{"users": ["bob"], "maxresources": {"memory": "0"}}]
    return ".limits[0].maxresources"


@given(
    partitions(),
    st.sampled_from(
        [
            unknown_field,
            bad_quantity,
            beyond_the_parent,
            promised_beyond_its_own,
            children_promised_more,
            more_applications,
            unlimited_applications,
            limit_of_nothing,
        ]
    ),
    st.data(),
)
@settings(suppress_health_check=[HealthCheck.too_slow])
def test_one_fault_refuses_all_of_it_at_its_place(
    document: Document, mutate: Mutation, data: st.DataObject
) -> None:
    broken = copy.deepcopy(document)
    path, queue, parent = data.draw(st.sampled_from(list(places(broken))))
    at = mutate(queue, parent)
    if at is None:
        read_one(broken)
    else:
        assert refused({"partitions": [broken]}).path == path + at


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["partitions", "queues", "name", "limits", "resources", "max", "users", "filter"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_any_document_is_read_or_refused(document: object) -> None:
    try:
        config = read_configuration(document)
    except QueueConfigError:
        return
    assert isinstance(config, Configuration)
    assert isinstance(config.partitions[0].queues, Mapping)
