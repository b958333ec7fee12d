"""kubectl on a node of the control plane, as root; the next one where the first does not answer."""

from __future__ import annotations

import re
import secrets
import shlex
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from rackwright.boundary import last_line
from rackwright.command import CommandResult
from rackwright.errors import ConnectionFailed, WorkloadError
from rackwright.model.cluster import Cluster
from rackwright.model.interfaces import RunsKubernetes
from rackwright.workload.kubernetes.output import (
    NodeRow,
    Pod,
    nodes_question,
    parse_nodes,
    parse_pods,
    pods_question,
)
from rackwright.workload.states import NoAnswer

if TYPE_CHECKING:
    from rackwright.ssh import RootShell

COMMAND_SECONDS = 60
_REQUEST_SECONDS = 30
_SILENT = re.compile(
    r"connection to the server \S+ was refused|Unable to connect to the server: (?!x509|tls)|command not found"
    r"|kubectl: not found|: no such file or directory|\(ServiceUnavailable\)|etcdserver|\(Timeout\)"
)
"""kubectl's words where no API server answers, or it is not installed. A refusal is an answer."""


class NotRunning(WorkloadError):  # noqa: N818 - reads as the sentence it is
    """No API server answers on any node of the control plane."""


def options_of(cluster: Cluster) -> RunsKubernetes:
    """The options of the role that runs Kubernetes; WorkloadError where the cluster file has none."""
    found = next((role for node in cluster.nodes if (role := node.offers(RunsKubernetes)) is not None), None)
    if found is None:
        raise WorkloadError(f"No role of cluster {cluster.name} runs Kubernetes.")
    return found


class Kubectl:
    """Runs kubectl where it is answered."""

    def __init__(self, cluster: Cluster, shell: RootShell) -> None:
        self._cluster, self._shell = cluster, shell
        self._options = options_of(cluster)
        self._planes = [node.name for node in self._options.control_planes(cluster)]
        if not self._planes:
            raise WorkloadError(
                f"Kubernetes of cluster {cluster.name} has no control plane.",
                hint="a head needs the role kubernetes",
            )

    @property
    def plane(self) -> str:
        """The node that answered last."""
        return self._planes[0]

    @property
    def planes(self) -> tuple[str, ...]:
        """Nodes of the control plane."""
        return tuple(self._planes)

    def line(self, arguments: Sequence[str], *, seconds: int | None = _REQUEST_SECONDS) -> str:
        """The shell words of one call. `seconds` None: it may take as long as it wants, such as a log that is followed."""
        limit = [f"--request-timeout={seconds}s"] if seconds is not None else []
        return shlex.join(["kubectl", f"--kubeconfig={self._options.kubeconfig}", *limit, *arguments])

    def ask(
        self, command: str, *, seconds: float = COMMAND_SECONDS, stdin: str | bytes | None = None
    ) -> CommandResult:
        """A command on the first node of the control plane on which the API answers it.

        NotRunning where it answers on none. ConnectionFailed where a node is out of reach on which it may run.
        """
        lost: ConnectionFailed | None = None
        silent: CommandResult | None = None
        for plane in tuple(self._planes):
            try:
                result = self._shell.run(plane, command, stdin=stdin, timeout=seconds)
            except ConnectionFailed as error:
                lost = error
                continue
            if result.exit_status == 0 or not _SILENT.search(result.stderr):
                self._planes.remove(plane)
                self._planes.insert(0, plane)
                return result
            silent = result
        if lost is not None:
            raise lost
        printed = last_line(silent.stdout, silent.stderr) if silent is not None else "nothing"
        raise NotRunning(
            f"Kubernetes does not answer on {', '.join(self._planes)}: {printed}",
            hint="run `rackwright verify --role kubernetes` for details",
        )

    def answer(self, *calls: Sequence[str], stdin: str | bytes | None = None) -> str:
        """What calls of kubectl print, one after the other; WorkloadError where one fails."""
        return self.checked(self.ask(" && ".join(map(self.line, calls)), stdin=stdin)).stdout

    def checked(self, result: CommandResult) -> CommandResult:
        """The result; WorkloadError where it failed."""
        if result.exit_status != 0:
            raise WorkloadError(
                f"Kubernetes refused a request on {self.plane}: {last_line(result.stdout, result.stderr)}",
                hint="run `rackwright verify --role kubernetes` for details",
            )
        return result

    def nodes(self, node: str | None = None) -> dict[str, NodeRow]:
        """Every node, or one, by name."""
        mark = secrets.token_hex(8)
        try:
            return parse_nodes(self.answer(nodes_question(mark, node)), mark)
        except NoAnswer as error:
            raise WorkloadError(f"{error}.") from None

    def look(self, node: str | None = None) -> tuple[dict[str, NodeRow], list[Pod]]:
        """Every node, or one, and the pods there, by one command."""
        of_nodes, of_pods = secrets.token_hex(8), secrets.token_hex(8)
        text = self.answer(nodes_question(of_nodes, node), pods_question(of_pods, node))
        try:
            return parse_nodes(text, of_nodes), parse_pods(text, of_pods)
        except NoAnswer as error:
            raise WorkloadError(f"{error}.") from None

    def delete(self, pods: Iterable[Pod], per_call: int = 100) -> None:
        """Delete pods without waiting; those that are gone already are fine."""
        spaces: dict[str, list[str]] = {}
        for pod in pods:
            spaces.setdefault(pod.namespace, []).append(pod.name)
        for namespace, names in spaces.items():
            for start in range(0, len(names), per_call):
                some = names[start : start + per_call]
                words = ["delete", "pods", "-n", namespace, *some, "--wait=false", "--ignore-not-found"]
                self.answer(words)
