"""What is asked for over the Scheduler Interface: ten applications on a hundred nodes with room for all.

Requests are bytes made beforehand, in which only the number of the message is replaced: whoever asks shares
the machine with what is measured. The engine is given the same asks as operations.
"""

import itertools
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from rm_service.commands.si_streams import SiStreams
from rm_service.facades.si.proto import si_pb2 as si

NODES = 100
PLENTY = 2**47
"""What a node has of everything: no run uses it up, and 10,000 nodes together do not overflow."""
APPLICATIONS = 10
RESOURCE = {"memory": 2 * 2**30, "vcore": 1000, "pods": 1}
CONFIG = """\
partitions:
  - name: default
    nodesortpolicy:
      type: {sort}
    queues:
      - name: root
        submitacl: "*"
        queues:
          - name: a
          - name: b
"""
QUEUES = ("root.a", "root.b")
GROUP = "staff"
TAGS = {"si/instance-type": "m5", "team": "crawlers"}
NUMBER = b"0000000000000000"
"""Stands for the number of a message in the keys of its asks."""


@dataclass(frozen=True, slots=True)
class Application:
    """One of a resource manager's applications."""

    number: int

    @property
    def name(self) -> str:
        return f"app-{self.number}"

    @property
    def queue(self) -> str:
        return QUEUES[self.number % len(QUEUES)]

    @property
    def user(self) -> str:
        return f"user-{self.number}"


ALL = tuple(map(Application, range(APPLICATIONS)))


def node_name(number: int) -> str:
    return f"node-{number:05d}"


def nodes_request(rm_id: str, names: Sequence[str], total: Mapping[str, int] | None = None) -> si.NodeRequest:
    """These nodes as new ones, with `total` or with room for everything."""
    room = _resource(total or dict.fromkeys(RESOURCE, PLENTY))
    nodes = [
        si.NodeInfo(
            nodeID=name,
            action=si.NodeInfo.CREATE,
            attributes={"si/rackname": f"r{number % 40}", "si/os": "linux", "si/arch": "amd64"},
            schedulableResource=room,
        )
        for number, name in enumerate(names)
    ]
    return si.NodeRequest(nodes=nodes, rmID=rm_id)


def applications_request(rm_id: str) -> si.ApplicationRequest:
    """All applications as new ones."""
    new = [
        si.AddApplicationRequest(
            applicationID=each.name,
            queueName=each.queue,
            ugi=si.UserGroupInformation(user=each.user, groups=[GROUP]),
        )
        for each in ALL
    ]
    return si.ApplicationRequest(new=new, rmID=rm_id)


def set_up(
    address: str,
    rm_id: str,
    *,
    nodes: int = NODES,
    sort: str = "fair",
    extra: Mapping[str, str] | None = None,
) -> None:
    """Register a resource manager with its nodes and applications, and leave it without streams."""
    streams = SiStreams(address, rm_id)
    streams.register(CONFIG.format(sort=sort), extra or {})
    streams.nodes.send(nodes_request(rm_id, [node_name(number) for number in range(nodes)]))
    accepted = 0
    while accepted < nodes:
        answer = streams.nodes.receive()
        assert not answer.rejected, answer.rejected[0]
        accepted += len(answer.accepted)
    streams.applications.send(applications_request(rm_id))
    accepted = 0
    while accepted < APPLICATIONS:
        answered = streams.applications.receive()
        assert not answered.rejected, answered.rejected[0]
        accepted += len(answered.accepted)
    streams.close()


def message(rm_id: str, asks: int) -> bytes:
    """A message of so many asks, spread over the applications; `numbered` makes its keys new ones."""
    return si.AllocationRequest(
        rmID=rm_id, allocations=[_ask(place, ALL[place % APPLICATIONS]) for place in range(asks)]
    ).SerializeToString()


def json_body(rm_id: str) -> bytes:
    """A message of one ask for the HTTP twin."""
    ask = {
        "allocationKey": f"{NUMBER.decode()}-000",
        "applicationID": ALL[0].name,
        "partitionName": "default",
        "resourcePerAlloc": {"resources": {name: {"value": value} for name, value in RESOURCE.items()}},
        "allocationTags": TAGS,
    }
    return json.dumps({"rmID": rm_id, "allocations": [ask]}).encode()


def numbers() -> Iterator[bytes]:
    """Numbers for messages, each higher than all that were given out before."""
    first = time.time_ns() // 1000
    return (str(number).encode() for number in itertools.count(first))


def numbered(template: bytes, number: bytes) -> bytes:
    return template.replace(NUMBER, number)


def _ask(place: int, application: Application) -> si.Allocation:
    return si.Allocation(
        allocationKey=f"{NUMBER.decode()}-{place:03d}",
        applicationID=application.name,
        partitionName="default",
        resourcePerAlloc=_resource(RESOURCE),
        allocationTags=TAGS,
    )


def _resource(amounts: Mapping[str, int]) -> si.Resource:
    return si.Resource(resources={name: si.Quantity(value=amount) for name, amount in amounts.items()})
