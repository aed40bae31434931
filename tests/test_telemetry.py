"""Logs and metrics: one form for all lines, no secrets, and numbers that Prometheus can read."""

import json
import logging

import pytest
import structlog
from prometheus_client.parser import text_string_to_metric_families

from rm_service.telemetry import REQUEST_ID, Metrics, set_up_logging


def lines(capsys: pytest.CaptureFixture[str]) -> list[dict[str, object]]:
    return [json.loads(line) for line in capsys.readouterr().err.splitlines()]


def test_our_lines_and_those_of_libraries_have_one_form(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging("info", "json")
    token = REQUEST_ID.set("r-1")
    structlog.get_logger("ours").info("granted", label="user=alice")
    REQUEST_ID.reset(token)
    logging.getLogger("theirs").warning("hm %s", 5)
    logging.getLogger("theirs").debug("not told")
    ours, theirs = lines(capsys)
    assert (ours["event"], ours["label"], ours["request_id"]) == ("granted", "user=alice", "r-1")
    assert (theirs["event"], theirs["level"], "request_id" in theirs) == ("hm 5", "warning", False)


def test_secrets_are_not_told(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging("debug", "json")
    structlog.get_logger("ours").info("asked", Authorization="Bearer x", token="x", password="x")  # noqa: S106
    (line,) = lines(capsys)
    assert line["Authorization"] == line["token"] == line["password"] == "(hidden)"


def test_a_defect_is_told_with_its_cause(capsys: pytest.CaptureFixture[str]) -> None:
    set_up_logging("info", "json")
    structlog.get_logger("ours").error("failed", exc_info=RuntimeError("deep inside"))
    (line,) = lines(capsys)
    assert "deep inside" in str(line["exception"])


def test_metrics_are_counted_by_what_became_of_things() -> None:
    metrics = Metrics()
    metrics.request("GET", "/api/v1/nodes", 200, 0.002)
    metrics.operation("Apply", "insufficient_resources")
    metrics.operation("Apply", "insufficient_resources")
    metrics.commit()
    metrics.sweep(applications=3)
    metrics.sweep_failed()
    metrics.gauge("rm_ledger_queue", "waiting", lambda: 7)
    found = {
        (sample.name, *sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(metrics.text().decode())
        for sample in family.samples
    }
    assert found["rm_http_requests_total", "/api/v1/nodes", "200", "GET"] == 1
    assert found["rm_http_request_seconds_bucket", "+Inf", "/api/v1/nodes", "GET"] == 1
    assert found["rm_operations_total", "Apply", "insufficient_resources"] == 2
    assert found["rm_ledger_commits_total",] == 1
    assert found["rm_swept_total", "applications"] == 3
    assert found["rm_sweeps_total", "failed"] == 1
    assert found["rm_ledger_queue",] == 7
