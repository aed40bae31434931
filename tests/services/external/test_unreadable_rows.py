"""A provider whose row cannot be read is shown with the reason, and keeps no other one away."""

from typing import Any

import pytest
from sqlalchemy import ColumnClause, String, column, create_engine, table, update

from rm_service.domain.outcomes import Done
from rm_service.domain.providers import speaking_for
from rm_service.ledger.tables import Json
from rm_service.services.external.feeds import ProviderState
from rm_service.services.external.providers import Providers, ProviderWish
from rm_service.services.external.refresher import Refresher
from rm_service.services.external.sources import UnusableProviderError
from tests.services.external.scripted import FakeTime, tick
from tests.services.external.shelf import state

URL = "https://c1:8088"
Spoilt = tuple[ColumnClause[Any], object, str]
BAD_LABELS: Spoilt = column("labels", String), "((", "its row cannot be read, store it anew: selector"
NO_OBJECT: Spoilt = column("config", Json), [], "its row cannot be read, store it anew: config is no object"


def store(providers: Providers, *names: str) -> None:
    for name in names:
        assert providers.store(ProviderWish("scripted", name, {"url": URL})) == Done(created=True)


def spoil(database_url: str, spoilt: ColumnClause[Any], value: object) -> None:
    """Write this into the row of c2."""
    engine, name = create_engine(database_url), column("name", String)
    row = update(table("external_provider", name, column(spoilt.name, spoilt.type))).where(name == "c2")
    with engine.begin() as connection:
        connection.execute(row.values({spoilt.name: value}))
    engine.dispose()


@pytest.mark.parametrize(("spoilt", "value", "reason"), [BAD_LABELS, NO_OBJECT])
def test_it_speaks_for_nothing_and_ties_with_nobody(
    providers: Providers, database_url: str, spoilt: ColumnClause[Any], value: object, reason: str
) -> None:
    store(providers, "c1", "c2", "c3")
    spoil(database_url, spoilt, value)
    faults = {each.name: each.fault for each in providers.all()}
    assert (faults["c1"], faults["c3"]) == (None, None)
    assert str(faults["c2"]).startswith(reason)
    bad = providers.read("scripted", "c2")
    assert bad is not None
    with pytest.raises(UnusableProviderError, match="its row cannot be read"):
        providers.unseal(bad)
    assert speaking_for(providers.all(), {"scriptedCluster": "c2"}) is None
    store(providers, "c4")


def test_it_is_stored_anew_or_taken_away(providers: Providers, database_url: str) -> None:
    store(providers, "c1", "c2")
    spoil(database_url, *BAD_LABELS[:2])
    assert providers.store(ProviderWish("scripted", "c2", {"url": URL})) == Done(created=False)
    assert [each.fault for each in providers.all()] == [None, None]
    spoil(database_url, *BAD_LABELS[:2])
    assert providers.remove("scripted", "c2") == Done()


def test_a_document_that_is_no_json_spoils_one_row_only(providers: Providers, database_url: str) -> None:
    if database_url.startswith("postgresql"):
        pytest.skip("PostgreSQL takes nothing in that is no JSON")
    store(providers, "c1", "c2")
    spoil(database_url, column("config", String), "{half")
    assert [each.fault is None for each in providers.all()] == [True, False]


def test_the_others_are_looked_at(providers: Providers, database_url: str, time: FakeTime) -> None:
    store(providers, "c1", "c2")
    spoil(database_url, *BAD_LABELS[:2])
    refresher = Refresher(providers, time.clocks)
    tick(refresher)
    assert state(refresher, "c1") is ProviderState.OK
    status = refresher.status("scripted", "c2")
    assert status is not None
    assert status.state is ProviderState.UNUSABLE
    assert "store it anew" in str(status.problem)
