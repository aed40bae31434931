"""The checks: each takes a Subject and raises Violation for the first thing that is not kept."""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from threading import Barrier, Thread
from typing import Any

from marshmallow import Schema

from external_providers.base import (
    ExternalApplication,
    Health,
    Identity,
    Place,
    ProviderConfigError,
    ProviderError,
)
from external_providers.testkit.subject import (
    Config,
    Subject,
    Violation,
    all_fields,
    is_secret,
    nested_schema,
    require,
)
from rm_service.domain.tags import TagError, check_tags, key_fault, value_fault

UNKNOWN = "no_such_key"
MOST = 2**62
"""More of anything is absurd, and kept out by the service."""
HANG_SECONDS = 0.3
"""The timeout that is given where the manager hangs."""
PATIENCE_SECONDS = 30.0
"""After so long a question with that timeout is taken to hang for good."""
THREADS = 4
SHORTEST_SECRET = 4
"""A shorter one is found in any text by chance."""
_TYPE = re.compile(r"[a-z][a-z0-9-]*")
_SOUNDS_SECRET = re.compile(r"passw|secret|token|credential|private_key", re.IGNORECASE)
_IS_NO_SECRET = re.compile(r"(file|path|seconds)$", re.IGNORECASE)


def check_identity(subject: Subject) -> None:
    """`identify` says the same as the class and its parser; its names can be used."""
    identity = subject.provider.identify()
    require(isinstance(identity, Identity), "identify() gives no Identity")
    require(identity == subject.provider.identity, "identify() differs from `identity`")
    require(identity == subject.provider.parser.identity, "the parser has another identity")
    require(
        _TYPE.fullmatch(identity.type),
        f"the type {identity.type!r} is not of small letters, digits and dashes",
    )
    for key in (identity.cluster_key, identity.place_key):
        require(key_fault(key) is None, f"{key!r} cannot be the key of a tag")
    require(identity.cluster_key != identity.place_key, "cluster and place have the same key")
    for dimension in identity.dimensions:
        require(key_fault(dimension) is None, f"{dimension!r} cannot be a dimension")


def check_good_config(subject: Subject) -> None:
    """It is parsed, unchanged by that, and gives tags."""
    before = deepcopy(dict(subject.config))
    matched = subject.provider.parser.parse(subject.record())
    require(subject.config == before, "parse() changes the configuration that it is given")
    require(matched.name == subject.name, "parse() gives another name than the record's")
    try:
        check_tags(matched.labels)
    except TagError as error:
        raise Violation(f"parse() gives labels that are no tags: {error}") from error
    key = subject.provider.identity.cluster_key
    require(matched.labels.get(key), f"parse() gives no label {key}")
    _no_secrets(repr(matched), subject, "the text of what parse() gives")


def check_unknown_keys(subject: Subject) -> None:
    """A key that nobody knows is refused and named, also in objects within the configuration."""
    for path, config in _with_unknown(subject.provider.parser.schema(), subject.config):
        _refused(subject, config, path, "is unknown, and is taken")


def check_missing_fields(subject: Subject) -> None:
    """What the schema requires is."""
    for name, each in subject.provider.parser.schema().fields.items():
        key = each.data_key or name
        if each.required:
            config = {other: value for other, value in subject.config.items() if other != key}
            _refused(subject, config, key, "is required, and can be left out")


def check_wrong_types(subject: Subject) -> None:
    """A number instead of an object, an object instead of a text."""
    for key, value in subject.config.items():
        wrong: object = 7 if isinstance(value, Mapping | list) else {"no": "such"}
        _refused(subject, {**subject.config, key: wrong}, key, f"is taken as {wrong!r}")


def check_secrets_are_marked(subject: Subject) -> None:
    """Fields that sound like secrets have `metadata=SECRET`."""
    for path, each in all_fields(subject.provider.parser.schema()):
        name = path.rpartition(".")[2]
        sounds = _SOUNDS_SECRET.search(name) and not _IS_NO_SECRET.search(name)
        open_ = not is_secret(each) and nested_schema(each) is None
        require(not (sounds and open_), f"{path} sounds like a secret and is not marked as one")


def check_places(subject: Subject) -> None:
    """Their names are full, unique and can be tags; amounts are whole numbers in known dimensions."""
    _check_places(subject, subject.places())


def check_applications(subject: Subject) -> None:
    """They have unique ids, and run in places that are there."""
    _check_applications(subject, subject.applications(), subject.places())


def check_health(subject: Subject) -> None:
    """A manager that answers is well."""
    health = subject.health()
    _check_health(subject, health)
    require(health.ok, f"health() says of a manager that answers: {health.detail}")


def check_troubles(subject: Subject) -> None:
    """Places raise a ProviderError, applications that or are empty, health says so; none shows a secret."""
    require(subject.troubles, "no troubles are given, so that nothing is known of how it fails")
    for name, trouble in subject.troubles.items():
        with trouble.way() as config:
            outcomes = _together(_questions(subject, config, subject.timeout_seconds))
        for method, outcome in outcomes.items():
            _check_failure(subject, config, f"{method}() of a manager that {name}", outcome, trouble.error)


def check_hangs(subject: Subject) -> None:
    """The request's timeout is kept, whatever the manager does not say."""
    for name, way in subject.hangs.items():
        with way() as config:
            outcomes = _together(_questions(subject, config, HANG_SECONDS))
        for method, outcome in outcomes.items():
            _check_failure(subject, config, f"{method}() of a manager that {name}", outcome, ProviderError)


def check_threads(subject: Subject) -> None:
    """Several threads that ask at a time are answered as one is."""
    barrier = Barrier(THREADS)

    def ask() -> tuple[Sequence[ExternalApplication], Sequence[Place], Health]:
        barrier.wait(PATIENCE_SECONDS)
        return subject.applications(), subject.places(), subject.health()

    for outcome in _together({str(at): ask for at in range(THREADS)}).values():
        if isinstance(outcome, BaseException):
            raise Violation(f"one of {THREADS} threads got {outcome!r}") from outcome
        applications, places, health = outcome
        _check_places(subject, places)
        _check_applications(subject, applications, places)
        _check_health(subject, health)


# ---- what is given -----------------------------------------------------------------------------------------


def _check_places(subject: Subject, places: Sequence[Place]) -> None:
    require(places, "there are no places: a manager that has some is needed to check anything")
    seen: set[str] = set()
    for place in places:
        require(isinstance(place, Place), f"{place!r} is no Place")
        fault = value_fault(place.name) or (None if place.name else "is empty")
        require(fault is None, f"the place's name {place.name!r} cannot be the value of a tag: {fault}")
        require(place.name not in seen, f"the place {place.name} is there twice")
        seen.add(place.name)
        for part in ("total", "used", "guaranteed", "pending"):
            _check_amounts(subject, f"{place.name}.{part}", getattr(place, part))
        require(isinstance(place.open, bool), f"{place.name}.open is {place.open!r}")
        require(place.fault == "", f"{place.name} has a fault where the manager is well: {place.fault}")
        _check_details(place)


def _check_details(place: Place) -> None:
    try:
        json.dumps(dict(place.details), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise Violation(f"{place.name}.details cannot be shown as JSON: {error}") from error


def _check_amounts(subject: Subject, where: str, amounts: object) -> None:
    if not isinstance(amounts, Mapping):
        raise Violation(f"{where} is {amounts!r}")
    known = subject.provider.identity.dimensions
    for dimension, amount in amounts.items():
        require(key_fault(dimension) is None, f"{where}: {dimension!r} cannot be a dimension")
        require(not known or dimension in known, f"{where}: {dimension} is not in the identity's dimensions")
        whole = isinstance(amount, int) and not isinstance(amount, bool)
        require(whole, f"{where}.{dimension} is {amount!r}, no whole number")
        require(0 <= amount <= MOST, f"{where}.{dimension} is {amount}, which is absurd")


def _check_applications(
    subject: Subject, applications: Sequence[ExternalApplication], places: Sequence[Place]
) -> None:
    names = {place.name for place in places}
    seen: set[str] = set()
    for each in applications:
        require(isinstance(each, ExternalApplication), f"{each!r} is no ExternalApplication")
        require(each.id and isinstance(each.id, str), f"{each!r} has no id")
        require(each.id not in seen, f"the application {each.id} is there twice")
        seen.add(each.id)
        require(each.place in names, f"the application {each.id} runs in {each.place!r}, which is no place")
        _check_amounts(subject, f"{each.id}.allocated", each.allocated)
        require(each.fault == "", f"the application {each.id} has a fault where the manager is well")
        for word in (each.state, each.user, each.name, each.kind, *each.tags):
            require(isinstance(word, str), f"the application {each.id} has {word!r} where a text is meant")
        require(isinstance(each.tags, frozenset), f"the tags of the application {each.id} are no frozenset")


def _check_health(subject: Subject, health: object) -> None:
    if not isinstance(health, Health):
        raise Violation(f"health() gives {health!r}")
    _no_secrets(health.detail, subject, "health()")


# ---- what fails --------------------------------------------------------------------------------------------


def _questions(subject: Subject, config: Config, seconds: float) -> dict[str, Callable[[], Any]]:
    request, provider = subject.request(config, seconds), subject.provider
    return {
        "applications": lambda: provider.applications(request),
        "places": lambda: provider.places(request),
        "health": lambda: provider.health(request),
    }


class _HungError(Exception):
    """There was no outcome."""


def _together(calls: Mapping[str, Callable[[], Any]]) -> dict[str, Any]:
    """Call all at a time, each in a thread; what each gave or raised, or _HungError."""
    outcomes: dict[str, Any] = {name: _HungError() for name in calls}

    def run(name: str, call: Callable[[], Any]) -> None:
        try:
            outcomes[name] = call()
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is looked at
            outcomes[name] = error

    # Daemons: one that hangs must not keep the tests from ending.
    threads = [Thread(target=run, args=item, daemon=True) for item in calls.items()]
    for thread in threads:
        thread.start()
    end = time.monotonic() + PATIENCE_SECONDS
    for thread in threads:
        thread.join(max(end - time.monotonic(), 0))
    return dict(outcomes)


def _check_failure(
    subject: Subject, config: Config, what: str, outcome: object, expected: type[ProviderError]
) -> None:
    if isinstance(outcome, _HungError):
        raise Violation(f"{what} goes on long after its timeout")
    if what.startswith("health"):
        if isinstance(outcome, BaseException):
            raise Violation(f"{what} raises {outcome!r}") from outcome
        _check_health(subject, outcome)
        require(isinstance(outcome, Health) and not outcome.ok, f"{what} says that all is well")
        require(isinstance(outcome, Health) and outcome.detail, f"{what} does not say what is wrong")
    elif isinstance(outcome, BaseException):
        if not isinstance(outcome, expected):
            raise Violation(f"{what} raises {outcome!r}, no {expected.__name__}") from outcome
        require(str(outcome), f"{what} does not say what is wrong")
        for link in _chain(outcome):
            _no_secrets(f"{link} {link!r}", subject, f"what {what} raises", config)
    else:
        # A manager may have no list of applications at all.
        require(what.startswith("applications") and not outcome, f"{what} gives an answer all the same")


def _chain(error: BaseException) -> Iterator[BaseException]:
    """What a log shows of an error: itself and what led to it."""
    link: BaseException | None = error
    while link is not None:
        yield link
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)


def _refused(subject: Subject, config: Config, path: str, otherwise: str) -> None:
    try:
        subject.provider.parser.parse(subject.record(config))
    except ProviderConfigError as error:
        named = any(name == path or name.startswith(f"{path}.") for name in error.faults)
        require(named, f"{path} is refused, but the faults name {', '.join(error.faults)}")
        _no_secrets(str(error), subject, f"the refusal of {path}")
    except Exception as error:
        raise Violation(f"{path} is refused by {error!r}, not by ProviderConfigError") from error
    else:
        raise Violation(f"{path} {otherwise}")


def _with_unknown(schema: Schema, config: Config, path: str = "") -> Iterator[tuple[str, Config]]:
    """The configuration with an unknown key in it, at each depth."""
    yield f"{path}{UNKNOWN}", {**config, UNKNOWN: 1}
    for name, each in schema.fields.items():
        key = each.data_key or name
        inner, value = nested_schema(each), config.get(key)
        if inner is not None and isinstance(value, Mapping):
            for where, changed in _with_unknown(inner, value, f"{path}{key}."):
                yield where, {**config, key: changed}


def _no_secrets(text: str, subject: Subject, where: str, config: Config | None = None) -> None:
    secrets: Iterable[str] = [*subject.secrets(), *subject.secrets(config)]
    if any(len(secret) >= SHORTEST_SECRET and secret in text for secret in secrets):
        raise Violation(f"{where} shows a secret")
