"""The keys under which secrets are kept: lines of a file that the replicas share.

The first key encrypts, all of them decrypt. So a key is replaced in three steps, each on every replica: the
new one is added as the last line, then moved to the first, and when each secret was stored again the old one
goes.
"""

from pathlib import Path
from typing import Any, Self

import orjson
from cryptography.fernet import Fernet, InvalidToken, MultiFernet


class KeyFileError(ValueError):
    """RM_SECRET_KEY_FILE cannot be used."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"RM_SECRET_KEY_FILE {path}: {reason}")


class NoKeyError(Exception):
    """There is something to be kept secret, and no key for it."""

    def __init__(self) -> None:
        super().__init__("secrets are kept under the keys of RM_SECRET_KEY_FILE, which is not set")


class LockedError(Exception):
    """What was kept cannot be read: none of the keys fits, or it is not what was kept here."""

    def __init__(self) -> None:
        super().__init__("its secrets cannot be read: none of the keys in RM_SECRET_KEY_FILE fits")


def new_key() -> str:
    """A line for the file."""
    return Fernet.generate_key().decode()


class Keys:
    """What seals and opens; without keys it does neither."""

    def __init__(self, keys: list[str]) -> None:
        """Raises ValueError for what is no key."""
        self._fernet = MultiFernet([Fernet(key) for key in keys]) if keys else None

    @classmethod
    def of_file(cls, path: str | None) -> Self:
        """The keys of a file, none without one. Raises KeyFileError, which tells no key."""
        if path is None:
            return cls([])
        try:
            lines = Path(path).read_text(encoding="ascii").splitlines()
        except OSError as error:
            raise KeyFileError(path, error.strerror or "cannot be read") from error
        except UnicodeDecodeError as error:
            raise KeyFileError(path, "is no text") from error
        keys = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
        if not keys:
            raise KeyFileError(path, "holds no key; `rm-service secret-key` prints one")
        for number, key in enumerate(keys, start=1):
            try:
                Fernet(key)
            except ValueError:
                reason = f"key {number} is none; `rm-service secret-key` prints one"
                raise KeyFileError(path, reason) from None
        return cls(keys)

    def seal(self, owner: str, document: object) -> str:
        """The document, encrypted; only for `owner` it opens again. Raises NoKeyError."""
        if self._fernet is None:
            raise NoKeyError
        return self._fernet.encrypt(orjson.dumps({"owner": owner, "document": document})).decode()

    def open(self, owner: str, sealed: str) -> Any:  # noqa: ANN401 - any JSON
        """What was sealed for `owner`. Raises NoKeyError, LockedError."""
        if self._fernet is None:
            raise NoKeyError
        try:
            opened = orjson.loads(self._fernet.decrypt(sealed))
        except InvalidToken as error:
            raise LockedError from error
        if opened["owner"] != owner:
            raise LockedError
        return opened["document"]
