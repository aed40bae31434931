"""External resources: what a slow YARN costs applications, and refreshes of many queues and many clusters."""

import http.client
import json
import multiprocessing
import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from functools import partial

from benchmarks import fake_yarn, traffic
from benchmarks.fake_yarn import FakeYarn
from benchmarks.flight import WARM_UP
from benchmarks.http_load import Address, Asked, load, request
from benchmarks.http_single import PATH
from benchmarks.report import Cell, Findings, Ratio, Table
from benchmarks.rounds import Load, alternate, p50, p99, rate
from benchmarks.service import serving
from benchmarks.setting import Setting
from rm_service.domain import operations as op
from rm_service.domain.outcomes import Done
from rm_service.ledger.ids import new_id
from rm_service.ledger.ledger import Ledger
from rm_service.services.external.external_resources import ExternalResources
from rm_service.services.external.keys import Keys
from rm_service.services.external.providers import ProviderWish
from rm_service.services.looks import enqueue_behind

CLIENTS = 8
SLOW_SECONDS = 2.0
QUESTIONS = 3
"""A look asks for the applications, the queues and the size of the cluster, one after the other."""
REFRESH_SECONDS = 6
"""What a look at the slow one takes: both are looked at as often."""
AT_ONCE, SLOWLY = "YARN answers at once", f"YARN answers in {SLOW_SECONDS:g} s"
SLOW_TARGET = 1.2

FEW, MANY = 10, 1_000
CLUSTERS, LOOK_SECONDS, ALL_SECONDS = 50, 1.0, 3.0
TOLD, TELLINGS, TELLING_TARGET = 20, 10, 1.5
"""Queues of each cluster, and how often the ledger is told of one cluster in a round."""

CLUSTER = "c1"
HELD = {"yarn.memory": 2 * 2**30, "yarn.vcore": 1000}
PATIENCE = 60.0
PAUSE = 0.01


def measure(setting: Setting) -> Findings:
    """Applications beside a slow YARN, a refresh of many queues, and one of many clusters."""
    measured = _applying(setting)
    few, many = (_looking(setting, queues) for queues in (FEW, MANY))
    alone, beside = (_telling(setting, clusters) for clusters in (1, CLUSTERS))
    seconds = _all_clusters(setting)
    clusters = f"all of {CLUSTERS} clusters looked at, each in {LOOK_SECONDS:g} s"
    return Findings(
        f"External resources, {CLIENTS} clients",
        [
            Table(
                ("side", "requests/s", "p50 ms", "p99 ms"),
                [(name, rate(loads), p50(loads), p99(loads)) for name, loads in measured.items()],
            ),
            Table(("queues", "asked for queues", "asked for applications", "look s", "s"), [few, many]),
            Table(("clusters", "one of them told ms"), [(1, alone), (CLUSTERS, beside)]),
            Table(("what", "s"), [(clusters, seconds)]),
        ],
        [
            Ratio(
                f"p99 of applications, {SLOWLY} to at once",
                p99(measured[SLOWLY]) / p99(measured[AT_ONCE]),
                SLOW_TARGET,
                at_least=False,
            ),
            Ratio(f"asked for {MANY:,} queues", float(many[1]), 2, at_least=False, unit="requests"),
            Ratio("asked for their applications", float(many[2]), 1, at_least=False, unit="requests"),
            Ratio(
                f"the ledger told of 1 of {CLUSTERS} clusters, to 1 of 1",
                beside / alone,
                TELLING_TARGET,
                at_least=False,
            ),
            Ratio(clusters, seconds, ALL_SECONDS, at_least=False, unit="s"),
        ],
        [
            "An application is charged to labels of the ledger and to one queue of YARN.",
            f"A look is {QUESTIONS} questions, one after the other.",
            "s: until the ledger has been told of all queues, each with an application of ours.",
            f"one of them told: of its {TOLD} queues, each with an application of ours.",
        ],
    )


# ---- applications over HTTP ------------------------------------------------------------------------------


def _applying(setting: Setting) -> dict[str, list[Load]]:
    """Applications by clients of two services, whose YARNs differ in how long they take to answer.

    A stretch is as long as a refresh at least: as many looks end in each of them.
    """
    seconds = max(setting.seconds, REFRESH_SECONDS)
    with ExitStack() as stack:
        enter = stack.enter_context
        client = enter(ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")))
        sides: dict[str, Callable[[], Load]] = {}
        for name, delay in ((AT_ONCE, 0.0), (SLOWLY, SLOW_SECONDS)):
            yarn = enter(FakeYarn(delay=delay))
            url = enter(setting.database())
            traffic.open_ledger(url, traffic.SPREAD).close()
            service = enter(serving(url, setting.folder))
            _follow(service, yarn)
            sides[name] = partial(_apply, client, service, seconds)
        return alternate(sides, setting.rounds)


def _apply(client: ProcessPoolExecutor, service: Address, seconds: float) -> Load:
    asked = Asked([_request(number) for number in range(traffic.SPREAD)], b"HTTP/1.1 201 ")
    return client.submit(load, service, asked, CLIENTS, WARM_UP, seconds).result()


def _request(number: int) -> bytes:
    body = traffic.body(number)
    body |= {"tags": body["tags"] | _place(0), "resource": body["resource"] | HELD}
    return request("POST", PATH, json.dumps(body).encode())


def _follow(service: Address, yarn: FakeYarn) -> None:
    """Return when the service has looked at it."""
    record = {"config": {"addresses": [yarn.address]}, "refresh_seconds": REFRESH_SECONDS}
    _call(service, "PUT", record)
    _until(lambda: (_call(service, "GET")["standing"] or {}).get("fetched_at") is not None)


def _call(service: Address, method: str, body: object = None) -> dict[str, dict[str, object] | None]:
    with closing(http.client.HTTPConnection(*service)) as connection:
        headers = {"Content-Type": "application/json"}
        data = None if body is None else json.dumps(body).encode()
        connection.request(method, f"/api/v1/providers/yarn/{CLUSTER}", data, headers)
        answer = connection.getresponse()
        assert answer.status in {200, 201}, answer.read()
        document: dict[str, dict[str, object] | None] = json.load(answer)
        return document


# ---- refreshes -------------------------------------------------------------------------------------------


def _looking(setting: Setting, queues: int) -> tuple[Cell, ...]:
    """One cluster: how often a look asks, how long it takes, and how long until the ledger knows of it."""
    with FakeYarn(queues, queues) as yarn, _ledger(setting) as ledger:
        resources = ExternalResources(ledger, Keys([]))
        _store(resources, CLUSTER, yarn.address)
        with _started(resources):
            _use_all(resources, queues)
            looks = [_look(resources, yarn) for _ in range(setting.rounds)]
    asked_queues, asked_applications, look, whole = map(statistics.median, zip(*looks, strict=True))
    return f"{queues:,}", int(asked_queues), int(asked_applications), look, whole


def _look(resources: ExternalResources, yarn: FakeYarn) -> tuple[float, ...]:
    yarn.asked.clear()
    begun = time.monotonic()
    while True:
        snapshot = resources.refresher.ask("yarn", CLUSTER).result(PATIENCE)
        if snapshot.began >= begun:  # else it is of the look before, which is not quite over
            break
    whole = time.monotonic() - begun
    for_queues = yarn.asked[fake_yarn.SCHEDULER] + yarn.asked[fake_yarn.METRICS]
    return for_queues, yarn.asked[fake_yarn.APPS], snapshot.seconds, whole


def _telling(setting: Setting, clusters: int) -> float:
    """Milliseconds until the ledger is told of one cluster among others, all of them in use."""
    names = [CLUSTER, *(f"other{number}" for number in range(1, clusters))]
    with FakeYarn(TOLD, TOLD) as yarns, _ledger(setting) as ledger:
        resources = ExternalResources(ledger, Keys([]))
        for name in names:
            _store(resources, name, f"{yarns.address}/{name}")
        with _started(resources):
            for name in names:
                _use_all(resources, TOLD, name)
            return statistics.median(_tell(resources) for _ in range(TELLINGS * setting.rounds))


def _tell(resources: ExternalResources) -> float:
    stored = resources.providers.read("yarn", CLUSTER)
    snapshot = resources.refresher.snapshots.latest("yarn", CLUSTER)
    assert stored is not None
    assert snapshot is not None
    source = resources.providers.unseal(stored).parsed()
    begun = time.perf_counter()
    resources.observing.refreshed(source, snapshot)
    return 1000 * (time.perf_counter() - begun)


def _use_all(resources: ExternalResources, queues: int, cluster: str = CLUSTER) -> None:
    """An application of ours in each queue."""
    for number in range(queues):
        tags = traffic.tags(number) | _place(number, cluster)
        del tags["node"]
        apply = op.Apply(new_id(), tags, HELD, lock_seconds=traffic.LOCK_SECONDS, id_is_new=True)
        outcome = enqueue_behind(resources.ledger, resources.observing.before(tags), [apply]).result()[-1]
        assert isinstance(outcome, Done), outcome


def _all_clusters(setting: Setting) -> float:
    """Seconds from the start of a service until each of its clusters has been looked at; the median."""
    with FakeYarn(delay=LOOK_SECONDS / QUESTIONS) as yarns, _ledger(setting) as ledger:
        for number in range(CLUSTERS):
            _store(ExternalResources(ledger, Keys([])), f"c{number}", f"{yarns.address}/{number}")
        return statistics.median(_starting(ledger) for _ in range(setting.rounds))


def _starting(ledger: Ledger) -> float:
    begun = time.perf_counter()
    with _started(ExternalResources(ledger, Keys([]))):
        return time.perf_counter() - begun


@contextmanager
def _ledger(setting: Setting) -> Iterator[Ledger]:
    with setting.database() as url, closing(traffic.open_ledger(url)) as ledger:
        yield ledger


@contextmanager
def _started(resources: ExternalResources) -> Iterator[None]:
    """It follows what is stored, and has looked at all of it once."""
    stored = len(resources.providers.all())

    def looked_at() -> bool:
        statuses = resources.refresher.statuses()
        return len(statuses) == stored and all(each.snapshot is not None for each in statuses)

    resources.start()
    try:
        _until(looked_at)
        yield
    finally:
        resources.stop()


def _store(resources: ExternalResources, name: str, address: str) -> None:
    day = 86_400  # so that nobody looks but when it is measured
    wish = ProviderWish("yarn", name, {"addresses": [address]}, refresh_seconds=day, stale_seconds=2 * day)
    outcome = resources.providers.store(wish)
    assert isinstance(outcome, Done), outcome


def _place(number: int, cluster: str = CLUSTER) -> dict[str, str]:
    return {"yarnCluster": cluster, "yarnQueue": fake_yarn.queue(number)}


def _until(there: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not there():
        assert time.monotonic() < deadline, f"still not so after {PATIENCE:.0f} s"
        time.sleep(PAUSE)
