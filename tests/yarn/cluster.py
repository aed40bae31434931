"""A real YARN on loopback: one ResourceManager, two NodeManagers with 8 GiB and 16 vcores each.

The queues are `root.default`, `root.etl.daily` and `root.etl.adhoc`, by one of three schedulers: `capacity`
(in shares), `absolute` (the same scheduler in amounts), `fair`. What they are configured to is in `conf`.
"""

import json
import os
import subprocess
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal, Self

from tests.yarn.build import HERE, built

Scheduler = Literal["capacity", "absolute", "fair"]
Event = Mapping[str, str]

SECONDS = 90.0
END_SECONDS = 20.0
LOG_TAIL = 6000  # characters
# Hadoop looks into classes of the JDK that are closed since Java 16.
JAVA = ("java", "-Xmx512m", "--add-opens", "java.base/java.lang=ALL-UNNAMED")


class YarnError(RuntimeError):
    """The cluster did not do as it was told; the message holds the end of its log."""


class YarnCluster:
    """A running cluster, as a context manager.

    Its ResourceManager can be stopped and started again: on the same port, with the applications that it had.
    It ends when this process does, whichever way.
    """

    def __init__(self, scheduler: Scheduler, folder: Path) -> None:
        self.scheduler = scheduler
        self.web = ""
        """The ResourceManager's address: `http://127.0.0.1:PORT`."""
        self.log = folder / "yarn.log"
        self._folder = folder
        self._process: subprocess.Popen[str] | None = None
        self._events: list[Event] = []
        self._news = threading.Condition()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def start(self) -> None:
        """Return when both NodeManagers are there. Raises YarnError."""
        programs = built()
        classes = [HERE / "conf" / self.scheduler, programs / "classes", programs / "lib" / "*"]
        kind = "fair" if self.scheduler == "fair" else "capacity"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*JAVA, "-cp", os.pathsep.join(map(str, classes)), "MiniYarn", kind, str(self._folder)],
                cwd=self._folder,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                start_new_session=True,
            )
        threading.Thread(target=self._listen, args=[self._process], daemon=True).start()
        self.web = self._await(lambda event: event["event"] == "ready")["web"]

    def submit(self, queue: str, *, megabytes: int, vcores: int, containers: int, tag: str) -> str:
        """An application of the user alice that asks for containers and holds them; its id.

        It is accepted when this returns; `await_containers` returns when it has them all. Several threads may
        submit at a time, each with a tag of its own.
        """
        self._tell(f"submit {queue} {megabytes} {vcores} {containers} {tag}")
        return self._await(lambda event: event["event"] == "submitted" and event["tag"] == tag)["id"]

    def await_containers(self, application: str) -> None:
        """Return when the application has all that it asked for. To be called once."""
        self._await(lambda event: event["event"] == "allocated" and event["id"] == application)

    def finish(self, application: str) -> None:
        """Return when the application is over and holds nothing."""
        self._tell(f"finish {application}")
        self._await(lambda event: event["event"] == "finished" and event["id"] == application)

    def stop_resource_manager(self) -> None:
        """Nobody answers at `web` then; what runs on the nodes goes on."""
        self._tell("stop-rm")
        self._await(lambda event: event["event"] == "rm-stopped")

    def start_resource_manager(self) -> None:
        """Bring it back. It knows its applications; what they hold it hears from the nodes a moment later."""
        self._tell("start-rm")
        self._await(lambda event: event["event"] == "rm-started")

    def log_tail(self) -> str:
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return f"--- {self.log.name}\n{text[-LOG_TAIL:]}"

    def close(self) -> None:
        """End it if it is still there."""
        process, self._process = self._process, None
        if process is None or process.stdin is None:
            return
        process.stdin.close()
        try:
            process.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _tell(self, order: str) -> None:
        with self._news:  # one order after the other, whoever gives it
            if self._process is None or self._process.stdin is None:
                raise YarnError("the cluster is not running")
            self._process.stdin.write(order + "\n")
            self._process.stdin.flush()

    def _await(self, wanted: Callable[[Event], bool]) -> Event:
        """The event, come or to come; it is told once. Raises YarnError when something failed instead."""

        def found() -> Event | None:
            bad = ("failed", "ended")
            return next((event for event in self._events if event["event"] in bad or wanted(event)), None)

        with self._news:
            event = self._news.wait_for(found, SECONDS)
            if event is not None and event["event"] != "ended":
                self._events.remove(event)
        if event is None:
            raise YarnError(f"nothing came in {SECONDS:.0f} s\n{self.log_tail()}")
        if event["event"] in {"failed", "ended"} and not wanted(event):
            raise YarnError(f"{event}\n{self.log_tail()}")
        return event

    def _listen(self, process: subprocess.Popen[str]) -> None:
        for line in process.stdout or ():
            self._add(json.loads(line))
        if process.stdout is not None:
            process.stdout.close()
        self._add({"event": "ended"})

    def _add(self, event: Event) -> None:
        with self._news:
            self._events.append(event)
            self._news.notify_all()
