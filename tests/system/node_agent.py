"""A node's agent, as small as it can be: sets up the devices that applications are given, takes them down.

    python node_agent.py PORT NODE FOLDER [--die POINT]

It follows `GET /api/v1/nodes/NODE/assignments`, and for each device that an application is given it calls the
device plugin's Allocate, and Deallocate when it is given back: once each, whoever dies meanwhile. A service
that is away changes nothing: what is set up stays so.

FOLDER/journal is what the agent knows: before each call a line that says what it is about to do, afterwards
one that it is done. FOLDER/calls stands for the plugins: a line for each call that was carried out. A call
whose end is not in the journal was carried out or not; its number in the plugins' log says which.

`--die POINT`: kill itself at the POINT (intent, call, done) of its second call: right after that was written.
"""

import argparse
import http.client
import json
import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

Json = dict[str, Any]
Key = tuple[str, str, str]
"""An assignment: application, class, device."""

SILENCE_SECONDS = 60
"""The service says at least every few seconds that it lives."""
RETRY_SECONDS = 0.05
FATAL_CALL = 2


class Lines:
    """A file of JSON lines that is only ever added to."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def read(self) -> list[Json]:
        return [json.loads(line) for line in self._path.read_text().splitlines()]

    def add(self, document: Json) -> None:
        os.write(self._file, json.dumps(document).encode() + b"\n")
        os.fsync(self._file)


class Agent:
    """What is set up on one node."""

    def __init__(self, folder: Path, die: str | None) -> None:
        self._journal = Lines(folder / "journal")
        self._calls = Lines(folder / "calls")
        self._die = die
        self._made = 0
        self._number = 0
        self._held: dict[Key, Json] = {}
        self._recover()

    def reconcile(self, items: Sequence[Json]) -> None:
        """Make what is set up what the list says. Taking down comes first: others may have the units now."""
        wanted = {
            (item["application"], held["class"], held["device"]): held["units"]
            for item in items
            for held in item["devices"]
        }
        for key, held in list(self._held.items()):
            if wanted.get(key) != held["units"]:
                self._do("Deallocate", key, held["units"])
        for key, units in wanted.items():
            if key not in self._held:
                self._do("Allocate", key, units)

    def _recover(self) -> None:
        """Where the agent was when it ended, at whatever moment that was."""
        begun: Json | None = None
        for line in self._journal.read():
            if "done" not in line:
                begun = line
            elif begun is not None:
                self._note(begun)
                begun = None
        if begun is not None:
            if any(call["call"] == begun["call"] for call in self._calls.read()):
                self._finish(begun)
            else:
                self._carry_out(begun)

    def _do(self, verb: str, key: Key, units: object) -> None:
        application, resource_class, device = key
        call = {
            "call": self._number + 1,
            "verb": verb,
            "application": application,
            "class": resource_class,
            "device": device,
            "units": units,
        }
        self._made += 1
        self._journal.add(call)
        self._die_at("intent")
        self._carry_out(call)

    def _carry_out(self, call: Json) -> None:
        self._calls.add(call)  # here the plugin is called
        self._die_at("call")
        self._finish(call)

    def _finish(self, call: Json) -> None:
        self._journal.add({"done": call["call"]})
        self._note(call)
        self._die_at("done")

    def _note(self, call: Json) -> None:
        self._number = call["call"]
        key = (call["application"], call["class"], call["device"])
        if call["verb"] == "Allocate":
            self._held[key] = call
        else:
            del self._held[key]

    def _die_at(self, point: str) -> None:
        if self._die == point and self._made == FATAL_CALL:
            os.kill(os.getpid(), signal.SIGKILL)


def follow(port: int, node: str) -> Iterator[Sequence[Json]]:
    """The list whenever it is another one, from whichever service listens there; ends with the node."""
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=SILENCE_SECONDS)
        try:
            connection.request(
                "GET", f"/api/v1/nodes/{node}/assignments", headers={"Accept": "text/event-stream"}
            )
            response = connection.getresponse()
            if response.status == 404:
                yield ()
                return
            for event, data in messages(response):
                yield data.get("items", ())
                if event == "node.removed":
                    return
        except (OSError, http.client.HTTPException):
            pass  # it is away: whoever comes back tells the whole list
        finally:
            connection.close()
        time.sleep(RETRY_SECONDS)


def messages(response: http.client.HTTPResponse) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """The messages of a stream; one that broke off is none."""
    fields: dict[str, str] = {}
    for line in response:
        name, _, value = line.decode().rstrip("\n").partition(": ")
        if name:
            fields[name] = value
        elif "data" in fields:
            yield fields["event"], json.loads(fields["data"])
            fields = {}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("port", type=int)
    parser.add_argument("node")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--die", choices=["intent", "call", "done"])
    said = parser.parse_args()
    agent = Agent(said.folder, said.die)
    for items in follow(said.port, said.node):
        agent.reconcile(items)


if __name__ == "__main__":
    main()
