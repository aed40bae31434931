"""Ages as kubectl shows them."""

import pytest

from rm_service.facades.kubernetes.durations import short_duration

MINUTE, HOUR, DAY = 60, 3600, 86400
YEAR = 365 * DAY


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-2, "<invalid>"),
        (-1, "0s"),
        (0, "0s"),
        (119, "119s"),
        (2 * MINUTE, "2m"),
        (3 * MINUTE + 12, "3m12s"),
        (10 * MINUTE - 1, "9m59s"),
        (10 * MINUTE + 59, "10m"),
        (3 * HOUR - 1, "179m"),
        (3 * HOUR, "3h"),
        (7 * HOUR + 5 * MINUTE, "7h5m"),
        (8 * HOUR + 5 * MINUTE, "8h"),
        (2 * DAY - 1, "47h"),
        (2 * DAY + 4 * HOUR, "2d4h"),
        (8 * DAY + 4 * HOUR, "8d"),
        (2 * YEAR - 1, "729d"),
        (2 * YEAR + 35 * DAY, "2y35d"),
        (8 * YEAR + 35 * DAY, "8y"),
    ],
)
def test_the_longer_the_coarser(seconds: int, shown: str) -> None:
    assert short_duration(seconds) == shown
