"""The probe: reads all sections in parallel, each with a deadline, and prints one JSON document."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from rackwright.health.probe import (
    amd,
    bluefield,
    bmc,
    dcgm,
    gpus,
    kernel_log,
    links,
    machine,
    network,
    nvlink,
    pci,
    software,
    storage,
    system,
)
from rackwright.health.probe.source import Source, Unavailable

SCHEMA = "rackwright-probe"
VERSION = 1
SECONDS = 25.0
"""Busy GPUs answer late: 5 s were not enough for nvidia-smi (NordicHPC/sonar issue 92), and 10 s are common in a
chassis full of GPUs (netdata issue 18690)."""

Reader = Callable[[Source, "dict[str, Any]"], "dict[str, Any]"]

SECTIONS: dict[str, Reader] = {
    "gpus": gpus.gpus,
    "nvlink": nvlink.nvlink,
    "topology": nvlink.topology,
    "amd_gpus": amd.gpus,
    "amd_metrics": amd.metrics,
    "amd_bad_pages": amd.bad_pages,
    "amd_topology": amd.topology,
    "dcgm": dcgm.dcgm,
    "dcgm_diag": dcgm.dcgm_diag,
    "pci": pci.pci,
    "driver": software.driver,
    "packages": software.packages,
    "infiniband": network.infiniband,
    "links": links.links,
    "bluefields": bluefield.bluefields,
    "network": network.network,
    "cpu": machine.cpu,
    "memory": machine.memory,
    "firmware": machine.firmware,
    "nvme": storage.nvme,
    "arrays": storage.arrays,
    "mounts": storage.mounts,
    "system": system.system,
    "naming": system.naming,
    "processes": system.processes,
    "clock": system.clock,
    "services": system.services,
    "kernel_log": kernel_log.kernel_log,
    "history": system.history,
    "bmc": bmc.bmc,
}
FAST = (
    "gpus",
    "nvlink",
    "driver",
    "infiniband",
    "memory",
    "mounts",
    "system",
    "services",
    "kernel_log",
    "history",
)
"""What the scheduler's health check reads."""


class _Lane:
    """One section being read in its own thread."""

    def __init__(self, name: str, source: Source, request: dict[str, Any], deadline: float) -> None:
        self.name = name
        self.result: dict[str, Any] | None = None
        self._source, self._request, self._deadline = source, request, deadline
        self._started = time.monotonic()
        self.thread = threading.Thread(target=self._read, name=name, daemon=True)
        self.thread.start()

    def _read(self) -> None:
        self._source.until(self._deadline)
        self.result = read(self.name, self._source, self._request, self._started)

    def outcome(self) -> dict[str, Any]:
        """What was read, or that the deadline passed."""
        if self.result is not None:
            return self.result
        seconds = time.monotonic() - self._started
        return {"ok": False, "why": f"not read within {seconds:.1f} s", "seconds": round(seconds, 3)}


def read(name: str, source: Source, request: dict[str, Any], started: float) -> dict[str, Any]:
    """One section; any error is reported in it, never raised."""
    try:
        outcome: dict[str, Any] = {"ok": True, "why": None, "data": SECTIONS[name](source, request)}
    except Unavailable as error:
        outcome = {"ok": False, "why": str(error)}
    except Exception as error:  # noqa: BLE001 - a reader that breaks costs its section alone
        outcome = {"ok": False, "why": f"the probe could not parse it: {error!r}"}
    outcome["seconds"] = round(time.monotonic() - started, 3)
    return outcome


def probe(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """Read the node. `request`: fast, seconds, sections, services, mounts, log_since, dcgm; all may be left out."""
    fast = bool(request.get("fast"))
    limit = float(request.get("seconds") or SECONDS)
    names = request.get("sections") or (FAST if fast else tuple(SECTIONS))
    started, deadline = time.monotonic(), time.monotonic() + limit
    lanes = [_Lane(name, source, request, deadline - 0.05) for name in names if name in SECTIONS]
    for lane in lanes:
        lane.thread.join(max(0.0, deadline - time.monotonic()))
    sections = {lane.name: lane.outcome() for lane in lanes}
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "taken_at": round(source.now(), 3),
        "node": source.node_name(),
        "fast": fast,
        "seconds": round(time.monotonic() - started, 3),
        "cpu_seconds": round(sum(os.times()[:4]), 3),
        "sections": sections,
    }


def main(arguments: list[str]) -> None:
    """Print the document of this node; the request, if any, is the first argument as JSON."""
    request = json.loads(arguments[0]) if arguments else {}
    sys.stdout.write(json.dumps(probe(Source(), request)) + "\n")
    sys.stdout.flush()
    os._exit(0)  # a thread that waits on a dead filesystem would block a normal exit


if __name__ == "__main__":
    main(sys.argv[1:])
