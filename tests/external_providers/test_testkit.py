"""The test kit finds what it is there to find: each way of not keeping the contract is one small provider."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Event, get_ident
from typing import Any, ClassVar

import pytest
from marshmallow import Schema, fields

from external_providers.base import (
    SECRET,
    ExternalApplication,
    ExternalResourceProvider,
    ExternalResourceProviderParser,
    ExternalResourceRequest,
    Health,
    Identity,
    MatchedProvider,
    Place,
    ProviderRecord,
    UnreachableError,
)
from external_providers.testkit import Config, ProviderContract, Subject, Trouble, Violation, check_provider

IDENTITY = Identity("pond", "pondCluster", "pondPlace", frozenset({"pond.fish"}))
PLACE = Place("north", {"pond.fish": 7}, {"pond.fish": 2})
APPLICATION = ExternalApplication("a-1", "north", {"pond.fish": 2})
KEY = "s3cret-key"


class InnerSchema(Schema):
    depth = fields.Integer()


class PondSchema(Schema):
    where = fields.String(required=True)
    password = fields.String(metadata=SECRET)
    inner = fields.Nested(InnerSchema)


class PondProvider(ExternalResourceProvider):
    """Keeps to everything; what it says is given to it."""

    identity: ClassVar[Identity] = IDENTITY
    parser: ClassVar[ExternalResourceProviderParser] = ExternalResourceProviderParser(IDENTITY, PondSchema)

    def __init__(
        self, places: Sequence[Any] = (PLACE,), applications: Sequence[Any] = (APPLICATION,)
    ) -> None:
        self.said: Sequence[Place] = places
        self.listed: Sequence[ExternalApplication] = applications
        self.over = Event()

    def applications(self, request: ExternalResourceRequest) -> Sequence[ExternalApplication]:
        self.look(request)
        return self.listed

    def places(self, request: ExternalResourceRequest) -> Sequence[Place]:
        self.look(request)
        return self.said

    def health(self, request: ExternalResourceRequest) -> Health:
        try:
            self.look(request)
        except UnreachableError as error:
            return Health(ok=False, detail=str(error))
        return Health(ok=True)

    def look(self, request: ExternalResourceRequest) -> None:
        match request.provider.params["where"]:
            case "nowhere":
                self.fail(request)
            case "asleep":
                self.hang(request)

    def fail(self, request: ExternalResourceRequest) -> None:
        raise UnreachableError("it is nowhere")

    def hang(self, request: ExternalResourceRequest) -> None:
        assert not self.over.wait(request.timeout_seconds)
        raise UnreachableError("it is asleep")


def subject_of(provider: ExternalResourceProvider) -> Subject:
    def leading(where: str) -> Callable[[], Any]:
        @contextmanager
        def way() -> Iterator[Config]:
            yield {"where": where, "password": KEY}

        return way

    return Subject(
        provider,
        {"where": "here", "password": KEY, "inner": {"depth": 3}},
        troubles={"is nowhere": Trouble(leading("nowhere"), UnreachableError)},
        hangs={"is asleep": leading("asleep")},
    )


def violation_of(provider: ExternalResourceProvider) -> str:
    with pytest.raises(Violation) as caught:
        check_provider(subject_of(provider))
    return str(caught.value)


class TestOneThatKeepsToIt(ProviderContract):
    @pytest.fixture
    def subject(self) -> Subject:
        return subject_of(PondProvider())


def test_it_needs_no_pytest() -> None:
    check_provider(subject_of(PondProvider()))


@pytest.mark.parametrize(
    ("place", "violation"),
    [
        (Place("", {}, {}), "the place's name '' cannot be the value of a tag: is empty"),
        (Place("a\nb", {}, {}), "cannot be the value of a tag: the value holds a control character"),
        (Place("a", {"pond.fish": -1}, {}), "a.total.pond.fish is -1, which is absurd"),
        (
            Place("a", {}, {"pond.fish": 2**62 + 1}),
            "a.used.pond.fish is 4611686018427387905, which is absurd",
        ),
        (Place("a", {}, {}, guaranteed={"pond.fish": 1.5}), "a.guaranteed.pond.fish is 1.5, no whole number"),  # type: ignore[dict-item]
        (Place("a", {}, {}, pending={"pond.fish": True}), "a.pending.pond.fish is True, no whole number"),
        (Place("a", {"pond.frogs": 1}, {}), "a.total: pond.frogs is not in the identity's dimensions"),
        (Place("a", None, {}), "a.total is None"),  # type: ignore[arg-type]
        (Place("a", {}, {}, details={"x": object()}), "a.details cannot be shown as JSON"),
        (Place("a", {}, {}, fault="no"), "a has a fault where the manager is well: no"),
        (PLACE, "the place north is there twice"),
        ("north", "'north' is no Place"),
    ],
)
def test_a_place_that_is_not_well_formed_is_found(place: Any, violation: str) -> None:
    assert violation in violation_of(PondProvider([PLACE, place]))


def test_a_manager_without_places_checks_nothing() -> None:
    assert violation_of(PondProvider([])).startswith("there are no places")


@pytest.mark.parametrize(
    ("application", "violation"),
    [
        (ExternalApplication("", "north", {}), "has no id"),
        (ExternalApplication("a-2", "south", {}), "a-2 runs in 'south', which is no place"),
        (ExternalApplication("a-2", "north", {"pond.fish": -1}), "a-2.allocated.pond.fish is -1"),
        (ExternalApplication("a-2", "north", {}, fault="no"), "a-2 has a fault where the manager is well"),
        (ExternalApplication("a-2", "north", {}, user=None), "has None where a text is meant"),  # type: ignore[arg-type]
        (ExternalApplication("a-2", "north", {}, tags=["x"]), "are no frozenset"),  # type: ignore[arg-type]
        (APPLICATION, "the application a-1 is there twice"),
    ],
)
def test_an_application_that_is_not_well_formed_is_found(application: Any, violation: str) -> None:
    assert violation in violation_of(PondProvider(applications=[APPLICATION, application]))


class Leaking(PondProvider):
    def fail(self, request: ExternalResourceRequest) -> None:
        raise UnreachableError(f"the password is {request.provider.params['password']}")


class LeakingBehind(PondProvider):
    def fail(self, request: ExternalResourceRequest) -> None:
        raise UnreachableError("it is nowhere") from OSError(request.provider.params["password"])


class Raising(PondProvider):
    def fail(self, request: ExternalResourceRequest) -> None:
        raise OSError("it is nowhere")


class Pretending(PondProvider):
    def fail(self, request: ExternalResourceRequest) -> None:
        return


class Hopeful(PondProvider):
    def health(self, request: ExternalResourceRequest) -> Health:
        return Health(ok=True)


class Nervous(PondProvider):
    def health(self, request: ExternalResourceRequest) -> Health:
        self.look(request)
        return Health(ok=True)


class Confused(PondProvider):
    def identify(self) -> Identity:
        return Identity("lake", "lakeCluster", "lakePlace", frozenset())


class Single(PondProvider):
    """Answers only the thread that asks first."""

    owner: int | None = None

    def look(self, request: ExternalResourceRequest) -> None:
        super().look(request)
        if request.provider.params["where"] == "here":
            self.owner = self.owner or get_ident()
            assert self.owner == get_ident(), "another thread"


@pytest.mark.parametrize(
    ("provider", "violation"),
    [
        (Leaking, "what applications() of a manager that is nowhere raises shows a secret"),
        (LeakingBehind, "what applications() of a manager that is nowhere raises shows a secret"),
        (Raising, "applications() of a manager that is nowhere raises OSError('it is nowhere'), no"),
        (Pretending, "applications() of a manager that is nowhere gives an answer all the same"),
        (Hopeful, "health() of a manager that is nowhere says that all is well"),
        (Nervous, "health() of a manager that is nowhere raises UnreachableError"),
        (Confused, "identify() differs from `identity`"),
        (Single, "one of 4 threads got AssertionError('another thread"),
    ],
)
def test_what_a_provider_does_wrong_is_found(provider: type[PondProvider], violation: str) -> None:
    assert violation in violation_of(provider())


def test_one_that_hangs_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    class Hanging(PondProvider):
        def hang(self, request: ExternalResourceRequest) -> None:
            self.over.wait()

    monkeypatch.setattr("external_providers.testkit.checks.PATIENCE_SECONDS", 0.5)
    provider = Hanging()
    try:
        said = violation_of(provider)
    finally:
        provider.over.set()
    assert said == "applications() of a manager that is asleep goes on long after its timeout"


class OpenSchema(PondSchema):
    api_token = fields.String()


class LaxSchema(PondSchema):
    class Meta:
        unknown = "exclude"


class LaxInnerSchema(PondSchema):
    inner = fields.Nested(InnerSchema, unknown="exclude")


class Optional(ExternalResourceProviderParser):
    def parse(self, record: ProviderRecord) -> MatchedProvider:
        config = {"where": "here", **record.config}
        return super().parse(ProviderRecord(record.type, record.name, config))


class Taking(ExternalResourceProviderParser):
    def parse(self, record: ProviderRecord) -> MatchedProvider:
        config: dict[str, Any] = {**record.config}
        config["where"] = str(config.get("where"))
        return super().parse(ProviderRecord(record.type, record.name, config))


class Changing(ExternalResourceProviderParser):
    def parse(self, record: ProviderRecord) -> MatchedProvider:
        record.config.pop("inner")  # type: ignore[attr-defined]
        return super().parse(record)


class Nameless(ExternalResourceProviderParser):
    def labels(self, record: ProviderRecord, params: Mapping[str, Any]) -> dict[str, str]:
        return {}


@pytest.mark.parametrize(
    ("parser", "violation"),
    [
        (ExternalResourceProviderParser(IDENTITY, OpenSchema), "api_token sounds like a secret and is not"),
        (ExternalResourceProviderParser(IDENTITY, LaxSchema), "no_such_key is unknown, and is taken"),
        (
            ExternalResourceProviderParser(IDENTITY, LaxInnerSchema),
            "inner.no_such_key is unknown, and is taken",
        ),
        (Optional(IDENTITY, PondSchema), "where is required, and can be left out"),
        (Taking(IDENTITY, PondSchema), "where is required, and can be left out"),
        (Changing(IDENTITY, PondSchema), "parse() changes the configuration that it is given"),
        (Nameless(IDENTITY, PondSchema), "parse() gives no label pondCluster"),
    ],
)
def test_what_a_parser_does_wrong_is_found(parser: ExternalResourceProviderParser, violation: str) -> None:
    provider = type("Provider", (PondProvider,), {"parser": parser})()
    assert violation_of(provider).startswith(violation)
