"""Many nodes at once: on which limits of the host that depends, and how failures are reported."""

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Event

from rackwright.errors import LabError
from rackwright.lab.spec import NodeSpec

_HOST_LIMITS = {
    # Every systemd takes several; the usual 128 are used up by 20 nodes.
    "fs/inotify/max_user_instances": 8192,
    # One table for all namespaces: with the usual 1024, a hundred nodes cannot all know each other.
    "net/ipv4/neigh/default/gc_thresh3": 32768,
    "net/ipv4/neigh/default/gc_thresh2": 16384,
}


def raise_host_limits() -> None:
    """Raise those limits of this host that the nodes would otherwise reach together."""
    for name, wanted in _HOST_LIMITS.items():
        setting = Path("/proc/sys") / name
        if int(setting.read_text()) < wanted:
            setting.write_text(f"{wanted}\n")


def boots_at_once() -> int:
    """How many nodes may boot at the same time."""
    # More than a few per processor only make each other miss systemd's own timeouts.
    return 4 * (os.cpu_count() or 1)


def in_parallel(
    nodes: Sequence[NodeSpec], act: Callable[[NodeSpec], None], give_up: Event, workers: int = 8
) -> None:
    """Act on every node, then report all failures in one error."""
    failures = []
    with ThreadPoolExecutor(max_workers=workers) as pool:
        futures = [(one.name, pool.submit(act, one)) for one in nodes]
        try:
            for name, future in futures:
                try:
                    future.result()
                except LabError as error:
                    failures.append((name, error))
        except BaseException:  # Ctrl-C: stop waiting
            give_up.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    if len(failures) == 1:
        raise failures[0][1]
    if failures:
        text = "\n".join(f"{name}: {error.message}" for name, error in failures)
        raise LabError(f"{len(failures)} of {len(nodes)} nodes failed\n{text}", hint=failures[0][1].hint)
