"""Folding events gives the balances that booking them gave."""

from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st

from rm_service.domain.amounts import Amounts
from rm_service.domain.events import Event, Kind
from rm_service.domain.fold import Break, Fold, Standing

USER, NODE = 1, 2


def without_yarn(label_id: int, amounts: Amounts) -> Amounts:
    if label_id != NODE:
        return amounts
    return {name: amount for name, amount in amounts.items() if not name.startswith("yarn.")}


def fold(*events: Event, standings: Mapping[int, Standing] | None = None, seq: int = 0) -> Fold:
    result = Fold(seq, standings or {}, without_yarn)
    for event in events:
        result.follow(event)
    return result


def locked(seq: int, amounts: Amounts, *label_ids: int) -> Event:
    return Event(seq, seq, Kind.APPLICATION_LOCKED, "a", label_ids, locked=amounts, holders=1)


def registered(seq: int, kind: Kind, **detail: object) -> Event:
    return Event(seq, seq, kind, "h1", (NODE,), detail=detail)


def test_an_event_is_booked_on_each_of_its_labels_in_the_dimensions_that_the_label_counts() -> None:
    result = fold(locked(1, {"memory": 5, "yarn.memory": 7}, USER, NODE))

    assert result.standings == {
        USER: Standing({"memory": 5, "yarn.memory": 7}, {}, 1),
        NODE: Standing({"memory": 5}, {}, 1),
    }


def test_what_is_taken_back_leaves_nothing() -> None:
    used = Event(
        2, 2, Kind.APPLICATION_USED, "a", (USER,), locked={"memory": -5}, used={"memory": 3}, holders=0
    )
    released = Event(3, 3, Kind.APPLICATION_RELEASED, "a", (USER,), used={"memory": -3}, holders=-1)

    assert fold(locked(1, {"memory": 5}, USER), used, released).standings == {
        USER: Standing({"memory": 0}, {"memory": 0}, 0)
    }


def test_a_fold_goes_on_from_a_checkpoint() -> None:
    start = {USER: Standing({"memory": 5}, {}, 1)}

    result = fold(locked(8, {"memory": 2}, USER), standings=start, seq=7)

    assert result.standings[USER] == Standing({"memory": 7}, {}, 2)
    assert (result.seq, result.events, result.breaks) == (8, 1, [])


def test_a_node_is_what_its_last_event_says() -> None:
    total, protected = {"memory": 10}, {"memory": 1}
    come = registered(1, Kind.NODE_REGISTERED, total=total, protected=protected, closed=None)
    drain = registered(2, Kind.NODE_DRAINING, total=total, protected=protected, closed="draining")
    gone = registered(3, Kind.NODE_REMOVED, total=None, closed=None)

    assert fold(come).standings[NODE] == Standing(total=total, protected=protected)
    assert fold(come, drain).standings[NODE] == Standing(total=total, protected=protected, closed="draining")
    assert fold(come, drain, gone).standings[NODE] == Standing()


def test_a_missing_number_is_named_and_a_doubled_one_too() -> None:
    missing = fold(locked(1, {}, USER), locked(3, {}, USER))
    doubled = fold(locked(1, {}, USER), locked(1, {}, USER))

    assert [(found.before, found.after) for found in missing.breaks] == [(1, 3)]
    assert [(found.before, found.after) for found in doubled.breaks] == [(1, 1)]


def test_time_that_runs_back_is_named() -> None:
    early = Event(2, 1, Kind.APPLICATION_RENEWED, "a")

    assert fold(Event(1, 5, Kind.APPLICATION_RENEWED, "a"), early).breaks == [Break(1, 2, "time runs back")]


amounts = st.dictionaries(st.sampled_from(["memory", "vcore"]), st.integers(-9, 9))


@given(st.lists(st.tuples(amounts, amounts, st.sampled_from([(), (1,), (1, 2)]))), st.integers(0, 20))
def test_folding_in_two_parts_gives_what_folding_at_once_gives(
    changes: list[tuple[Amounts, Amounts, tuple[int, ...]]], cut: int
) -> None:
    events = [
        Event(seq, seq, Kind.APPLICATION_ADJUSTED, "a", label_ids, locked=locked_, used=used)
        for seq, (locked_, used, label_ids) in enumerate(changes, start=1)
    ]
    cut = min(cut, len(events))

    first = fold(*events[:cut])
    second = fold(*events[cut:], standings=first.standings, seq=first.seq)

    assert second.standings == fold(*events).standings
    assert not second.breaks
