"""`python -m benchmarks [names...]`: run benchmarks and print their tables."""

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks import (
    classes,
    embedded,
    engine,
    external,
    growth,
    http_batch,
    http_single,
    placement,
    replicas,
    si,
    si_floor,
    si_nodes,
    si_replicas,
    streams,
    waiting,
)
from benchmarks.report import Findings, as_json
from benchmarks.setting import Setting
from rm_service.telemetry import set_up_logging

BENCHMARKS: Mapping[str, Callable[[Setting], Findings]] = {
    "engine": engine.measure,
    "http": http_single.measure,
    "batch": http_batch.measure,
    "growth": growth.measure,
    "waiting": waiting.measure,
    "placement": placement.measure,
    "classes": classes.measure,
    "streams": streams.measure,
    "external": external.measure,
    "replicas": replicas.measure,
    "sqlite": embedded.measure,
    "si-floor": si_floor.measure,
    "si": si.measure,
    "si-nodes": si_nodes.measure,
    "si-replicas": si_replicas.measure,
}


def main() -> int:
    """Run what was asked for; the exit status tells whether all ran, not whether targets were reached."""
    options = _options()
    set_up_logging("warning", "console")  # to standard error: what is measured logs as well
    found: list[tuple[str, Findings]] = []
    failed: list[str] = []
    with Setting(options.seconds, options.rounds, options.folder) as setting:
        machine = setting.machine()
        if not options.json:
            print(", ".join(f"{name}: {value}" for name, value in machine.items()), end="\n\n", flush=True)
        for name in options.names or BENCHMARKS:
            begun = time.monotonic()
            try:
                findings = BENCHMARKS[name](setting)
            except Exception:  # noqa: BLE001 - the others are worth running all the same
                traceback.print_exc()
                failed.append(name)
                continue
            found.append((name, findings))
            _say(f"({name}: {time.monotonic() - begun:.0f} s)")
            if not options.json:
                print(findings.as_text(), end="\n\n", flush=True)
    if options.json:
        print(as_json(machine, found))
    else:
        print(_summary(found))
    if failed:
        _say(f"failed: {', '.join(failed)}")
    return 1 if failed else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", metavar="name", help=f"which (default: all): {', '.join(BENCHMARKS)}"
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="length of one stretch of load")
    parser.add_argument("--rounds", type=int, default=3, help="how often each side is measured")
    parser.add_argument("--folder", type=Path, help="write the databases here (which disk is measured)")
    parser.add_argument("--json", action="store_true", help="print one JSON document instead of tables")
    options = parser.parse_args()
    unknown = set(options.names) - set(BENCHMARKS)
    if unknown:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}; there are {', '.join(BENCHMARKS)}")
    return options


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _summary(found: list[tuple[str, Findings]]) -> str:
    ratios = [ratio for _, findings in found for ratio in findings.ratios]
    return f"{sum(ratio.reached for ratio in ratios)} of {len(ratios)} targets reached"


if __name__ == "__main__":
    sys.exit(main())
