"""Kubernetes as the control node sees it, asked by kubectl on the control plane as root."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, ClassVar

from rackwright.boundary import Refused, printable, read_json
from rackwright.errors import WorkloadError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import RunsKubernetes
from rackwright.workload.by_hand import checked_reason, refused
from rackwright.workload.health_timer import schedule
from rackwright.workload.kubernetes import patches, traces
from rackwright.workload.kubernetes.draining import Drain, change
from rackwright.workload.kubernetes.kubectl import Kubectl, NotRunning
from rackwright.workload.kubernetes.output import BY, REASON, NodeRow, Pod, by_node, jobs_of, states_of
from rackwright.workload.protocol import HealthSchedule, Job, JobStep, JobTrace, Output
from rackwright.workload.states import NodeState

if TYPE_CHECKING:
    from rackwright.ssh import RootShell
    from rackwright.workload.kubernetes.steps import Steps

_VERSION = re.compile(r"v([0-9]{1,2})\.([0-9]{1,3})\.[0-9A-Za-z.+-]{1,40}")


class Kubernetes:
    """One cluster's Kubernetes; see rackwright.workload.protocol.Manager."""

    name: ClassVar[str] = "Kubernetes"
    agent: ClassVar[str] = "kubelet"
    hooks: ClassVar[Mapping[str, str]] = {}
    health_timer: ClassVar[bool] = True
    drains_in: ClassVar[str | None] = None

    def __init__(self, cluster: Cluster, shell: RootShell) -> None:
        self._cluster = cluster
        self._shell = shell
        self._kubectl = Kubectl(cluster, shell)
        self._steps_under_way: Steps | None = None
        self._not_drained: set[str] = set()
        """Nodes that could not be drained because no API server answered."""

    @staticmethod
    def services(node: Node) -> tuple[str, ...]:
        """containerd; the control plane's own daemons are pods."""
        return ("containerd.service",)

    @staticmethod
    def resume_command(node: str) -> str:
        """kubectl's; the annotations would outlive it."""
        return f"kubectl uncordon {node} && kubectl annotate node {node} {REASON}- {BY}-"

    @staticmethod
    def health_schedule(ask: Callable[[str], str]) -> HealthSchedule:
        """Of the node's own timer."""
        return schedule(ask)

    @staticmethod
    def job_question(node: str) -> str:
        """The node's own pods, where containerd runs any for Kubernetes."""
        from rackwright.workload.kubernetes.on_node import job_question  # for reboots alone

        return job_question(node)

    @staticmethod
    def shows_job(answer: str) -> bool:
        """Pods that count as jobs; pods that cannot be listed count as well."""
        from rackwright.workload.kubernetes.on_node import shows_job

        return shows_job(answer)

    def version(self) -> str:
        """Of the API server, without `v`."""
        return self._version()[0].removeprefix("v")

    def states(self) -> dict[str, NodeState]:
        """From the nodes and pods, by one command."""
        return states_of(*self._kubectl.look())

    def state(self, node: str) -> NodeState:
        """The same of one node."""
        row, pods = self._one(node)
        return row.state(pods)

    def jobs(self, node: str) -> tuple[Job, ...]:
        """Pods that a drain waits for."""
        row, pods = self._one(node)
        return _jobs(row, pods)

    def running(self) -> dict[str, tuple[Job, ...]]:
        """The same of every node."""
        rows, pods = self._kubectl.look()
        found = {node: _jobs(rows[node], of) for node, of in by_node(pods).items() if node in rows}
        return {node: jobs for node, jobs in found.items() if jobs}

    def trace(self, job: str) -> JobTrace:
        """Of a pod, or of all pods of a Job, as long as the API server has them."""
        name = traces.parsed(job)
        for arguments in traces.questions(name):
            text = self._kubectl.answer(arguments)
            try:
                found = traces.trace(job, read_json(text), list(self._cluster.by_name), self._kubectl.planes)
            except (Refused, traces.Unreadable) as error:
                raise WorkloadError(
                    f"The answer of Kubernetes about {job} cannot be read: {error}."
                ) from None
            if found is not None:
                return found
        raise WorkloadError(
            f"Kubernetes on {self._kubectl.plane} does not know job {job}.",
            hint=f"it knows pods until they are deleted: kubectl get pods -n {name.namespace}",
        )

    def drain(
        self, nodes: Collection[str], run: str, deadline_seconds: float, *, kill_jobs: bool = False
    ) -> dict[str, str]:
        """Nodes that are already cordoned or not ready, for any reason, are only waited for."""
        try:
            rows = self._kubectl.nodes()
        except NotRunning:
            self._not_drained.update(nodes)
            return {}
        drain = self._drain_of(run)
        mine = drain.begin(nodes, rows)
        known = [node for node in nodes if node in rows]
        return drain.finish(known, mine, deadline_seconds, kill_jobs=kill_jobs)

    def resume(self, nodes: Iterable[str], run: str) -> list[str]:
        """Those whose reason still is this run's."""
        return self._drain_of(run).give_back([node for node in nodes if node not in self._not_drained])

    def forget(self, nodes: Iterable[str]) -> None:
        """Deletes the Node objects; a kubelet that starts again makes a new one."""
        try:
            rows = self._kubectl.nodes()
        except NotRunning:
            return  # `verify` names what is left behind
        gone = (name for name in nodes if self._cluster.by_name[name].offers(RunsKubernetes) is None)
        left = [name for name in gone if name in rows and rows[name].state(()).run is not None]
        if left:
            self._kubectl.answer(["delete", "node", "--ignore-not-found", *left])

    def drain_by_hand(self, node: str, reason: str) -> None:
        """Cordons; services stay, as jobs do."""
        row, pods = self._one(node)
        state = row.state(pods)
        text = checked_reason(reason)
        if state.in_service:
            printed = change(self._kubectl, [node], patches.cordon(text, patches.author()))
            row, pods = self._one(node)
            if row.cordoned and row.reason == text:
                return
            state = row.state(pods)
            if state.in_service:
                raise WorkloadError(f"Kubernetes did not cordon {node}: {printed}")
        raise WorkloadError(
            f"{node} is out of service already: {state.text}, {state.reason or 'no reason given'}"
        )

    def resume_by_hand(self, node: str, reason: str) -> None:
        """Uncordons."""
        row, pods = self._one(node)
        if (why := refused(node, row.state(pods), reason, self.resume_command(node))) is not None:
            raise WorkloadError(why)
        printed = change(self._kubectl, [node], patches.uncordon(row.annotation, has_by=row.has_by))
        if self._one(node)[0].cordoned:
            raise WorkloadError(f"Kubernetes did not uncordon {node}: {printed}")

    def run(self, step: JobStep) -> Output:
        """As pods, one on each node, removed afterwards."""
        return self._steps().run(step)

    def cancel(self) -> None:
        """Deletes the pods of steps."""
        if self._steps_under_way is not None:
            self._steps_under_way.cancel()

    def _steps(self) -> Steps:
        if self._steps_under_way is None:
            from rackwright.workload.kubernetes.steps import Steps  # makes keys, which only a step needs

            self._steps_under_way = Steps(self._cluster, self._kubectl, self._release)
        return self._steps_under_way

    def _drain_of(self, run: str) -> Drain:
        return Drain(self._kubectl, run, self._release)

    def _release(self) -> tuple[int, int]:
        return self._version()[1]

    def _version(self) -> tuple[str, tuple[int, int]]:
        text = self._kubectl.answer(["get", "--raw=/version"])
        try:
            answer = read_json(text)
        except Refused:
            answer = None
        printed = answer.get("gitVersion") if isinstance(answer, dict) else None
        found = _VERSION.fullmatch(printed) if isinstance(printed, str) else None
        if found is None:
            raise WorkloadError(
                f"The version of Kubernetes on {self._kubectl.plane} cannot be read: {printable(text.strip(), 80)}"
            )
        return found[0], (int(found[1]), int(found[2]))

    def _one(self, node: str) -> tuple[NodeRow, list[Pod]]:
        rows, pods = self._kubectl.look(node)
        if node not in rows:
            raise WorkloadError(f"Kubernetes on {self._kubectl.plane} does not know {node}.")
        return rows[node], [pod for pod in pods if pod.node == node]


def _jobs(row: NodeRow, pods: Iterable[Pod]) -> tuple[Job, ...]:
    found = jobs_of(pods, silent=row.ready != "True")
    return tuple(Job(pod.id, pod.namespace, pod.owner or pod.name) for pod in found)
