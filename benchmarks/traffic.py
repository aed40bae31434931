"""What is asked for: grants under the tags of the default rules, on one hot set of labels or over many.

A grant is charged to seven labels: node, user, user+creator+engineType, the queue and its root,
and the roll-ups creator and engineType; in three dimensions. User and node differ from set to set; creator,
engineType and queue are shared by all, as a cluster's are.
"""

import json
import random
from collections.abc import Iterator
from typing import Any

import yaml

from rm_service.bundled import bundled
from rm_service.domain import operations as op
from rm_service.domain.outcomes import Done
from rm_service.ledger.database import reader_engine
from rm_service.ledger.ids import new_id
from rm_service.ledger.ledger import Ledger, LedgerSettings
from rm_service.ledger.schema import migrate
from rm_service.process import set_up_process

HOT = 1
SPREAD = 1000
SETS = {"hot": HOT, "spread": SPREAD}
"""How many sets of labels each kind of traffic is spread over."""

PLENTY = 2**60
RESOURCE = {"memory": 2 * 2**30, "vcore": 1000, "instances": 1}
LOCK_SECONDS = 86_400
"""Longer than any run: no lease ends meanwhile."""

CHUNK = 500

Script = Iterator[op.DecidedOperation]


def tags(number: int) -> dict[str, str]:
    """The tags of one set."""
    return {
        "user": f"user-{number}",
        "creator": "IDE",
        "engineType": "spark-3.3",
        "node": node(number),
        "queue": "root.a",
    }


def node(number: int) -> str:
    return f"host-{number}:9101"


def apply(number: int) -> op.Apply:
    """A new application in one set."""
    its_tags = tags(number)
    return op.Apply(
        id=new_id(),
        tags=its_tags,
        resource=RESOURCE,
        lock_seconds=LOCK_SECONDS,
        id_is_new=True,
        request=body(number),
    )


def body(number: int) -> dict[str, Any]:
    """The same as a body for POST /applications."""
    return {"tags": tags(number), "resource": RESOURCE, "lock_seconds": LOCK_SECONDS}


def encoded(number: int) -> bytes:
    return json.dumps(body(number)).encode()


def grants(sets: int) -> Script:
    """New applications for ever, each in a set chosen by chance."""
    while True:
        yield apply(random.randrange(sets))


def lives(sets: int) -> Script:
    """Whole lives for ever: apply, use, release."""
    while True:
        application = apply(random.randrange(sets))
        yield application
        yield op.Use(application.id)
        yield op.Release(application.id)


def default_rules() -> dict[str, object]:
    """Conversions and label rules as they are delivered."""
    document = yaml.safe_load(bundled("config/default.yaml").read_text())
    return {name: document[name] for name in ("conversions", "label_rules")}


def open_ledger(url: str, sets: int = 0) -> Ledger:
    """A ledger on a database (migrated, if it is new) with the default rules and room for `sets` sets."""
    engine = reader_engine(url)
    migrate(engine)
    engine.dispose()
    ledger = Ledger(LedgerSettings(url, rules=default_rules()))
    ledger.open()
    if sets:
        make_room(ledger, sets)
    set_up_process()  # as `rm-service serve` does
    return ledger


def make_room(ledger: Ledger, sets: int) -> None:
    """Register the nodes, set limits that never bind, and use every label once, so that all are there."""
    plenty = dict.fromkeys(RESOURCE, PLENTY)
    for limited in ({"user": "*"}, {"user": "*", "creator": "*", "engineType": "*"}, {"queue": "*"}):
        ledger.submit_whole(op.SetLimit(limited, plenty, {"memory": 2**30}))
    for first in range(0, sets, CHUNK):
        numbers = range(first, min(first + CHUNK, sets))
        nodes = [op.RegisterNode(node(number), "LoadInstance", plenty) for number in numbers]
        applications = [apply(number) for number in numbers]
        releases = [op.Release(application.id) for application in applications]
        for operations in (nodes, applications, releases):
            outcomes = ledger.submit(operations)
            refused = [outcome for outcome in outcomes if not isinstance(outcome, Done)]
            assert not refused, refused[0]
