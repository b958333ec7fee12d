"""Two nodes that are declared to have GPUs, and cluster files that ask different things of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rackwright.lab.rack import Rack
from rackwright.lock.index import Index
from rackwright.lock.lock_file import lock_text
from rackwright.lock.question import shipped_tables
from rackwright.lock.solve import solve
from rackwright.model.load import load_cluster

GOOD, BAD = "gpu12", "gpu13"
"""Debian 12, whose driver builds on its kernel 6.1.0-50; Debian 13, whose driver builds on no kernel of its own."""
BAD_KERNEL = "6.12.107+deb13-amd64"
_FILE = """\
version: 1
cluster: {{name: {name}, domain: lab.test}}
defaults: {{platform: container, lab: {{cpus: 2, memory_mib: 3072}}}}
networks:
  management: {{purpose: management, cidr: 10.77.0.0/24, gateway: 10.77.0.1}}
ssh: {{user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts, command_timeout_seconds: 3000}}
mirrors: {{apt_proxy: "http://10.77.0.1:3142"}}
skus:
  lab-gpu:
    vendor: rackwright
    description: a lab container that is declared to have one T4
    sockets: 1
    cores_per_socket: 2
    threads_per_core: 1
    memory_mib: 3072
    gpus: {{model: T4, gres_type: t4, count: 1, memory_mib: 15360, architecture: turing, nvswitch: none}}
    sources: [{{text: made up for the lab, read: 2026-11-21}}]
nodes:
  - {{nodes: gpu12, roles: [head, worker], os: debian-12, sku: {good}, addresses: {{management: 10.77.0.12}}}}
  - {{nodes: gpu13, roles: [worker], os: debian-13, sku: {bad}, addresses: {{management: 10.77.0.13}}}}
gpu_stack: {{source: distribution, cuda: none{stack}}}
roles:
  base: {{}}
  nvidia_driver: {driver}
  persistence: {{}}
"""


@dataclass(frozen=True)
class Ran:
    """One finished command."""

    status: int
    out: str
    err: str

    def __str__(self) -> str:
        return f"exit status {self.status}\n--- stdout\n{self.out[-6000:]}\n--- stderr\n{self.err[-3000:]}"


class Site:
    """The rack, and a cluster file for each question; all of one cluster, so all of the same nodes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = f"gpu{os.getpid()}"
        self.both = self._write("both", good="lab-gpu", bad="lab-gpu", driver="{}", stack="")
        self.good = self._write("good", good="lab-gpu", bad="lab-node", driver="{}", stack="")
        kernel = f', kernel: "{BAD_KERNEL}"'
        self.refused = self._write("refused", good="lab-node", bad="lab-gpu", driver="{}", stack=kernel)
        self.forced = self._write(
            "forced", good="lab-node", bad="lab-gpu", driver="{known_bad: try}", stack=kernel
        )
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("XDG_")},
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "COLUMNS": "200",
        }

    def _write(self, stem: str, **texts: str) -> Path:
        path = self.folder / f"{stem}.yaml"
        path.write_text(_FILE.format(name=self.name, **texts))
        return path

    def cli(self, *arguments: str, expect: int | None = 0, seconds: float = 600) -> Ran:
        """Run the program; AssertionError with all it said on another exit status."""
        done = subprocess.run(
            [sys.executable, "-m", "rackwright", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
            cwd=self.folder,
            env=self.environment,
        )
        ran = Ran(done.returncode, done.stdout, done.stderr)
        assert expect is None or ran.status == expect, (
            f"rackwright {' '.join(arguments)}: wanted {expect}, {ran}"
        )
        return ran

    def on(self, node: str, script: str, timeout: float = 300) -> str:
        """Run a shell script as root on a node, past ssh; LabError if it fails."""
        return Rack.named(self.name).run(node, ["bash", "-ec", f"export LC_ALL=C; {script}"], timeout)

    def lock_by_hand(self, file: Path) -> None:
        """A lock as somebody would write it who knows nothing of bad pairs."""
        cluster = load_cluster(file, locked=False)
        tables = shipped_tables()
        innocent = replace(tables, pairs=tables.pairs.model_copy(update={"rows": ()}))
        solution = solve(cluster, innocent, Index())
        assert not solution.refused, solution.refused
        cluster.lock_path.write_text(lock_text(solution.lock, file.name))

    def checks(self, file: Path, node: str, roles: tuple[str, ...], expect: int = 0) -> dict[str, Any]:
        """Results of these roles' checks on a node, by name."""
        arguments = [word for role in roles for word in ("--role", role)]
        ran = self.cli("verify", str(file), "--limit", node, *arguments, "--json", expect=expect)
        return {result["check"]: result for result in json.loads(ran.out)["results"]}
