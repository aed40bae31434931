"""A breaker opens after failures in a row, for longer each time, and lets one call decide."""

from rm_service.services.external.breaker import Breaker, BreakerState
from tests.services.external.scripted import FakeTime

OPEN, HALF_OPEN, CLOSED = BreakerState.OPEN, BreakerState.HALF_OPEN, BreakerState.CLOSED


def made(time: FakeTime) -> Breaker:
    return Breaker(lambda: time.seconds, 2, 10.0, 35.0, chance=lambda _least, _most: 1.0)


def test_failures_in_a_row_open_it_and_a_good_answer_starts_the_count_anew() -> None:
    breaker = made(FakeTime())
    for _ in range(3):
        breaker.failed()
        breaker.succeeded()
    assert (breaker.state, breaker.may_try()) == (CLOSED, True)
    breaker.failed()
    breaker.failed()
    assert (breaker.state, breaker.may_try()) == (OPEN, False)


def test_after_its_time_one_call_decides() -> None:
    time = FakeTime()
    breaker = made(time)
    breaker.failed()
    breaker.failed()
    time.passes(10)
    assert breaker.state is HALF_OPEN
    assert [breaker.may_try() for _ in range(3)] == [True, False, False]
    breaker.succeeded()
    assert (breaker.state, breaker.failures) == (CLOSED, 0)


def test_each_time_it_stays_open_twice_as_long_up_to_a_bound() -> None:
    time = FakeTime()
    breaker = made(time)
    breaker.failed()
    lengths = []
    for _ in range(4):
        breaker.failed()
        assert breaker.retry_at is not None
        lengths.append(breaker.retry_at - time.seconds)
        time.passes(lengths[-1])
        assert breaker.may_try()
    assert lengths == [10, 20, 35, 35]


def test_its_end_is_spread() -> None:
    time = FakeTime()
    ends = set()
    for _ in range(50):
        breaker = Breaker(lambda: time.seconds, threshold=1, least_seconds=10)
        breaker.failed()
        assert breaker.retry_at is not None
        ends.add(breaker.retry_at - time.seconds)
    assert len(ends) > 40
    assert 9 <= min(ends) <= max(ends) <= 11
