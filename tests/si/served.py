"""A running service with its shims, and its books as HTTP shows them."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tests.si.shim import Shim
from tests.system.client import Client, Json, until
from tests.system.service_process import ServiceProcess

Running = tuple[str, str, str, tuple[tuple[str, int], ...]]
"""Application, key, node and amounts of an allocation."""


@dataclass
class Served:
    """A service process as one test sees it; `address` is where it speaks gRPC.

    `suffix` is added to every RM's name, so that tests that share a service have RMs of their own.
    """

    process: ServiceProcess
    address: str
    client: Client
    suffix: str = ""
    shims: list[Shim] = field(default_factory=list)
    _logged: int = field(init=False)

    def __post_init__(self) -> None:
        self._logged = len(self.process.log_text())

    def shim(self, dialect: str, rm_id: str) -> Shim:
        """A shim over gRPC that has said nothing yet; closed after the test."""
        return self._keep(Shim.connect(dialect, self.address, rm_id and rm_id + self.suffix))

    def twin(self, dialect: str, rm_id: str) -> Shim:
        """The same over HTTP."""
        return self._keep(Shim.twin(dialect, self.process.port, rm_id and rm_id + self.suffix))

    def _keep(self, shim: Shim) -> Shim:
        self.shims.append(shim)
        return shim

    def members(self, rm_id: str, state: str, partition: str = "default") -> list[Json]:
        """The RM's asks (waiting) or allocations (used) as the ledger has them."""
        tag = f"[{rm_id}]{partition}"
        return [
            each
            for each in self.client.pages(f"/applications?state={state}")
            if each["tags"].get("partition") == tag and "allocationKey" in each["tags"]
        ]

    def running(self, rm_id: str) -> Counter[Running]:
        """How often each allocation of the RM is booked."""
        return Counter(
            (
                each["tags"].get("app", ""),
                each["tags"]["allocationKey"],
                each["node"],
                _amounts(each["resource"]),
            )
            for each in self.members(rm_id, "used")
        )

    def waiting(self, rm_id: str) -> set[str]:
        """The keys of the RM's asks that wait."""
        return {each["tags"]["allocationKey"] for each in self.members(rm_id, "waiting")}

    def nodes(self, rm_id: str, partition: str = "default") -> dict[str, Json]:
        """The labels of the RM's nodes with their balances, by the node's name; those that have a total."""
        tag = f"[{rm_id}]{partition}"
        return {
            label["tags"]["node"]: label
            for label in self.client.pages("/labels")
            if label["tags"].keys() == {"partition", "node"}
            and label["tags"]["partition"] == tag
            and label["total"] is not None
        }

    def check_books(self, *shims: Shim) -> None:
        """The ledger holds exactly what each shim believes to be running, on its nodes too, and is sound."""
        for shim in shims:
            held = Counter((one.app, one.key, one.node, _amounts(one.resource)) for one in shim.held)
            assert self.running(shim.rm_id) == held, shim.rm_id
            on_nodes: dict[str, Counter[str]] = {}
            for one in shim.held:
                on_nodes.setdefault(one.node, Counter()).update(one.resource)
            booked = {name: node["used"] for name, node in self.nodes(shim.rm_id).items() if node["used"]}
            assert booked == {name: dict(amounts) for name, amounts in on_nodes.items()}, shim.rm_id
        audit = self.client.get("/audit")
        assert audit["consistent"], audit

    def agrees(self, *shims: Shim) -> bool:
        """Whether the books are as `check_books` wants them."""
        try:
            self.check_books(*shims)
        except AssertionError:
            return False
        return True

    def until_agreed(self, *shims: Shim, seconds: float = 20) -> None:
        """Wait until the books agree, and show the difference if they never do."""
        try:
            until(lambda: self.agrees(*shims), "the books agree", seconds=seconds)
        except AssertionError:
            self.check_books(*shims)
            raise

    def no_traceback(self) -> None:
        """Nothing was logged since the test began that nobody had thought of."""
        assert "Traceback" not in self.process.log_text()[self._logged :], self.process.log_tail()

    def close(self) -> None:
        for shim in self.shims:
            shim.close()
        self.client.close()


StartSi = Callable[..., Served]


def _amounts(resource: Mapping[str, int]) -> tuple[tuple[str, int], ...]:
    return tuple(sorted((name, amount) for name, amount in resource.items() if amount))
