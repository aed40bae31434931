"""Access tokens: made once, shown once, kept only as a digest."""

import hashlib
import secrets
import time
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, insert, select, update
from sqlalchemy.exc import IntegrityError

from rm_service.domain.application import Instant
from rm_service.ledger import tables

_TABLE = tables.access_token
REMEMBERED_SECONDS = 5.0
"""How long the tokens in force are remembered: so long a revoked one may still be taken."""


class TokenExistsError(ValueError):
    """There is a token of this `name` already, revoked or not."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"there is a token named {name!r} already")


class UnknownTokenError(LookupError):
    """There is no token of this `name`, or it is revoked already."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"no token named {name!r} is in force")


@dataclass(frozen=True, slots=True)
class Token:
    """What is known of a token. Times are microseconds UTC."""

    name: str
    created_at: Instant
    revoked_at: Instant | None


class Tokens:
    """The tokens of one database."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._names: dict[str, str] = {}
        self._read_at = float("-inf")

    def create(self, name: str) -> str:
        """A new token: this is the only time that its text is known. Raises TokenExistsError."""
        token = f"rm_{secrets.token_urlsafe(32)}"
        values = {"name": name, "hash": _digest(token), "created_at": time.time_ns() // 1000}
        try:
            with self._engine.begin() as connection:
                connection.execute(insert(_TABLE).values(**values))
        except IntegrityError as error:
            raise TokenExistsError(name) from error
        return token

    def all(self) -> list[Token]:
        """Every token that was ever made, by name."""
        with self._engine.connect() as connection:
            rows = connection.execute(select(_TABLE).order_by(_TABLE.c.name)).all()
        return [Token(row.name, row.created_at, row.revoked_at) for row in rows]

    def revoke(self, name: str) -> None:
        """Let a token count no more; running services follow within seconds. Raises UnknownTokenError."""
        revoked = (
            update(_TABLE)
            .where(_TABLE.c.name == name, _TABLE.c.revoked_at.is_(None))
            .values(revoked_at=time.time_ns() // 1000)
        )
        with self._engine.begin() as connection:
            if connection.execute(revoked).rowcount == 0:
                raise UnknownTokenError(name)

    def name_of(self, token: str) -> str | None:
        """The name of a token in force, None for any other text."""
        now = time.monotonic()
        if now - self._read_at >= REMEMBERED_SECONDS:
            with self._engine.connect() as connection:
                self._names = _in_force(connection)
            self._read_at = now
        return self._names.get(_digest(token))

    def any_in_force(self) -> bool:
        """Whether there is a token at all."""
        with self._engine.connect() as connection:
            return bool(_in_force(connection))


def _in_force(connection: Connection) -> dict[str, str]:
    rows = connection.execute(select(_TABLE.c.hash, _TABLE.c.name).where(_TABLE.c.revoked_at.is_(None)))
    return {row.hash: row.name for row in rows}


def _digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
