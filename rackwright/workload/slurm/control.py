"""Slurm as the control node sees it, queried on the primary head as root."""

from __future__ import annotations

import contextlib
import re
import secrets
import shlex
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

from rackwright.boundary import last_line, printable
from rackwright.command import CommandResult
from rackwright.errors import RackwrightError, WorkloadError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import fold
from rackwright.workload.by_hand import checked_reason, refused
from rackwright.workload.protocol import HealthSchedule, Job, JobStep, JobTrace, Output
from rackwright.workload.slurm import traces
from rackwright.workload.slurm.gres import gres
from rackwright.workload.slurm.on_node import SlurmOnNode
from rackwright.workload.slurm.output import SINFO, parse_config, parse_nodes, parse_rows
from rackwright.workload.slurm.queue import parse_queue, squeue
from rackwright.workload.slurm.srun import START_SECONDS, ended_by_itself, srun_line, srun_output
from rackwright.workload.states import ROLLOUT_PREFIX, NoAnswer, NodeState

if TYPE_CHECKING:
    from rackwright.ssh import RootShell

JOBS_MAX = 10_000
"""Rows of one node. A node with a thousand CPUs runs fewer jobs."""
_JOB = re.compile(r"[0-9][0-9_+\[\]%,.-]{0,99}")
_JOBS_PER_CALL = 200
_NO_JOB = re.compile("Invalid job id|^Job .* not found", re.MULTILINE)
"""scontrol's words for a job that the controller does not know, and for a task of an array that it does not know."""
_POLL_SECONDS = 2
_COMMAND_SECONDS = 60
_ONE_NODE_SECONDS = 30
"""Time limit of interactive queries about one node."""


class Slurm:
    """One cluster's Slurm; see rackwright.workload.protocol.Manager."""

    name: ClassVar[str] = "Slurm"
    agent: ClassVar[str] = "slurmd"
    hooks: ClassVar[Mapping[str, str]] = {
        stage: f"/etc/slurm/{stage}.d" for stage in ("prolog", "epilog", "task_prolog")
    }

    health_timer: ClassVar[bool] = False
    drains_in: ClassVar[str | None] = None

    def __init__(self, cluster: Cluster, shell: RootShell) -> None:
        self._cluster = cluster
        self._shell = shell
        self._head = cluster.primary.name
        self._running: set[str] = set()
        self._not_drained: set[str] = set()
        """Nodes that could not be drained because no controller answered."""

    @staticmethod
    def services(node: Node) -> tuple[str, ...]:
        """munge everywhere, slurmctld on the primary head."""
        return ("munge.service", *(("slurmctld.service",) if node.primary else ()))

    def resume_command(self, node: str) -> str:
        """scontrol's."""
        return f"scontrol update NodeName={node} State=RESUME"

    @staticmethod
    def health_schedule(ask: Callable[[str], str]) -> HealthSchedule:
        """HealthCheckProgram and HealthCheckInterval."""
        config = parse_config(ask("timeout 30 scontrol show config"))
        if "HealthCheckProgram" not in config:
            raise NoAnswer("`scontrol show config` does not mention HealthCheckProgram")
        program = config["HealthCheckProgram"]
        interval = re.match("[0-9]{1,9}", config.get("HealthCheckInterval", ""))
        return HealthSchedule("" if program == "(null)" else program, int(interval[0]) if interval else 0)

    @staticmethod
    def job_question(node: str) -> str:
        """All processes: a step has one of Slurm's."""
        return "ps -eo args="

    @staticmethod
    def shows_job(answer: str) -> bool:
        """See SlurmOnNode.job_among."""
        return SlurmOnNode("").job_among(answer.splitlines())

    def version(self) -> str:
        """Without Debian's own name for Slurm."""
        words = self._answer("sinfo --version").split()
        if not words:
            raise WorkloadError(f"`sinfo --version` on {self._head} printed nothing.")
        return printable(words[-1], 40)

    def states(self) -> dict[str, NodeState]:
        """From sinfo."""
        return _states(self._answer(shlex.join(SINFO)))

    def state(self, node: str) -> NodeState:
        """From scontrol, with every word of the state."""
        try:
            found = parse_nodes(self._answer(f"timeout 20 scontrol show node {node} -o", _ONE_NODE_SECONDS))
        except NoAnswer as error:
            raise WorkloadError(str(error)) from None
        if node not in found:
            raise WorkloadError(f"Slurm on {self._head} does not know {node}.")
        return found[node].state

    def jobs(self, node: str) -> tuple[Job, ...]:
        """Running, completing and suspended ones."""
        mark = secrets.token_hex(
            8
        )  # users name their jobs: what follows a line break in a name does not begin with it
        command = f"squeue --noheader --nodelist={node} --states=R,CG,S --format='{mark}|%i|%u|%j'"
        answer = self._answer(f"timeout 20 {command}", _ONE_NODE_SECONDS)
        rows = (line.split("|", 3) for line in answer.split("\n")[:JOBS_MAX])
        return tuple(
            Job(*(printable(cell, 120) for cell in cells[1:]))
            for cells in rows
            if len(cells) == 4 and cells[0] == mark and _JOB.fullmatch(cells[1])
        )

    def running(self) -> dict[str, tuple[Job, ...]]:
        """Running, completing and suspended ones, from squeue."""
        mark = secrets.token_hex(8)
        return parse_queue(self._answer(f"timeout 40 {squeue(mark)}"), mark)

    def trace(self, job: str) -> JobTrace:
        """From accounting; where that knows nothing of the job, from the controller."""
        if not traces.JOB.fullmatch(job):
            raise WorkloadError(f"{printable(job, 60)} is not a job of Slurm.", hint="e.g. 1234 or 1234_7")
        asked = (
            ("accounting", traces.from_accounting(job), traces.accounted),
            ("the controller", traces.from_controller(job), traces.shown),
        )
        silent = []
        for what, command, read in asked:
            result = self._ask(f"timeout 20 {command}", _ONE_NODE_SECONDS)
            printed = last_line(result.stdout, result.stderr)
            if result.exit_status != 0 and not _NO_JOB.search(result.stdout + result.stderr):
                silent.append(f"{what} does not answer: {printed}")
            try:
                answer = result.stdout if result.exit_status == 0 else ""
                found = read(job, answer, list(self._cluster.by_name), [self._head])
            except NoAnswer as error:
                raise WorkloadError(f"{error}.") from None
            if found is not None:
                return found
        if silent:  # it may know the job
            raise WorkloadError(
                f"Slurm on {self._head} cannot be queried about job {job}: {silent[0]}",
                hint="run `rackwright verify --role slurm` for details",
            )
        raise WorkloadError(
            f"Slurm on {self._head} does not know job {job}: {printed}", hint=f"see: sacct -j {job}"
        )

    def drain(
        self, nodes: Collection[str], run: str, deadline_seconds: float, *, kill_jobs: bool = False
    ) -> dict[str, str]:
        """Nodes that are already drained or down, for any reason, are only waited for."""
        answer = self._ask(shlex.join(SINFO))
        if answer.exit_status != 0:
            self._not_drained.update(nodes)
            return {}
        known = _states(answer.stdout)
        mine = [node for node in nodes if node in known and known[node].in_service]
        if mine:
            self._update(mine, f"State=DRAIN Reason='{ROLLOUT_PREFIX}{run}'")
        try:
            if kill_jobs:
                self._kill_jobs([node for node in nodes if node in known])
            busy = self._wait([node for node in nodes if node in known], deadline_seconds)
            refused = dict.fromkeys(busy, f"its jobs did not end within {deadline_seconds:g} s")
        except RackwrightError:
            with contextlib.suppress(RackwrightError):  # the first error is the one to report
                self.resume(mine, run)
            raise
        if given_back := [node for node in busy if node in mine]:
            self.resume(given_back, run)
        return refused

    def resume(self, nodes: Iterable[str], run: str) -> list[str]:
        """Those whose reason still is this run's."""
        nodes = [node for node in nodes if node not in self._not_drained]
        known = self.states() if nodes else {}
        reason = f"{ROLLOUT_PREFIX}{run}"
        if mine := [node for node in nodes if node in known and known[node].reason == reason]:
            self._update(mine, "State=RESUME")
        return mine

    def forget(self, nodes: Iterable[str]) -> None:
        """slurm.conf does not name them any more."""

    def drain_by_hand(self, node: str, reason: str) -> None:
        """The reason begins with the operator's own words: Slurm has root as its user."""
        state = self._known(node)
        if not state.in_service:
            raise WorkloadError(
                f"{node} is out of service already: {state.text}, {state.reason or 'no reason given'}"
            )
        self._update([node], f"State=DRAIN Reason='{checked_reason(reason)}'")

    def resume_by_hand(self, node: str, reason: str) -> None:
        """As sinfo shows the reason."""
        if (why := refused(node, self._known(node), reason, self.resume_command(node))) is not None:
            raise WorkloadError(why)
        self._update([node], "State=RESUME")

    def _known(self, node: str) -> NodeState:
        known = self.states()
        if node not in known:
            raise WorkloadError(f"Slurm on {self._head} does not know {node}.")
        return known[node]

    def run(self, step: JobStep) -> Output:
        """Through srun; its own time limit is the timeout, the rest is for starting and stopping."""
        name = f"rackwright-{step.purpose}-{secrets.token_hex(4)}"
        line = srun_line(step, name, gres(self._cluster.by_name[step.nodes[0]], step.gpus))
        self._running.add(name)
        try:
            result = self._shell.run(self._head, line, timeout=step.timeout_seconds + START_SECONDS + 60)
        except BaseException:
            self.cancel()
            raise
        if not ended_by_itself(result):
            self._cancel(name)
        self._running.discard(name)
        return srun_output(result)

    def cancel(self) -> None:
        """By job name."""
        for name in sorted(self._running):
            self._cancel(name)

    def _cancel(self, name: str) -> None:
        # the first error is the one to report, and Slurm's time limit ends the job in any case
        with contextlib.suppress(Exception):
            self._shell.run(self._head, f"scancel --jobname={name} --user=root", timeout=30)
        self._running.discard(name)

    def _kill_jobs(self, nodes: list[str]) -> None:
        # `--nodelist` of scancel(1) would do, but its filters differ between releases; names such as 7_3 and 7+1 are
        # one task of an array or one part of a heterogeneous job, where their number alone may be all of it
        jobs = sorted({job.id for node in nodes for job in self.jobs(node)})
        for start in range(0, len(jobs), _JOBS_PER_CALL):
            # its status is ambiguous: cancelling a job that has just ended is an error
            self._ask(f"scancel --quiet {' '.join(map(shlex.quote, jobs[start : start + _JOBS_PER_CALL]))}")

    def _wait(self, nodes: list[str], deadline_seconds: float) -> list[str]:
        deadline = time.monotonic() + deadline_seconds
        while True:
            known = self.states()
            busy = [node for node in nodes if node in known and known[node].busy]
            if not busy or time.monotonic() >= deadline:
                return busy
            time.sleep(_POLL_SECONDS)

    def _update(self, nodes: Iterable[str], change: str) -> None:
        folded = fold(nodes)
        result = self._ask(f"scontrol update NodeName='{folded}' {change}")
        if result.exit_status != 0:
            raise WorkloadError(
                f"Slurm did not accept {change} for {folded}: {last_line(result.stdout, result.stderr)}",
                hint=f"look at `scontrol show node {folded}` on {self._head}",
            )

    def _answer(self, command: str, seconds: int = _COMMAND_SECONDS) -> str:
        return self._checked(self._ask(command, seconds))

    def _checked(self, result: CommandResult) -> str:
        if result.exit_status != 0:
            raise WorkloadError(
                f"Slurm does not answer on {self._head}: `{_tool(result.command)}` exited {result.exit_status}: "
                f"{last_line(result.stdout, result.stderr)}",
                hint="run `rackwright verify --role slurm` for details",
            )
        return result.stdout

    def _ask(self, command: str, seconds: int = _COMMAND_SECONDS) -> CommandResult:
        return self._shell.run(self._head, command, timeout=seconds)


def _states(output: str) -> dict[str, NodeState]:
    try:
        return {row.node: row.node_state for row in parse_rows(output)}
    except NoAnswer as error:
        raise WorkloadError(str(error)) from None


def _tool(command: str) -> str:
    return next(word for word in command.split() if word != "timeout" and not word.isdigit())
