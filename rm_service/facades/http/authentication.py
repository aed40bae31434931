"""Who asks: a bearer token (RFC 6750), where one is needed."""

from collections.abc import Callable
from dataclasses import dataclass

from rm_service.facades.http.problems import ProblemError

NOBODY = ""
OPEN_PATHS = frozenset({"/healthz", "/readyz", "/openapi.json"})
"""Answered to everybody: they tell nothing about what is held."""
OPEN_PREFIX = "/docs"


@dataclass(frozen=True, slots=True)
class Authentication:
    """Finds the name of the caller."""

    needed: bool
    name_of: Callable[[str], str | None]
    """The name of a token in force."""

    def caller(self, path: str, authorization: str | None) -> str:
        """The name of the caller's token, NOBODY where none was sent or needed. Raises ProblemError (401)."""
        if authorization is None:
            if self.needed and path not in OPEN_PATHS and not path.startswith(OPEN_PREFIX):
                raise _unauthorized("a token is needed")
            return NOBODY
        scheme, _, token = authorization.partition(" ")
        name = self.name_of(token.strip()) if scheme.lower() == "bearer" else None
        if name is None:
            raise _unauthorized("the token is not one in force")
        return name


def _unauthorized(detail: str) -> ProblemError:
    return ProblemError("unauthorized", detail, headers={"WWW-Authenticate": 'Bearer realm="rm-service"'})
