"""The scheduler's service: who registers, who may speak of what, and what no text can spoil."""

from contextlib import ExitStack
from typing import Any

import pytest
from sqlalchemy import select
from structlog.testing import capture_logs

from rm_service.domain.application import State
from rm_service.domain.clients import Client
from rm_service.ledger import tables
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.services.si import clients as remembered
from rm_service.services.si.errors import NotRegisteredError, RegistrationRefusedError
from rm_service.services.si.requests import (
    Dialect,
    NodeAction,
    Registration,
    Release,
    RemovedApplication,
    Update,
)
from rm_service.services.si.scheduler import SchedulerService
from tests.client_words import kinds, of_kind, running
from tests.ledger.telling import check_books, rows, told
from tests.postgres import DatabaseServer
from tests.services.shim import CONFIG, HERE, Shim, app, ask, node, running_there


class TestRegistration:
    @pytest.mark.parametrize(
        ("registration", "reason"),
        [
            (Registration(rm_id=""), "partition cannot be created without name or RM, one is not set"),
            (Registration(rm_id="a]b"), "rmID holds no square brackets"),
            (Registration(rm_id="[a"), "rmID holds no square brackets"),
            (Registration(rm_id="x" * 129), "rmID is longer than 128 characters"),
            (Registration(rm_id="a\nb"), "control character"),
            (Registration(rm_id="a", version="\0"), "NUL"),
            (Registration(rm_id="a", policy_group="\0"), "NUL"),
            (Registration(rm_id="a", config="\0"), "NUL"),
            (Registration(rm_id="a", config="partitions: ["), "is no YAML"),
            (Registration(rm_id="a", config="nonsense: 1"), "nonsense"),
        ],
    )
    def test_what_cannot_be_is_refused_with_a_reason(
        self, shim: Shim, registration: Registration, reason: str
    ) -> None:
        with pytest.raises(RegistrationRefusedError) as caught:
            shim.service.register(registration)
        assert reason in caught.value.reason
        with shim.ledger.readers.connect() as connection:
            assert list(connection.execute(select(tables.si_client.c.rm_id)).scalars()) == ["rm-1"]

    def test_texts_that_are_only_shown_may_be_anything(self, shim: Shim) -> None:
        shim.register(build_info={"a\0": "\0"}, extra_config={"b\0": "\0"})

    def test_nobody_is_served_who_has_not_registered(self, shim: Shim) -> None:
        with pytest.raises(NotRegisteredError) as caught:
            shim.service.update(Update(rm_id="rm-9", dialect=Dialect.SEED))
        assert str(caught.value) == 'RmID "rm-9" not registered'

    def test_an_unknown_policy_group_gets_the_default_one_and_a_warning(self, shim: Shim) -> None:
        with capture_logs() as logs:
            shim.register(config="", policy_group="nobody-knows-it")
        assert [log["policy_group"] for log in logs if log["log_level"] == "warning"] == ["nobody-knows-it"]
        shim.say(applications=app("fresh", queue="", tags={"namespace": "lab"}))
        assert shim.application("fresh").tags["queue"] == "root.lab"

    def test_no_log_line_holds_what_is_secret(self, shim: Shim) -> None:
        with capture_logs() as logs:
            shim.register(config=CONFIG + "\n# hunter2", extra_config={"token": "hunter2"})
            with pytest.raises(RegistrationRefusedError) as caught:
                shim.register(config="partitions: hunter2")
        assert "hunter2" not in str(logs) + caught.value.reason
        assert "hunter2" not in repr(Registration(rm_id="a", config="hunter2", extra_config={"a": "hunter2"}))

    def test_the_limits_of_the_configuration_are_in_force(self, shim: Shim) -> None:
        shim.say(applications=[app(f"app-{at}", queue="root.batch") for at in range(1, 4)])
        assert shim.application("app-3").state == State.WAITING
        answers = shim.say(asks=[ask("a", 8), ask("b", 4, application="app-2")])
        assert [answer["key"] for answer in of_kind(answers, "new")] == ["a"], "8 for each user"

    def test_a_wipe_forgets_at_once(self, shim: Shim) -> None:
        shim.say(applications=app(), asks=ask())
        shim.register(extra_config={"rm.resync": "wipe"})
        assert rows(shim.ledger) == []
        assert kinds(shim.say(nodes=node(), applications=app())) == ["accepted_application", "accepted_node"]

    def test_registered_anew_it_reports_what_it_has_and_nothing_is_doubled(self, shim: Shim) -> None:
        shim.say(applications=app(), asks=ask(count=2))
        known = running(told(shim.ledger))
        shim.register()
        answers = shim.say(
            applications=app(),
            nodes=node(existing=tuple(running_there(id=each) for each in known)),
        )
        assert kinds(answers) == ["accepted_application", "accepted_node", "new", "new"]
        assert running(told(shim.ledger)).keys() == known.keys()
        assert len(rows(shim.ledger)) == 3


class TestStrangers:
    """What one resource manager has is out of reach for the others."""

    @pytest.fixture
    def stranger(self, shim: Shim) -> Shim:
        stranger = Shim(shim.ledger, shim.service, Client("rm-2"))
        stranger.register()
        shim.say(applications=app(), asks=ask())
        return stranger

    def test_by_any_name(self, shim: Shim, stranger: Shim) -> None:
        stranger.say(
            releases=[
                Release(partition=HERE, application="app-1", key="k"),
                Release(partition=HERE, application="app-1"),
                Release(partition=HERE, id=str(shim.row("k").id)),
                Release(partition="default", application="app-1", id=str(shim.row("k").id)),
                Release(partition=HERE, application="app-1", only_ask=True),
            ],
            removals=RemovedApplication(application="app-1", partition=HERE),
            nodes=node(action=NodeAction.DECOMISSION, attributes={"si/node-partition": HERE}),
        )
        assert shim.row("k").state == State.USED
        assert shim.application().state == State.USED

    def test_nor_does_it_hear_of_it(self, shim: Shim, stranger: Shim) -> None:
        assert told(shim.ledger, stranger.client) == []


@pytest.mark.parametrize(
    "said",
    [
        {"applications": app("a\0b")},
        {"applications": app(queue="a\0b")},
        {"applications": app(tags={"a\0": "b\0"})},
        {"applications": app(placeholder_ask={"a\0": 1})},
        {"applications": app(partition="a\0b")},
        {"asks": ask("a\0b")},
        {"asks": ask(application="a\0b")},
        {"asks": ask(tags={"a\0": "b\0"})},
        {"asks": ask(resource={"a\0": 1})},
        {"asks": ask(partition="a\0b")},
        {"asks": ask(priority="a\0b")},
        {"allocations": running_there(id="a\0b")},
        {"allocations": running_there(tags={"a\0": "b\0"})},
        {"nodes": node("n", attributes={"a\0": "b\0"})},
        {"nodes": node("n", attributes={"si/node-partition": "a\0b"})},
        {"nodes": node("n", schedulable={"a\0": 1})},
        {"releases": Release(application="a\0b", key="a\0b", id="a\0b", partition="a\0b", only_ask=True)},
        {"releases": Release(application="a\0b", key="a\0b")},
        {"removals": RemovedApplication(application="a\0b")},
    ],
)
def test_a_character_that_no_database_takes_spoils_nothing_else_of_its_message(
    shim: Shim, said: dict[str, Any]
) -> None:
    """Told back without it, taken without it or rejected: the rest of the message is carried out."""
    shim.say(applications=app())
    parts: dict[str, Any] = {name: [part] for name, part in said.items()}
    parts.setdefault("asks", []).append(ask("good"))
    shim.say(**parts)
    assert shim.row("good").state == State.USED


def test_a_registration_through_another_process_counts_at_once(
    postgres_server: DatabaseServer, postgres_template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is said after it is said under it, whichever process is told."""
    monkeypatch.setattr(remembered, "REMEMBERED_SECONDS", -1.0)  # whatever was remembered is old
    with ExitStack() as stack:
        url = stack.enter_context(postgres_server.database(template=postgres_template))
        shims = []
        for _ in range(2):
            ledger = Ledger(LedgerSettings(url))
            ledger.open()
            stack.callback(ledger.close)
            service = SchedulerService(ledger, resync_seconds=60)
            stack.callback(service.close)
            shims.append(Shim(ledger, service))
        one, two = shims
        one.register()
        two.say(nodes=node(), applications=app(), asks=ask())
        one.register()
        assert kinds(two.say(nodes=node(), applications=app())) == ["accepted_application", "accepted_node"]
        check_books(one.ledger)
