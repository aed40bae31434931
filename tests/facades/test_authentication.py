"""Who may ask: tokens in the database, and what a request must carry."""

import pytest
from sqlalchemy import select

from rm_service.hosting.authentication import Authentication
from rm_service.ledger import tables
from rm_service.ledger.ledger import Ledger
from rm_service.services import tokens as tokens_module
from rm_service.services.tokens import TokenExistsError, Tokens, UnknownTokenError
from tests.facades.conftest import GIB, Api, make_api


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture
def tokens(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> Tokens:
    monkeypatch.setattr(tokens_module, "REMEMBERED_SECONDS", 0.0)
    return Tokens(ledger.readers)


@pytest.fixture
def gated(ledger: Ledger, tokens: Tokens) -> Api:
    return make_api(ledger, authentication=Authentication(needed=True, name_of=tokens.name_of))


def test_a_token_lets_in_until_it_is_revoked(gated: Api, tokens: Tokens) -> None:
    token = tokens.create("ci")
    assert gated.send("GET", "/nodes", headers=bearer(token)).status_code == 200
    tokens.revoke("ci")
    assert gated.send("GET", "/nodes", headers=bearer(token)).status_code == 401


@pytest.mark.parametrize("header", [None, "Bearer bad", "Bearer", "Basic Z29vZA==", "good"])
def test_without_a_good_token_there_is_no_answer(gated: Api, header: str | None) -> None:
    headers = {} if header is None else {"Authorization": header}
    answer = gated.send("GET", "/nodes", headers=headers)
    assert (answer.status_code, answer.get_json()["code"]) == (401, "unauthorized")
    assert answer.headers["WWW-Authenticate"].startswith("Bearer")
    assert answer.content_type == "application/problem+json"


def test_an_unknown_path_is_not_told_to_strangers(gated: Api) -> None:
    assert gated.send("GET", "/nowhere").status_code == 401


def test_where_no_token_is_needed_a_wrong_one_is_still_wrong(ledger: Ledger, tokens: Tokens) -> None:
    api = make_api(ledger, authentication=Authentication(needed=False, name_of=tokens.name_of))
    assert api.send("GET", "/nodes").status_code == 200
    assert api.send("GET", "/nodes", headers=bearer("bad")).status_code == 401


def test_an_idempotency_key_is_each_callers_own(gated: Api, tokens: Tokens) -> None:
    callers = [bearer(tokens.create(name)) | {"Idempotency-Key": "1"} for name in ("a", "b")]
    gated.call("PUT", "/nodes/h1", {"total": {"memory": GIB}}, status=201, headers=callers[0])
    body = {"tags": {"node": "h1"}, "resource": {"memory": 1}}
    made = [gated.call("POST", "/applications", body, status=201, headers=caller) for caller in callers]
    assert made[0]["id"] != made[1]["id"]


def test_only_a_digest_of_a_token_is_kept(ledger: Ledger, tokens: Tokens) -> None:
    token = tokens.create("ci")
    with ledger.readers.connect() as connection:
        (row,) = connection.execute(select(tables.access_token)).all()
    assert token not in str(row)
    assert token.startswith("rm_")


def test_a_name_is_given_once_and_listed_for_ever(tokens: Tokens) -> None:
    tokens.create("ci")
    with pytest.raises(TokenExistsError, match="ci"):
        tokens.create("ci")
    assert tokens.any_in_force()
    tokens.revoke("ci")
    assert not tokens.any_in_force()
    with pytest.raises(UnknownTokenError, match="ci"):
        tokens.revoke("ci")
    (listed,) = tokens.all()
    assert listed.revoked_at is not None
    assert listed.revoked_at >= listed.created_at
