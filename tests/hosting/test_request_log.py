"""The request log: every request is counted, and told of as loudly as it deserves."""

import logging
from typing import Any

import pytest
import structlog
from structlog.testing import LogCapture

from rm_service.hosting import request_log
from rm_service.hosting.request_log import SLOW_SECONDS, RequestLog

ASKED: dict[str, Any] = {"method": "GET", "path": "/things/7", "route": "/things/<id>", "caller": "alice"}


@pytest.fixture
def logged(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is logged, as a list that grows."""
    capture = LogCapture()
    every_level = structlog.make_filtering_bound_logger(logging.DEBUG)
    log = structlog.wrap_logger(None, processors=[capture], wrapper_class=every_level)
    monkeypatch.setattr(request_log, "_log", log)
    return capture.entries


@pytest.mark.parametrize(
    ("status", "seconds", "level"),
    [
        (200, 0.0, "debug"),
        (404, 0.0, "debug"),
        (200, SLOW_SECONDS, "info"),
        (404, SLOW_SECONDS, "info"),
        (500, 0.0, "warning"),
        (503, SLOW_SECONDS, "warning"),
    ],
)
def test_slow_ones_and_those_that_we_failed_are_told_of_above_debug(
    logged: list[Any], caplog: pytest.LogCaptureFixture, status: int, seconds: float, level: str
) -> None:
    caplog.set_level(logging.DEBUG)
    RequestLog().answered(**ASKED, status=status, seconds=seconds)
    (line,) = logged
    assert (line["event"], line["log_level"], line["status"]) == ("request", level, status)
    assert (line["method"], line["path"], line["caller"]) == ("GET", "/things/7", "alice")
    assert line["milliseconds"] == seconds * 1000


def test_the_metrics_are_told_the_route_and_not_what_was_asked() -> None:
    counted: list[tuple[object, ...]] = []
    observing = RequestLog(lambda *row: counted.append(row))
    observing.answered(**ASKED, status=200, seconds=0.25)
    assert counted == [("GET", "/things/<id>", 200, 0.25)]


def test_what_is_below_the_level_is_counted_all_the_same(
    logged: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    counted: list[tuple[object, ...]] = []
    quiet = RequestLog(lambda *row: counted.append(row))
    quiet.answered(**ASKED, status=200, seconds=0)
    quiet.stream_ended(path="/things", seconds=3600, caller="alice")
    assert (logged, len(counted)) == ([], 1)


def test_the_end_of_a_stream_is_told_of_at_debug_however_long_it_was_and_is_no_request(
    logged: list[Any], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    counted: list[tuple[object, ...]] = []
    RequestLog(lambda *row: counted.append(row)).stream_ended(path="/things", seconds=3600, caller="alice")
    (line,) = logged
    assert (line["event"], line["log_level"], line["seconds"]) == ("stream_ended", "debug", 3600)
    assert counted == []
