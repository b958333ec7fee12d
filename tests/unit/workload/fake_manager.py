"""A workload manager in memory: nothing of Slurm's, so that what uses the protocol is tested without it."""

from __future__ import annotations

from dataclasses import dataclass, field

from rackwright.errors import WorkloadError
from rackwright.workload.by_hand import checked_reason, refused
from rackwright.workload.protocol import HealthSchedule, Job, Output
from rackwright.workload.states import ROLLOUT_PREFIX, DrainedBy, NodeState


@dataclass
class MemoryNode:
    jobs: list[str] = field(default_factory=list)
    reason: str | None = None
    """None: in service."""
    by: str = ""
    down: bool = False


class MemoryManager:
    """After `polls_until_free` looks at the nodes their jobs end, after `silent_after` it answers no more."""

    name, agent, hooks, health_timer = "Memory", "memoryd", {}, False

    def __init__(self, cluster=None, shell=None):
        self.nodes = {node.name: MemoryNode() for node in cluster.nodes} if cluster is not None else {}
        self.silent, self.not_drained = False, set()
        self.polls_until_free = self.silent_after = -1
        self.on_look = lambda: None
        self.looks_until_deadline = 5
        self.steps, self.killed = [], []
        self.reply = ("hello\n", 0)

    @staticmethod
    def services(node):
        return ("memory-agent.service",)

    @staticmethod
    def resume_command(node):
        return f"memctl resume {node}"

    @staticmethod
    def health_schedule(ask):
        program, _, interval = ask("memctl health").partition(" ")
        return HealthSchedule(program, int(interval))

    @staticmethod
    def job_question(node):
        return "memctl jobs"

    @staticmethod
    def shows_job(answer):
        return bool(answer.strip())

    def version(self):
        return "1.0"

    def states(self):
        if self.silent:
            raise WorkloadError("Memory does not answer.")
        self.on_look()
        if self.polls_until_free == 0:
            for node in self.nodes.values():
                node.jobs.clear()
        self.polls_until_free -= 1
        self.silent = self.silent_after == 0
        self.silent_after -= 1
        return {name: self._state(node) for name, node in self.nodes.items()}

    def _state(self, node):
        out = node.reason is not None
        by = None
        if out or node.down:
            ours = (node.reason or "").startswith(ROLLOUT_PREFIX)
            by = DrainedBy.ROLLOUT if ours else DrainedBy.PERSON if out else DrainedBy.MANAGER
        text = "Out" if out else "Broken" if node.down else "Ready"
        return NodeState(
            text, frozenset({text}), out, node.down, bool(node.jobs), ready=by is None and not node.jobs,
            reason=node.reason or "", by=node.by, drained_by=by,
        )  # fmt: skip

    def state(self, node):
        states = self.states()
        if node not in states:
            raise WorkloadError(f"Memory does not know {node}.")
        return states[node]

    def jobs(self, node):
        if node not in self.states():
            raise WorkloadError(f"Memory does not know {node}.")
        return tuple(Job(str(n), "ada", job) for n, job in enumerate(self.nodes[node].jobs, 7))

    def running(self):
        self.states()
        return {name: self.jobs(name) for name, node in self.nodes.items() if node.jobs}

    def drain_by_hand(self, node, reason):
        state = self.state(node)
        if not state.in_service:
            raise WorkloadError(
                f"{node} is out of service already: {state.text}, {state.reason or 'no reason given'}"
            )
        self.nodes[node].reason = checked_reason(reason)

    def resume_by_hand(self, node, reason):
        if (why := refused(node, self.state(node), reason, self.resume_command(node))) is not None:
            raise WorkloadError(why)
        self.nodes[node].reason = None

    def trace(self, job):
        raise WorkloadError(f"Memory does not know job {job}.")

    def drain(self, nodes, run, deadline_seconds, *, kill_jobs=False):
        if self.silent:
            self.not_drained.update(nodes)
            return {}
        states = self.states()
        known = [name for name in nodes if name in states]
        mine = [name for name in known if states[name].in_service]
        for name in mine:
            self.nodes[name].reason = f"{ROLLOUT_PREFIX}{run}"
        for name in known if kill_jobs else ():
            self.killed += self.nodes[name].jobs
            self.nodes[name].jobs = []
        for _ in range(self.looks_until_deadline):
            states = self.states()
            busy = [name for name in known if states[name].busy]
            if not busy:
                break
        if given_back := [name for name in busy if name in mine]:
            self.resume(given_back, run)
        return dict.fromkeys(busy, f"its jobs did not end within {deadline_seconds:g} s")

    def resume(self, nodes, run):
        nodes = [name for name in nodes if name not in self.not_drained]
        states = self.states() if nodes else {}
        mine = [name for name in nodes if name in states and states[name].run == run]
        for name in mine:
            self.nodes[name].reason = None
        return mine

    def run(self, step):
        self.states()
        self.steps.append(step)
        if isinstance(self.reply, BaseException):
            self.cancel()
            raise self.reply
        self.steps.clear()
        return Output(*self.reply)

    def cancel(self):
        self.steps.clear()
