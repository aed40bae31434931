"""The parameters of a request, as Kubernetes calls them. Those that mean nothing here are passed over."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from typing import TypeVar
from urllib.parse import parse_qsl

from rm_service.domain.class_book import ResourceClass
from rm_service.domain.selectors import Selector, SelectorError, parse_selector
from rm_service.facades.kubernetes.media_types import Include
from rm_service.facades.kubernetes.statuses import (
    StatusError,
    bad_request,
    unsupported_value,
)
from rm_service.facades.kubernetes.unknown_fields import FieldValidation

NAME_FIELD = "metadata.name"
DRY_RUN = "All"
_MAX_DIGITS = 18
_MAX_SHOWN = 64

Word = TypeVar("Word", bound=StrEnum)


@dataclass(frozen=True, slots=True)
class Chosen:
    """Which classes a list or a watch is about."""

    labels: Selector
    name: str | None = None
    """Only this one."""
    not_names: frozenset[str] = frozenset()

    def shows(self, known: ResourceClass) -> bool:
        if self.name not in {None, known.name} or known.name in self.not_names:
            return False
        return self.labels.matches(known.labels)


@dataclass(frozen=True, slots=True)
class Continue:
    """Where a list goes on: behind a name; `version` is the one that the list began with."""

    version: int
    name: str

    def write(self) -> str:
        return base64.urlsafe_b64encode(json.dumps([self.version, self.name]).encode()).decode()


@dataclass(frozen=True, slots=True)
class Parameters:
    """Reads the query of one request. Everything raises StatusError (400, 422) for what cannot be."""

    given: Mapping[str, str]

    @property
    def watch(self) -> bool:
        return self.given.get("watch", "").lower() in {"1", "true"}

    @property
    def include(self) -> Include:
        return self._word("includeObject", Include, Include.METADATA)

    @property
    def field_validation(self) -> FieldValidation:
        return self._word("fieldValidation", FieldValidation, FieldValidation.WARN)

    @property
    def dry_run(self) -> bool:
        text = self.given.get("dryRun", "")
        if text not in {"", DRY_RUN}:
            raise _unsupported("dryRun", text, (DRY_RUN,))
        return text == DRY_RUN

    @property
    def limit(self) -> int:
        """How many a list may have; 0: all."""
        return self._number("limit") or 0

    @property
    def timeout_seconds(self) -> int | None:
        """After how long a watch ends; None: it does not by itself."""
        return self._number("timeoutSeconds") or None

    @property
    def resource_version(self) -> int | None:
        """None where any version will do, also for 0, which says so."""
        return self._number("resourceVersion") or None

    @property
    def bookmarks(self) -> bool:
        return self.given.get("allowWatchBookmarks", "").lower() in {"1", "true"}

    @property
    def initial_events(self) -> bool | None:
        """Whether a watch begins with everything there is, and says when that is over; None: not said."""
        text = self.given.get("sendInitialEvents", "").lower()
        return None if not text else text in {"1", "true"}

    @property
    def chosen(self) -> Chosen:
        name, not_names = self._field_selector()
        return Chosen(self._label_selector(), name, frozenset(not_names))

    @property
    def go_on(self) -> Continue | None:
        text = self.given.get("continue", "")
        if not text:
            return None
        try:
            version, name = json.loads(base64.urlsafe_b64decode(text.encode()))
        except (ValueError, TypeError, RecursionError):
            raise _foreign_key() from None
        if type(version) is not int or version < 0 or not isinstance(name, str):
            raise _foreign_key()
        return Continue(version, name)

    def _label_selector(self) -> Selector:
        text = self.given.get("labelSelector", "")
        try:
            return parse_selector(text)
        except SelectorError as error:
            raise bad_request(f"unable to parse the label selector: {error}") from error

    def _field_selector(self) -> tuple[str | None, set[str]]:
        name: str | None = None
        not_names: set[str] = set()
        for term in self.given.get("fieldSelector", "").split(","):
            if not term.strip():
                continue
            field, operator, value = _term(term)
            if field != NAME_FIELD:
                raise bad_request(f'field label not supported: "{field[:_MAX_SHOWN]}"')
            if operator == "!=":
                not_names.add(value)
            elif name not in {None, value}:
                not_names.add(value)  # it cannot have two names: nothing is left
                not_names.add(name or "")
            else:
                name = value
        return name, not_names

    def _word(self, parameter: str, words: type[Word], default: Word) -> Word:
        text = self.given.get(parameter, "")
        try:
            return words(text) if text else default
        except ValueError:
            raise _unsupported(parameter, text, tuple(words)) from None

    def _number(self, parameter: str) -> int | None:
        text = self.given.get(parameter, "")
        if not text:
            return None
        if not (text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS):
            raise bad_request(f'{parameter}: Invalid value: "{text[:_MAX_SHOWN]}": is not a whole number')
        return int(text)


def read_parameters(query: str) -> Parameters:
    """The query of a request; of what is given more than once the first counts, as in Kubernetes."""
    given: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        given.setdefault(name, value)
    return Parameters(given)


def _term(term: str) -> tuple[str, str, str]:
    for operator in ("!=", "==", "="):
        field, found, value = term.partition(operator)
        if found:
            return field.strip(), operator, value.strip()
    raise bad_request(f'invalid field selector: "{term[:_MAX_SHOWN]}"')


def _foreign_key() -> StatusError:
    return bad_request("continue key is not valid: it is not one of this list")


def _unsupported(parameter: str, text: str, words: tuple[str, ...]) -> StatusError:
    cause = unsupported_value(parameter, text[:_MAX_SHOWN], words)
    message = f"{parameter}: {cause.message}"
    code = HTTPStatus.UNPROCESSABLE_ENTITY
    return StatusError(code, "Invalid", message, causes=[cause], about_class=False)
