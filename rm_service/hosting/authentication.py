"""Who asks: a bearer token (RFC 6750), where one is needed."""

from collections.abc import Callable
from dataclasses import dataclass

NOBODY = ""
CHALLENGE = 'Bearer realm="rm-service"'
"""What the header `WWW-Authenticate` says beside a 401."""


class UnauthorizedError(Exception):
    """A token is needed and none was sent, or what was sent is not one in force."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


@dataclass(frozen=True, slots=True)
class Authentication:
    """Finds the name of the caller."""

    needed: bool
    name_of: Callable[[str], str | None]
    """The name of a token in force."""

    def caller(self, authorization: str | None, *, open_to_all: bool = False) -> str:
        """The name of the caller's token, NOBODY where none was sent or needed. Raises UnauthorizedError.

        `authorization` is the header (or gRPC metadata) of that name.
        """
        if authorization is None:
            if self.needed and not open_to_all:
                raise UnauthorizedError("a token is needed")
            return NOBODY
        scheme, _, token = authorization.partition(" ")
        name = self.name_of(token.strip()) if scheme.lower() == "bearer" else None
        if name is None:
            raise UnauthorizedError("the token is not one in force")
        return name
