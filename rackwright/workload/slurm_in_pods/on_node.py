"""Slurm in pods as one node sees it: scontrol and squeue run in the node's slurmd container. Standard library only, Python 3.9."""

from __future__ import annotations

import os

from rackwright.workload.commands import run
from rackwright.workload.slurm.on_node import Run, SlurmOnNode
from rackwright.workload.states import NoAnswer

_CTR = ["ctr", "--namespace", "k8s.io"]
_SLURMD = 'labels."io.kubernetes.container.name"==slurmd'


class SlurmdContainer:
    """Runs commands in the container that containerd runs as slurmd."""

    def __init__(self, run: Run = run) -> None:
        self._run = run

    def __call__(self, arguments: list[str]) -> str:
        """What a command prints there; NoAnswer when it fails or takes too long, or without a running slurmd."""
        made = set(self._run([*_CTR, "containers", "list", "--quiet", _SLURMD]).split())
        tasks = (line.split() for line in self._run([*_CTR, "tasks", "list"]).splitlines())
        running = sorted({fields[0] for fields in tasks if fields[2:3] == ["RUNNING"]} & made)
        if not running:
            raise NoAnswer("no slurmd container runs on this node")
        number = f"rackwright-{os.urandom(6).hex()}"
        return self._run([*_CTR, "tasks", "exec", "--exec-id", number, running[0], *arguments])


class SlurmInPodsOnNode(SlurmOnNode):
    """Queries and commands to Slurm about one node, through its slurmd container."""

    def __init__(self, node: str, run: Run = run) -> None:
        super().__init__(node, SlurmdContainer(run))
        self._on_node = run

    def reboot(self, reason: str) -> None:
        """With systemd, as slurmd cannot from its container; the drain outlives the reboot."""
        self.explain(reason)
        self._on_node(["systemctl", "reboot"])
