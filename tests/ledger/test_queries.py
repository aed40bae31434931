"""Reading nodes, engines, limits, labels and events."""

from rm_service.domain import operations as op
from rm_service.domain.selectors import Selector, parse_selector
from rm_service.ledger.ledger import Ledger
from rm_service.ledger.queries.engines import list_engines, read_engine
from rm_service.ledger.queries.events import last_seq, read_events, stream_events
from rm_service.ledger.queries.labels import list_labels
from rm_service.ledger.queries.limits import list_limits, read_limit
from rm_service.ledger.queries.nodes import NodeState, list_nodes, read_node
from tests.ledger.asking import apply, done, limit, node, page_through, reading

ALICE = {"user": "alice", "creator": "IDE"}


# Nodes


def test_a_node_is_read_with_its_account(ledger: Ledger) -> None:
    node(ledger, "h1", {"memory": 100, "vcore": 10}, protected={"memory": 10}, attributes={"gpu": "T4"})
    used = apply(ledger, {"user": "alice", "node": "h1"}, {"memory": 30})
    apply(ledger, {"user": "alice", "node": "h1"}, {"memory": 20})
    done(ledger, op.Use(used.id))

    record = reading(ledger, read_node, ledger.book(), "h1")

    assert record.node.instance == "h1"
    assert record.node.attributes == {"gpu": "T4"}
    assert record.account.total == {"memory": 100, "vcore": 10}
    assert (record.account.balance.locked, record.account.balance.used) == ({"memory": 20}, {"memory": 30})
    assert record.account.left() == {"memory": 40, "vcore": 10}
    assert (record.state, record.over_limit) == (NodeState.SCHEDULABLE, False)
    assert reading(ledger, read_node, ledger.book(), "h2") is None


def test_the_state_of_a_node_follows_what_happens_to_it(ledger: Ledger) -> None:
    def state() -> NodeState | None:
        record = reading(ledger, read_node, ledger.book(), "h1")
        return None if record is None else record.state

    node(ledger, "h1", {"memory": 100})
    held = apply(ledger, {"user": "alice", "node": "h1"}, {"memory": 30})
    states = [state()]
    for operation in (
        op.DrainNode("h1"),
        op.Release(held.id),
        op.UndrainNode("h1"),
        op.LoseNode("h1", "gone"),
        op.RemoveNode("h1"),
    ):
        done(ledger, operation)
        states.append(state())

    assert states == [
        NodeState.SCHEDULABLE,
        NodeState.DRAINING,
        NodeState.DRAINED,
        NodeState.SCHEDULABLE,
        NodeState.LOST,
        None,
    ]


def test_a_node_whose_total_shrank_is_over_its_limit(ledger: Ledger) -> None:
    node(ledger, "h1", {"memory": 100})
    apply(ledger, {"user": "alice", "node": "h1"}, {"memory": 30})
    node(ledger, "h1", {"memory": 20})

    assert reading(ledger, read_node, ledger.book(), "h1").over_limit


def test_nodes_are_listed_by_name_and_chosen_by_tags_attributes_and_name(ledger: Ledger) -> None:
    for number in range(9):
        node(
            ledger,
            f"h{number}",
            {"memory": 1},
            tags={"zone": "a" if number < 5 else "b"},
            attributes={"gpus": number, "model": "T4"} if number % 2 else {},
        )
    done(ledger, op.RemoveNode("h7"))

    def names(text: str) -> list[str]:
        selector = parse_selector(text)
        found = page_through(
            lambda cursor: reading(
                ledger, list_nodes, ledger.book(), selector=selector, limit=2, cursor=cursor
            )
        )
        return [record.node.instance for record in found]

    assert names("") == ["h0", "h1", "h2", "h3", "h4", "h5", "h6", "h8"]
    assert names("zone=b") == ["h5", "h6", "h8"]
    assert names("gpus>1,zone=a") == ["h3"]
    assert names("model=T4,node in (h1,h5,h9)") == ["h1", "h5"]
    assert names("!model,node!=h0") == ["h2", "h4", "h6", "h8"]


# Engines, limits, labels


def test_engines_are_chosen_by_the_tags_of_the_application_and_their_own(ledger: Ledger) -> None:
    for number, user in enumerate(["alice", "bob", "alice"]):
        held = apply(ledger, {"user": user, "creator": "IDE"}, {"memory": 1})
        done(ledger, op.RegisterEngine(f"e{number}", held.id, tags={"slot": str(number), "creator": "own"}))
    done(ledger, op.RemoveEngine("e2"))

    def names(text: str) -> list[str]:
        found = page_through(
            lambda cursor: reading(
                ledger, list_engines, selector=parse_selector(text), limit=1, cursor=cursor
            )
        )
        return [record.engine.instance for record in found]

    assert names("") == ["e0", "e1"]
    assert names("user=bob,slot=1") == ["e1"]
    assert names("creator=IDE") == []
    assert reading(ledger, read_engine, "e2") is None
    assert reading(ledger, read_engine, "e1").application.tags["user"] == "bob"


def test_limits_are_listed_as_they_were_set(ledger: Ledger) -> None:
    ids = [
        limit(ledger, tags, {"memory": 5}, protected={"memory": 1})
        for tags in ({"user": "*"}, {"user": "alice"}, {"job": "*"})
    ]
    ledger.submit_whole(op.RemoveLimit(ids[1]))

    found = page_through(lambda cursor: reading(ledger, list_limits, limit=1, cursor=cursor))

    assert [(each.id, each.tags) for each in found] == [(ids[0], {"user": "*"}), (ids[2], {"job": "*"})]
    assert found[0].total == {"memory": 5}
    assert reading(ledger, list_limits, selector=parse_selector("job")).items == [found[1]]
    assert reading(ledger, read_limit, ids[2]) == found[1]
    assert reading(ledger, read_limit, ids[1]) is None


def test_labels_come_with_their_balances_and_limits_and_without_pools(ledger: Ledger) -> None:
    node(ledger, "h1", {"memory": 10})
    limit(ledger, {"user": "alice"}, {"memory": 7})
    apply(ledger, ALICE, {"memory": 3}, placement=op.Placement("zone=x"), wait_seconds=600)
    apply(ledger, ALICE, {"memory": 3}, placement=op.Placement("node=h1"))
    apply(ledger, {"user": "bob", "queue": "root.a"}, {"memory": 1})

    def labels(selector: Selector) -> list[tuple[dict[str, str], dict[str, int], object]]:
        found = page_through(
            lambda cursor: reading(
                ledger, list_labels, ledger.book(), selector=selector, limit=2, cursor=cursor
            )
        )
        return [(dict(each.label.tags), each.balance.locked, each.total) for each in found]

    assert labels(parse_selector("user=alice")) == [({"user": "alice"}, {"memory": 3}, {"memory": 7})]
    assert labels(parse_selector("queue in (root,root.a)")) == [
        ({"queue": "root"}, {"memory": 1}, None),
        ({"queue": "root.a"}, {"memory": 1}, None),
    ]
    assert labels(parse_selector("user,user!=alice")) == [({"user": "bob"}, {"memory": 1}, None)]
    everything = [tags for tags, _, _ in labels(Selector())]
    assert len(everything) == 6
    assert all(
        tags in everything
        for tags in (
            {"node": "h1"},
            {"user": "alice"},
            {"creator": "IDE"},
            {"user": "bob"},
            {"queue": "root"},
            {"queue": "root.a"},
        )
    )


# Events


def test_events_are_read_on_from_a_number_with_the_tags_of_their_labels(ledger: Ledger) -> None:
    with ledger.readers.connect() as connection:
        start = last_seq(connection)
    made = apply(ledger, ALICE, {"memory": 1})
    done(ledger, op.Use(made.id), op.Release(made.id))

    with ledger.readers.connect() as connection:
        found = read_events(connection, ledger.labels, start, 2)
        rest = read_events(connection, ledger.labels, found[-1].event.seq, 10)
        end = last_seq(connection)
        streamed = list(stream_events(connection, start))

    kinds = [each.event.kind for each in [*found, *rest]]
    assert kinds == ["application.locked", "application.used", "application.released"]
    assert [each.event.seq for each in [*found, *rest]] == list(range(start + 1, end + 1))
    assert found[0].labels == ({"user": "alice"}, {"creator": "IDE"})
    assert found[0].event.subject == made.id
    assert found[0].event.locked == {"memory": 1}
    assert streamed == [each.event for each in [*found, *rest]]
