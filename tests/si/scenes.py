"""What the stories begin with."""

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

from tests.si.answers import ACCEPTED_APPLICATION, ACCEPTED_NODE, NEW, Answer
from tests.si.dialects import DIALECTS, Ask
from tests.si.shim import Shim

ALL = tuple(DIALECTS)
WITH_CONFIG = ("seed", "newest")
"""The dialects whose registration carries a configuration."""
WITH_UUID = ("old", "seed")

NODE = {"memory": 16_000, "vcore": 16_000}
POD = {"memory": 2_000, "vcore": 1_000}
APP = "app-1"


def scene(shim: Shim, *, nodes: Iterable[str] = ("node-1",), config: str = "") -> Shim:
    """Registered, listening, with these nodes of size NODE and the application APP."""
    shim.start(config)
    for name in nodes:
        shim.add_node(name, NODE)
        shim.expect(ACCEPTED_NODE, node=name)
    add_application(shim)
    return shim


def add_application(shim: Shim, app: str = APP, *, queue: str = "root.default", user: str = "alice") -> None:
    shim.add_application(app, queue=queue, user=user)
    shim.expect(ACCEPTED_APPLICATION, app=app)


def pods(count: int, *, name: str = "pod", app: str = APP) -> list[Ask]:
    """So many asks of size POD."""
    return [Ask(key=f"{name}-{n}", app=app, resource=POD) for n in range(count)]


def grant(shim: Shim, *asks: Ask) -> list[Answer]:
    """Ask, and wait until all are granted."""
    shim.ask(*asks)
    return [shim.expect(NEW, key=ask.key, app=ask.app) for ask in asks]


def together(shims: Iterable[Shim], action: Callable[[Shim], object]) -> None:
    """The same at the same time for each, on a thread each."""
    each = list(shims)
    with ThreadPoolExecutor(len(each)) as threads:
        for done in [threads.submit(action, shim) for shim in each]:
            done.result()
