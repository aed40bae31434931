"""A small cluster with limits: few enough resources that some applications are refused."""

from collections.abc import Callable, Mapping

from tests.system.client import Client
from tests.system.customers import GIB, Ask
from tests.system.service_process import ServiceProcess

NODES = 4
HOT = "hot"


def set_up(client: Client, *, node_memory: int = 64 * GIB, user_memory: int = 40 * GIB) -> None:
    """Register the nodes, and give every user a limit of their own."""
    for number in range(NODES):
        total = {"memory": node_memory, "vcore": 1_000_000, "instances": 10_000}
        body = {"total": total, "protected": {"memory": 2 * GIB}}
        client.put(f"/nodes/node-{number}", body, status=201)
    limit = {"tags": {"user": "*"}, "total": {"memory": user_memory}, "protected": {"memory": GIB}}
    client.put("/limits", limit, status=201)


def offers(user: str) -> list[Mapping[str, str]]:
    """What one user applies under: every node, one creator and engine type."""
    common = {"user": user, "creator": "IDE", "engineType": "spark-3.3"}
    return [{**common, "node": f"node-{number}"} for number in range(NODES)]


def asks_of(service: ServiceProcess) -> Callable[[int], Ask]:
    """One connection to the service for each customer; the first missing answer is passed on to it."""

    def ask_alone(_number: int) -> Ask:
        return Client(service.port).send

    return ask_alone
