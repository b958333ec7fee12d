"""Kubernetes as one node sees it, with the kubelet's own credential. Standard library only, Python 3.9: runs on nodes.

That credential may change its own Node's annotations and `spec.unschedulable`, no taint and no other node (admission plugin
NodeRestriction), and list its own pods. To count what is drained, nodes must be able to list all nodes: before 1.32 they can
anyway, from then on the role kubernetes binds a ClusterRole to the group system:nodes.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Callable, Iterable

from rackwright.workload.commands import run
from rackwright.workload.kubernetes import patches
from rackwright.workload.kubernetes.output import (
    NodeRow,
    Pod,
    jobs_of,
    nodes_question,
    parse_nodes,
    parse_pods,
    pods_question,
)
from rackwright.workload.states import DrainShare, NoAnswer, NodeState

KUBECONFIG = "/etc/kubernetes/kubelet.conf"
SECONDS = 15
_SHIM = "containerd-shim"
_OF_KUBERNETES = "-namespace k8s.io"
_UNKNOWN = "pods unknown"
_MARK = "rackwright-pods "
"""The same each time, as two sides need it: a line that a user forges can only add a job, and hold a reboot up."""

Run = Callable[["list[str]"], str]


def kubectl(*arguments: str) -> list[str]:
    """A command line of kubectl as the kubelet."""
    return ["kubectl", f"--kubeconfig={KUBECONFIG}", f"--request-timeout={SECONDS}s", *arguments]


def shares_of(rows: Iterable[NodeRow], node: str) -> list[DrainShare]:
    """The group of a node, and what health checks have drained in it besides the node."""
    rows = list(rows)
    groups = [row.group for row in rows if row.name == node]
    found = []
    for group in groups:
        members = [row for row in rows if row.group == group]
        drained = sum(_by_health(row) and row.name != node for row in members)
        found.append(DrainShare(group, len(members), drained))
    return found


def gives_way(rows: Iterable[NodeRow], node: str, percent: float) -> bool:
    """Whether a node that has just been drained exceeds the limit, because others were drained at the same time.

    The earliest stay drained, by the time of their reason and then by name: every node reaches the same decision.
    """
    rows = list(rows)
    for share in shares_of(rows, node):
        members = [row for row in rows if row.group == share.group and _by_health(row)]
        order = [name for _, name in sorted((row.since, row.name) for row in members)]
        if node in order and order.index(node) >= share.allowed(percent):
            return True
    return False


def _by_health(row: NodeRow) -> bool:
    return row.state(()).drained_by_health


def job_question(node: str) -> str:
    """A shell command for this node, whose output `shows_job` reads; its exit status means nothing."""
    ask = shlex.join(kubectl(*pods_question(_MARK, node)))
    shims = f"ps -eo args= | grep -v grep | grep -F {_SHIM} | grep -qe {shlex.quote(_OF_KUBERNETES)}"
    return f"{{ ! {{ {shims}; }} || timeout {SECONDS + 5} {ask} || echo '{_UNKNOWN}'; }}"


def shows_job(answer: str) -> bool:
    """Whether the output shows a job; pods that cannot be listed may be jobs."""
    if not answer.strip():
        return False
    try:
        return bool(jobs_of(parse_pods(answer, _MARK)))
    except NoAnswer:
        return True


class KubernetesOnNode:
    """Queries and commands to the API server about one node."""

    settle_seconds = 1.1
    """Reasons are dated in whole seconds: one of the same second that counts as earlier, by its node's name, may still be on
    its way."""

    def __init__(self, node: str, run: Run = run) -> None:
        self._node = node
        self._run = run

    def state(self) -> NodeState:
        """This node."""
        return self._row().state(self._pods())

    def job_among(self, command_lines: Iterable[str]) -> bool:
        """By the node's pods, which are asked for only where containerd runs any; unknown ones may be jobs."""
        if not any(_is_shim(line) for line in command_lines):
            return False
        try:
            return bool(jobs_of(self._pods()))
        except NoAnswer:
            return True

    def jobs_among(self, command_lines: Iterable[str]) -> frozenset[str]:
        """Uids of job pods; NoAnswer where pods run and cannot be listed."""
        return frozenset(self._jobs() if any(_is_shim(line) for line in command_lines) else ())

    def jobs(self) -> dict[str, int]:
        """Uids of job pods. Kubernetes knows no users of the system: all are root's."""
        return dict.fromkeys(self._jobs(), 0)

    def shares(self) -> list[DrainShare]:
        """See `shares_of`."""
        return shares_of(self._rows(), self._node)

    def drain(self, reason: str) -> None:
        """Cordon the node; its pods go on."""
        self._patch(patches.cordon(reason, self._author()))

    def one_too_many(self, percent: float) -> bool:
        """See `gives_way`."""
        time.sleep(self.settle_seconds)
        return gives_way(self._rows(), self._node, percent)

    def explain(self, reason: str) -> None:
        """Change the reason of the drain."""
        self._patch(patches.explain(self._row().annotation, reason, self._author()))

    def resume(self) -> None:
        """Uncordon the node, unless its reason changes meanwhile."""
        row = self._row()
        self._patch(patches.uncordon(row.annotation, has_by=row.has_by))

    def reboot(self, reason: str) -> None:
        """With systemd: Kubernetes reboots no node, and expects each one back. The cordon outlives the reboot."""
        self.explain(reason)
        self._run(["systemctl", "reboot"])

    def _jobs(self) -> list[str]:
        return [pod.uid for pod in jobs_of(self._pods())]

    def _row(self) -> NodeRow:
        rows = {row.name: row for row in self._rows(self._node)}
        if self._node not in rows:
            raise NoAnswer(f"Kubernetes does not know {self._node}")
        return rows[self._node]

    def _rows(self, node: str | None = None) -> list[NodeRow]:
        mark = os.urandom(8).hex()
        return list(parse_nodes(self._run(kubectl(*nodes_question(mark, node))), mark).values())

    def _pods(self) -> list[Pod]:
        mark = os.urandom(8).hex()
        return parse_pods(self._run(kubectl(*pods_question(mark, self._node))), mark)

    def _patch(self, change: str) -> None:
        self._run(kubectl(*patches.patch([self._node], change)))

    def _author(self) -> str:
        return patches.author()


def _is_shim(line: str) -> bool:
    return _SHIM in line.partition(" ")[0] and _OF_KUBERNETES in line
