"""How a serving process is set up before it serves."""

import gc
import resource

COLLECT_AFTER = 50_000
"""Containers made since the last collection before the next one looks at the young ones."""


def set_up_process() -> None:
    """Keep the garbage collector away from what lives as long as the process, and allow many open streams.

    Requests make thousands of short-lived objects that reference counts free; with Python's defaults the
    collector walked everything alive many times a second, and that was most of the 99th percentile
    (docs/performance.md). Call it when everything is wired and before anything is served.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(COLLECT_AFTER, 20, 100)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
