"""Limits from a configuration service, as the API's clients see them: the whole service in this process."""

from collections.abc import Iterator

import pytest
import requests

from rm_service.ledger.database import reader_engine
from rm_service.ledger.schema import migrate
from tests.facades.test_service import asked, migrated, running
from tests.services.limit_sources.configuration import ConfigurationService

__all__ = ["migrated"]

ALICE = {"tags": {"user": "alice"}, "resource": {"memory": 1}}
BOB = {"tags": {"user": "bob"}, "resource": {"memory": 1}}


@pytest.fixture
def service() -> Iterator[ConfigurationService]:
    with ConfigurationService() as service:
        yield service


def test_limits_of_the_configuration_service_are_in_force_and_shown(
    migrated: str, service: ConfigurationService
) -> None:
    service.says({"user": "alice"}, {"memory": 1})
    with running(migrated, RM_LIMITS_URL=service.url) as (_, root):
        api = f"{root}/api/v1"
        asked("PUT", f"{api}/limits", {"tags": {"user": "bob"}, "total": {"memory": 1}}, 201)
        asked("POST", f"{api}/applications", ALICE, 201)
        asked("POST", f"{api}/applications", ALICE, 409)
        listed = asked("GET", f"{api}/limits")["items"]
        assert [(each["tags"], each["source"]) for each in listed] == [
            ({"user": "bob"}, "operator"),
            ({"user": "alice"}, "http"),
        ]
        metrics = requests.get(f"{root}/metrics", timeout=10).text
    assert 'rm_limit_source_combinations{state="answered"} 1.0' in metrics


def test_which_key_sets_are_asked_for_is_a_setting(migrated: str, service: ConfigurationService) -> None:
    with running(migrated, RM_LIMITS_URL=service.url, RM_LIMITS_KEYS="team+user") as (_, root):
        body = {"tags": {"user": "alice", "team": "red"}, "resource": {"memory": 1}}
        asked("POST", f"{root}/api/v1/applications", body, 201)
    assert service.asked == [[{"team": "red", "user": "alice"}]]


def test_a_limit_that_is_not_known_may_be_a_problem(migrated: str, service: ConfigurationService) -> None:
    service.statuses = [403]
    with running(migrated, RM_LIMITS_URL=service.url, RM_LIMITS_STALE_POLICY="deny") as (_, root):
        api = f"{root}/api/v1"
        answer = requests.post(f"{api}/applications", json=ALICE, timeout=10)
        assert (answer.status_code, answer.headers["Retry-After"]) == (503, "5")
        assert answer.headers["Content-Type"] == "application/problem+json"
        assert answer.json()["code"] == "limits_unknown"
        assert answer.json()["label"] == {"user": "alice"}
        operations = [{"op": "apply", **each} for each in (ALICE, BOB)]
        results = asked("POST", f"{api}/batch", {"operations": operations})["results"]
        assert [each["status"] for each in results] == [503, 201]
        explained = asked("POST", f"{api}/applications/explain", ALICE)
        assert explained["code"] == "limits_unknown"


def test_without_an_address_nobody_is_asked(migrated: str) -> None:
    with running(migrated) as (service, root):
        assert service.limit_sources is None
        asked("POST", f"{root}/api/v1/applications", ALICE, 201)


def test_two_services_on_one_database_judge_by_the_same_limits(
    postgres_url: str, service: ConfigurationService
) -> None:
    engine = reader_engine(postgres_url)
    migrate(engine)
    engine.dispose()
    service.says({"user": "alice"}, {"memory": 2})
    with (
        running(postgres_url, RM_LIMITS_URL=service.url) as (_, here),
        running(postgres_url, RM_LIMITS_URL=service.url) as (_, there),
    ):
        asked("POST", f"{here}/api/v1/applications", ALICE, 201)
        asked("POST", f"{there}/api/v1/applications", ALICE, 201)
        asked("POST", f"{here}/api/v1/applications", ALICE, 409)
        asked("POST", f"{there}/api/v1/applications", ALICE, 409)
        events = asked("GET", f"{here}/api/v1/events")["items"]
        assert [each["kind"] for each in events].count("limits.taken") == 1
        assert asked("GET", f"{there}/api/v1/audit")["consistent"]
    assert service.asked == [[{"user": "alice"}]] * 2
