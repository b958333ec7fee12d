"""Slurm in pods as the control node sees it: its commands run in slurmctld's pod, and Kubernetes drains the nodes as well."""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

from rackwright.command import CommandResult
from rackwright.errors import RackwrightError, WorkloadError
from rackwright.model.cluster import Cluster, Node
from rackwright.workload.kubernetes.control import Kubernetes
from rackwright.workload.kubernetes.kubectl import Kubectl, NotRunning
from rackwright.workload.protocol import HealthSchedule, JobStep, Output
from rackwright.workload.slurm.control import Slurm
from rackwright.workload.slurm.on_node import SlurmOnNode
from rackwright.workload.slurm.pods import Container, RunsSlurmPods

if TYPE_CHECKING:
    from rackwright.ssh import RootShell

_EXIT_LINE = "command terminated with exit code "
"""kubectl's last line after a command that failed in a container."""


def controller_of(cluster: Cluster) -> Container:
    """Where slurmctld runs; WorkloadError where no role of the cluster file runs it."""
    for node in cluster.nodes:
        pods = node.offers(RunsSlurmPods)
        if pods is not None and pods.controller is not None:
            return pods.controller
    raise WorkloadError(f"No role of cluster {cluster.name} runs Slurm in pods.")


class SlurmInPods(Slurm):
    """See rackwright.workload.protocol.Manager. States and jobs are Slurm's; a drain is one in Slurm and in Kubernetes."""

    agent: ClassVar[str] = Kubernetes.agent
    hooks: ClassVar[Mapping[str, str]] = {}
    health_timer: ClassVar[bool] = True
    drains_in: ClassVar[str | None] = Kubernetes.name

    def __init__(self, cluster: Cluster, shell: RootShell) -> None:
        super().__init__(cluster, shell)
        self._kubectl = Kubectl(cluster, shell)
        self._kubernetes = Kubernetes(cluster, shell)
        self._controller = controller_of(cluster)

    @staticmethod
    def services(node: Node) -> tuple[str, ...]:
        """Those of Kubernetes: Slurm has none of the node."""
        return Kubernetes.services(node)

    def resume_command(self, node: str) -> str:
        """scontrol's, in slurmctld's pod, as nodes do not have it; and kubectl's."""
        words = shlex.join(["kubectl", *self._inside()])
        return f"{words} {super().resume_command(node)} && {Kubernetes.resume_command(node)}"

    @staticmethod
    def health_schedule(ask: Callable[[str], str]) -> HealthSchedule:
        """Of the node's own timer."""
        return Kubernetes.health_schedule(ask)

    @staticmethod
    def job_question(node: str) -> str:
        """Steps of Slurm, whose processes the node sees, and pods that count as jobs."""
        return f"{{ ps -eo args= | grep '^slurmstepd: ' || :; {Kubernetes.job_question(node)}; }}"

    @staticmethod
    def shows_job(answer: str) -> bool:
        """Of either."""
        lines = answer.splitlines(keepends=True)
        steps = [line for line in lines if line.startswith("slurmstepd: ")]
        if SlurmOnNode("").job_among(steps):
            return True
        return Kubernetes.shows_job("".join(line for line in lines if line not in steps))

    def drain(
        self, nodes: Collection[str], run: str, deadline_seconds: float, *, kill_jobs: bool = False
    ) -> dict[str, str]:
        """In Slurm, whose jobs its pods would take with them; then in Kubernetes, for other pods."""
        until = time.monotonic() + deadline_seconds
        refused = super().drain(nodes, run, deadline_seconds, kill_jobs=kill_jobs)
        idle = [node for node in nodes if node not in refused]
        if not idle:
            return refused
        try:
            left = max(0.0, until - time.monotonic())
            kept = self._kubernetes.drain(idle, run, left, kill_jobs=kill_jobs)
        except RackwrightError:
            with contextlib.suppress(RackwrightError):  # the first error is the one to report
                super().resume(idle, run)
            raise
        if kept:
            super().resume(kept, run)
        return refused | kept

    def resume(self, nodes: Iterable[str], run: str) -> list[str]:
        """In Slurm last: what is interrupted before still shows there as drained by this run."""
        nodes = list(nodes)
        self._kubernetes.resume(nodes, run)
        return super().resume(nodes, run)

    def run(self, step: JobStep) -> Output:
        """In other pods: those of Slurm lack the node's programs."""
        return self._kubernetes.run(step)

    def cancel(self) -> None:
        """Those pods."""
        self._kubernetes.cancel()

    def _ask(self, command: str, seconds: int = 60) -> CommandResult:
        line = self._kubectl.line([*self._inside(), "sh", "-c", command], seconds=None)
        try:
            result = self._kubectl.ask(
                f"{shlex.join(['timeout', str(seconds)])} {line}", seconds=seconds + 10
            )
        except NotRunning as error:
            return CommandResult(command, 1, "", error.message)
        errors = [text for text in result.stderr.splitlines() if not text.startswith(_EXIT_LINE)]
        return CommandResult(command, result.exit_status, result.stdout, "\n".join(errors))

    def _inside(self) -> list[str]:
        one = self._controller
        return ["exec", "--namespace", one.namespace, one.pod, "--container", one.container, "--"]
