"""Ray as the control node sees it, asked on the head through the programs that the role ray installs there.

A drain is a record in the GCS, which Redis keeps; the raylet is then asked to take no new work, and ends once it has none. The
node's own unit starts no raylet while the record is there. So a drain outlives restarts of the node and of the head,
and its end is the end of the record: the unit sees it within seconds and starts a raylet, which joins.
"""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, ClassVar

from rackwright.boundary import last_line, printable
from rackwright.command import CommandResult
from rackwright.errors import RackwrightError, WorkloadError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.services import RunsRay
from rackwright.workload.by_hand import checked_reason, refused
from rackwright.workload.protocol import HealthSchedule, Job, JobStep, JobTrace, Output
from rackwright.workload.ray.output import Listed, parse_listed
from rackwright.workload.ray.steps import WITH_RAY, Steps
from rackwright.workload.states import ROLLOUT_PREFIX, NoAnswer, NodeState

if TYPE_CHECKING:
    from rackwright.ssh import RootShell

_HEAD_UNITS = ("redis-server@rackwright-ray.service", "ray-head.service")
_IDLE_WORKERS = frozenset({"ray::IDLE", "ray::IDLE_SpillWorker", "ray::IDLE_RestoreWorker"})
"""Process titles of workers without work (ray, python/ray/_private/workers/default_worker.py, read 2026-11-28)."""
_POLL_SECONDS = 2
_COMMAND_SECONDS = 60
_WORK_SECONDS = 120
"""Tasks and actors are asked by a program that joins the cluster."""


class Ray:
    """One cluster's Ray; see rackwright.workload.protocol.Manager."""

    name: ClassVar[str] = "Ray"
    agent: ClassVar[str] = "ray-worker"
    hooks: ClassVar[Mapping[str, str]] = {}
    health_timer: ClassVar[bool] = False
    drains_in: ClassVar[str | None] = None

    def __init__(self, cluster: Cluster, shell: RootShell) -> None:
        self._cluster = cluster
        self._shell = shell
        offers = (node.offers(RunsRay) for node in cluster.nodes)
        role = next((given for given in offers if given is not None), None)
        self._head = (cluster.primary if role is None else role.head_node(cluster)).name
        self._steps = Steps(self._head, shell, cluster.ssh.time_factor)
        self._not_drained: set[str] = set()
        """Nodes that could not be drained because the head did not answer."""

    @staticmethod
    def services(node: Node) -> tuple[str, ...]:
        """Redis and the head's processes where they run."""
        role = node.offers(RunsRay)
        return _HEAD_UNITS if role is not None and role.is_head(node) else ()

    @staticmethod
    def resume_command(node: str) -> str:
        """On the head."""
        return f"{WITH_RAY} nodes.py resume {node}"

    @staticmethod
    def job_question(node: str) -> str:
        """All processes: a worker of Ray's that has work is named after it."""
        return "ps -eo args="

    @staticmethod
    def shows_job(answer: str) -> bool:
        """Idle workers are `ray::IDLE`; those with work have the name of their task or actor."""
        names = [line.split()[0] for line in answer.splitlines() if line.startswith("ray::")]
        return any(name not in _IDLE_WORKERS for name in names)

    @staticmethod
    def health_schedule(ask: Callable[[str], str]) -> HealthSchedule:
        """Ray runs no health check of the site."""
        return HealthSchedule("", 0)

    def version(self) -> str:
        """Of the head's environment."""
        return self._listed().version

    def states(self) -> Mapping[str, NodeState]:
        """Workers that have joined since Redis' data began, from the GCS."""
        return self._listed().states

    def state(self, node: str) -> NodeState:
        """From the GCS."""
        return self._known(node)

    def jobs(self, node: str) -> tuple[Job, ...]:
        """Tasks that run and actors that live there."""
        return self.running().get(node, ())

    def running(self) -> Mapping[str, tuple[Job, ...]]:
        """From Ray's State API."""
        return self._listed("work", seconds=_WORK_SECONDS).jobs

    def trace(self, job: str) -> JobTrace:
        """Ray's logs are files of its sessions, not lines of a journal."""
        raise WorkloadError(
            f"{printable(job, 60)}: rackwright does not follow Ray's jobs in the journal.",
            hint=f"on {self._head}: ray job logs {shlex.quote(printable(job, 60))}",
        )

    def drain(
        self, nodes: Collection[str], run: str, deadline_seconds: float, *, kill_jobs: bool = False
    ) -> dict[str, str]:
        """A raylet ends when it has no work left; `kill_jobs` restarts its unit, which ends the work."""
        answer = self._ask("nodes.py", "list")
        if answer.exit_status != 0:
            self._not_drained.update(nodes)
            return {}
        known = _parsed(answer).states
        mine = [node for node in nodes if node in known and known[node].in_service]
        try:
            for node in mine:
                self._change("drain", node, f"{ROLLOUT_PREFIX}{run}", _now())
            if kill_jobs:
                for node in (node for node in nodes if node in known and known[node].busy):
                    self._shell.run(node, f"systemctl restart {self.agent}.service", timeout=_COMMAND_SECONDS)
            busy = self._wait([node for node in nodes if node in known], deadline_seconds)
            left = dict.fromkeys(busy, f"its tasks and actors did not end within {deadline_seconds:g} s")
        except RackwrightError:
            with contextlib.suppress(RackwrightError):  # the first error is the one to report
                self.resume(mine, run)
            raise
        if given_back := [node for node in busy if node in mine]:
            self.resume(given_back, run)
        return left

    def resume(self, nodes: Iterable[str], run: str) -> list[str]:
        """Those whose record still is this run's; each joins again within seconds."""
        nodes = [node for node in nodes if node not in self._not_drained]
        known = self.states() if nodes else {}
        reason = f"{ROLLOUT_PREFIX}{run}"
        mine = [node for node in nodes if node in known and known[node].reason == reason]
        for node in mine:
            self._change("resume", node)
        return mine

    def forget(self, nodes: Iterable[str]) -> None:
        """The records of their drains go."""
        answer = self._ask("nodes.py", "list")
        if answer.exit_status != 0:
            return
        known = _parsed(answer).states
        for node in nodes:
            left = self._cluster.by_name[node].offers(RunsRay) is None
            if left and node in known and known[node].run is not None:
                self._change("resume", node)

    def drain_by_hand(self, node: str, reason: str) -> None:
        """The record has the operator's words."""
        state = self._known(node)
        if not state.in_service:
            raise WorkloadError(
                f"{node} is out of service already: {state.text}, {state.reason or 'no reason given'}"
            )
        self._change("drain", node, checked_reason(reason), _now())

    def resume_by_hand(self, node: str, reason: str) -> None:
        """The record goes."""
        if (why := refused(node, self._known(node), reason, self.resume_command(node))) is not None:
            raise WorkloadError(why)
        self._change("resume", node)

    def run(self, step: JobStep) -> Output:
        """A driver, on the head."""
        return self._steps.run(step)

    def cancel(self) -> None:
        """Their drivers end, and Ray ends their tasks."""
        self._steps.cancel()

    def _known(self, node: str) -> NodeState:
        known = self.states()
        if node not in known:
            raise WorkloadError(f"Ray on {self._head} does not know {node}.")
        return known[node]

    def _wait(self, nodes: list[str], deadline_seconds: float) -> list[str]:
        deadline = time.monotonic() + deadline_seconds
        while True:
            known = self.states()
            busy = [node for node in nodes if node in known and known[node].busy]
            if not busy or time.monotonic() >= deadline:
                return busy
            time.sleep(_POLL_SECONDS)

    def _change(self, *words: str) -> None:
        result = self._ask("nodes.py", *words)
        if result.exit_status != 0:
            raise WorkloadError(
                f"Ray did not {words[0]} {words[1]}: {last_line(result.stdout, result.stderr)}",
                hint=f"look at `journalctl -u ray-head` on {self._head}",
            )

    def _listed(self, *words: str, seconds: int = _COMMAND_SECONDS) -> Listed:
        result = self._ask("nodes.py", "list", *words, seconds=seconds)
        if result.exit_status != 0:
            raise WorkloadError(
                f"Ray does not answer on {self._head}: nodes.py exited {result.exit_status}: "
                f"{last_line(result.stdout, result.stderr)}",
                hint="run `rackwright verify --role ray` for details",
            )
        return _parsed(result)

    def _ask(self, *words: str, seconds: int = _COMMAND_SECONDS) -> CommandResult:
        line = f"timeout {seconds - 5} {shlex.join([WITH_RAY, *words])}"
        return self._shell.run(self._head, line, timeout=seconds)


def _parsed(result: CommandResult) -> Listed:
    try:
        return parse_listed(result.stdout)
    except NoAnswer as error:
        raise WorkloadError(str(error)) from None


def _now() -> str:
    return f"root@{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}"
