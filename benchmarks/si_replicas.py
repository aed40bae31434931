"""Ten resource managers on ten streams, through one replica or through two: what taking turns costs."""

from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from multiprocessing import get_context

from benchmarks import si_scene
from benchmarks.report import Findings, Ratio, Table
from benchmarks.rounds import Load, alternate, p50, p99, rate
from benchmarks.setting import Setting
from benchmarks.si import audit, scheduler
from benchmarks.si_load import Streamer, stream
from rm_service.api_client import ApiClient

MANAGERS = tuple(f"rm-{number}" for number in range(10))
ASKS, IN_FLIGHT = 100, 2
TARGET = 0.8
ONE, TWO = "one replica", "two replicas"
SHARED = {"rm.nodePool": "shared"}
"""All of them draw on the same nodes; users are the same for all anyway."""


def measure(setting: Setting) -> Findings:
    """The same ten streams, all to one replica or five to each of two."""
    with ExitStack() as stack:
        url = stack.enter_context(setting.database())
        services = []
        for number in range(2):
            folder = setting.folder / f"replica-{number}"
            folder.mkdir()
            services.append(stack.enter_context(scheduler(url, folder)))
        (http, grpc), (_, other) = services
        client = stack.enter_context(ProcessPoolExecutor(1, mp_context=get_context("spawn")))
        register_shared(http)
        for rm_id in MANAGERS:
            si_scene.set_up(grpc, rm_id, extra=SHARED)

        def together(addresses: Sequence[str]) -> Load:
            streamers = [
                Streamer(addresses[place % len(addresses)], rm_id, ASKS, IN_FLIGHT)
                for place, rm_id in enumerate(MANAGERS)
            ]
            return client.submit(stream, streamers, setting.seconds).result()

        sides = {ONE: partial(together, [grpc]), TWO: partial(together, [grpc, other])}
        measured = alternate(sides, setting.rounds)
        verdict = audit(http)
    rows = [(name, rate(loads), p50(loads), p99(loads)) for name, loads in measured.items()]
    return Findings(
        "Ten resource managers on ten streams",
        [Table(("side", "asks/s in all", "p50 ms", "p99 ms"), rows)],
        [Ratio("two replicas to one", rate(measured[TWO]) / rate(measured[ONE]), TARGET)],
        [
            f"Each keeps {IN_FLIGHT} messages of {ASKS} asks under way; nodes and users are shared by all.",
            verdict,
        ],
    )


def register_shared(http: tuple[str, int]) -> None:
    """The ledger's own nodes, which the resource managers then name."""
    client = ApiClient("http://{}:{}".format(*http))
    for number in range(si_scene.NODES):
        body = {"resource_type": "Special", "total": dict.fromkeys(si_scene.RESOURCE, si_scene.PLENTY)}
        client.put(f"/nodes/{si_scene.node_name(number)}", body)
    client.close()
