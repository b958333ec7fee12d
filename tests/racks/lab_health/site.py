"""A head and two workers with eight simulated H100s each, and what the tests ask of them."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackwright.engine.plan import NodePlan
from rackwright.health.guard import places
from rackwright.health.guard.slurm import Row, parse_table
from rackwright.lab.rack import Rack
from rackwright.model.load import load_cluster
from rackwright.why.ask import Explanation, why

PATIENCE = 120.0
"""Seconds for what takes a few on a quiet machine."""
INTERVAL = 2
FILE = """\
version: 1
cluster: {{name: {name}, domain: lab.test}}
defaults: {{os: debian-13, platform: container, sku: lab-node, lab: {{cpus: 2, memory_mib: 2048}}}}
networks:
  management: {{purpose: management, cidr: 10.77.0.0/24, gateway: 10.77.0.1}}
ssh: {{user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}}
mirrors: {{apt_proxy: "http://10.77.0.1:3142"}}
nodes:
  - {{nodes: head1, roles: [head], addresses: {{management: 10.77.0.10}}}}
  - nodes: worker[1-2]
    roles: [worker]
    sku: lab-h100-node
    lab: {{cpus: 2, memory_mib: 2048, gpus: simulated}}
    addresses: {{management: 10.77.0.11}}
roles:
  base: {{}}
  munge: {{}}
  mariadb: {{}}
  health:
    fast_seconds: 20 # a busy machine is no fault of the node
    drain: {{clean_passes: 2, unknown_passes: 5}}
  slurm:
    health_check: {{interval_seconds: {interval}, node_states: [ANY]}}
    mpi_packages: false
    partitions: {{main: {{default: true}}}}
"""


@dataclass(frozen=True)
class Ran:
    """One finished command."""

    status: int
    out: str
    err: str


class Site:
    """The rack. The tests break nodes and watch; nothing of rackwright runs while a node drains itself."""

    def __init__(self, folder: Path, name: str = "") -> None:
        self.folder = folder
        self.name = name or f"health{os.getpid()}"
        self.file = folder / "cluster.yaml"
        if not self.file.exists():
            self.file.write_text(FILE.format(name=self.name, interval=INTERVAL))
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("XDG_")},
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "COLUMNS": "160",
        }

    @property
    def rack(self) -> Rack:
        return Rack.named(self.name)

    def cli(self, *arguments: str, expect: int | None = 0, timeout: float = 900) -> Ran:
        """Run the program; AssertionError with all it said on another exit status."""
        done = subprocess.run(
            [sys.executable, "-m", "rackwright", *arguments],
            capture_output=True, text=True, timeout=timeout, check=False, cwd=self.folder, env=self.environment,
        )  # fmt: skip
        said = f"rackwright {' '.join(arguments)}: {done.returncode}\n{done.stdout[-4000:]}\n{done.stderr[-3000:]}"
        assert expect is None or done.returncode == expect, said
        return Ran(done.returncode, done.stdout, done.stderr)

    def on(self, node: str, script: str) -> str:
        """Run a shell script as root on a node, past ssh; LabError if it fails."""
        return self.rack.run(node, ["bash", "-ec", script], 120)

    # What Slurm has

    def rows(self) -> dict[str, Row]:
        """Every node of the one partition."""
        table = self.on("head1", "sinfo -N -h -o '%R|%N|%T|%H|%E'")
        return {row.node: row for row in parse_table(table)}

    def drained(self, node: str, *words: str) -> Row:
        """Wait until a node is drained by its health check with these words in the reason, and says so itself."""
        row = self.until(node, lambda row: row.ours and all(word in row.reason for word in words), f"{words}")
        self._wrote_down(node, drained=True)
        return row

    def in_service(self, node: str) -> Row:
        """Wait until a node takes jobs, and knows of no drain of its own."""
        row = self.until(node, lambda row: row.state in ("idle", "mixed", "allocated"), "in service")
        self._wrote_down(node, drained=False)
        return row

    def _wrote_down(self, node: str, *, drained: bool) -> None:
        """Wait for the end of a pass: it acts first, then writes what it saw and did, the metrics last."""
        deadline = time.monotonic() + PATIENCE
        look = f"grep -c '^rackwright_health_drained {int(drained)}$' {places.STATE}/{places.METRICS} || :"
        while self.on(node, look).strip() != "1":
            assert time.monotonic() < deadline, f"{node} does not write down that drained is {drained}"
            time.sleep(0.1)

    def until(self, node: str, wanted: Callable[[Row], bool], what: str) -> Row:
        deadline = time.monotonic() + PATIENCE
        while not wanted(row := self.rows()[node]):
            assert time.monotonic() < deadline, f"{node} is not {what}: {row}; {self.last(node)['why']}"
            time.sleep(0.5)
        return row

    # What the node has

    def last(self, node: str) -> dict[str, Any]:
        """Its last pass."""
        told: dict[str, Any] = json.loads(self.on(node, f"cat {places.LAST}"))
        return told

    def passes(self, node: str, count: int) -> list[dict[str, Any]]:
        """The next passes of Slurm's health check on a node that begin from now on."""
        seen: dict[float, dict[str, Any]] = {}
        begun, deadline = time.time(), time.monotonic() + PATIENCE
        while len(seen) < count:
            assert time.monotonic() < deadline, f"{node} has not looked at itself for {PATIENCE} s"
            time.sleep(0.4)
            last = self.last(node)
            if last["at"] - last["seconds"] > begun and last["mode"] == "check":
                seen[last["at"]] = last
        return list(seen.values())

    def metric(self, node: str, name: str) -> float:
        text = self.on(node, f"cat {places.STATE}/{places.METRICS}")
        found = re.search(rf"^rackwright_health_{name} (\S+)$", text, re.MULTILINE)
        assert found, text
        return float(found[1])

    def fault(self, node: str, kind: str) -> None:
        self.rack.fault(node, kind)

    def heal(self, node: str) -> None:
        self.rack.heal(node)

    def why(self, node: str) -> Explanation:
        """`rackwright why` without its plan, which costs seconds and is asked for once."""
        cluster = load_cluster(self.file)
        return why(cluster, cluster.by_name[node], self.file, planner=lambda _, name: NodePlan(name))
