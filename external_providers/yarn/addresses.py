"""Which of a cluster's ResourceManagers is the active one, and questions to it."""

from collections.abc import Mapping
from typing import Any

from external_providers.base import DeniedError, MalformedError, ProviderError, UnreachableError
from external_providers.bounded_http import BoundedSession, Deadline, origin
from external_providers.yarn.fetching import Question, RedirectedError, StandbyError, fetch
from external_providers.yarn.json_tolerance import Object, member, text
from external_providers.yarn.sessions import Sessions

INFO = "/ws/v1/cluster/info"
ACTIVE = "ACTIVE"
NOT_ACTIVE = frozenset({"STANDBY", "INITIALIZING", "STOPPING"})


class Cluster:
    """The ResourceManagers of one record. For several threads at once.

    The active one is remembered until it does not answer in its part of the time; what is left is for finding
    another. Those that did not answer last time are tried last. Only the addresses of the record are ever
    asked: a redirect can choose among them, it cannot lead our credentials elsewhere.
    """

    def __init__(self, params: Mapping[str, Any]) -> None:
        self.params = params
        self.queue_names: frozenset[str] = frozenset()
        """Those of the last tree that was read."""
        self._addresses: list[str] = list(dict.fromkeys(params["addresses"]))
        self._sessions = Sessions(params)
        self._active: str | None = self._addresses[0] if len(self._addresses) == 1 else None
        self._silent: set[str] = set()
        """Those that did not answer when they were asked last."""

    def ask(self, path: str, deadline: Deadline) -> Object:
        """The active one's answer. Raises ProviderError."""
        with self._sessions.lend() as session:
            address = self._active or self._find_active(session, deadline)
            part = deadline if len(self._addresses) == 1 else deadline.share(2)
            try:
                answer = self._fetch(address, path, part, session)
            except (UnreachableError, RedirectedError) as error:
                self._forget(address)
                address = self._other(address, error, session, deadline)
                answer = self._fetch(address, path, deadline, session)
            self._remember(address)
            return answer

    def info(self, deadline: Deadline) -> tuple[str, Object]:
        """The address of the active one, and what it says of itself. Raises ProviderError."""
        with self._sessions.lend() as session:
            return self._look_around(session, deadline)

    def close(self) -> None:
        self._sessions.close()

    def _fetch(self, address: str, path: str, deadline: Deadline, session: BoundedSession) -> Object:
        try:
            answer = fetch(Question(address, path, deadline, self.params), session)
        except StandbyError:
            self._silent.discard(address)
            raise
        except UnreachableError:
            self._silent.add(address)
            raise
        self._silent.discard(address)
        return answer

    def _other(self, address: str, error: ProviderError, session: BoundedSession, deadline: Deadline) -> str:
        """Whom to ask after one did not answer as the active one. Raises its error if there is nobody."""
        if len(self._addresses) == 1 or deadline.passed:
            raise error
        if isinstance(error, StandbyError | RedirectedError):
            named = self._at(error.location)
            if named is not None and named != address:
                return named
        return self._find_active(session, deadline)

    def _find_active(self, session: BoundedSession, deadline: Deadline) -> str:
        return self._look_around(session, deadline)[0]

    def _look_around(self, session: BoundedSession, deadline: Deadline) -> tuple[str, Object]:
        """Ask each what it is; one that does not answer leaves the others their share of the time."""
        faults: list[ProviderError] = []
        addresses = sorted(self._addresses, key=self._silent.__contains__)
        for number, address in enumerate(addresses):
            share = deadline.share(len(addresses) - number)
            try:
                info = member(self._fetch(address, INFO, share, session), "clusterInfo")
                if not info:
                    raise MalformedError(f"{address}: clusterInfo is missing")
            except ProviderError as error:
                faults.append(error)
                continue
            if _state(info) == ACTIVE:
                self._remember(address)
                return address, info
            state = _state(info)
            faults.append(StandbyError(f"{address} is {state if state in NOT_ACTIVE else 'not active'}"))
        raise _worst(faults)

    def _remember(self, address: str) -> None:
        self._active = address

    def _forget(self, address: str) -> None:
        if self._active == address and len(self._addresses) > 1:
            self._active = None

    def _at(self, location: str) -> str | None:
        """The address of ours at that place."""
        place = origin(location)
        return next((one for one in self._addresses if place and origin(one) == place), None)


def _state(info: Object) -> str:
    """Before there was high availability there was no word for it."""
    return text(info, "haState").upper() or ACTIVE


def _worst(faults: list[ProviderError]) -> ProviderError:
    """One error for all: of the kind that an operator has to look at first."""
    reasons = "; ".join(map(str, faults))
    for kind in (DeniedError, MalformedError):
        if any(isinstance(fault, kind) for fault in faults):
            return kind(reasons)
    return UnreachableError(reasons)
