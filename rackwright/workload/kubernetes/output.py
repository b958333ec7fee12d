"""What kubectl prints of nodes and pods, as types. Standard library only, Python 3.9: runs on nodes too.

Each line begins with a mark that the asker has just made up: annotations and conditions may contain line breaks, and what
follows one does not begin with the mark. Texts that a node writes about itself are the last cells of its line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from rackwright.boundary import printable
from rackwright.workload.states import HEALTH_PREFIX, DrainedBy, NoAnswer, NodeState, run_of

REASON = "rackwright.dev/drain-reason"
BY = "rackwright.dev/drained-by"
MANAGER = "rackwright"
"""The field manager of rackwright's patches."""
DRAIN_LABEL = "rackwright.dev/drain"
GROUP_LABEL = "rackwright.dev/group"
"""A site's own groups of nodes, of which health checks drain a share at most; without it, nodes of one SKU are a group."""
SKU_LABEL = "rackwright.dev/sku"
LINES_MAX = 200_000
_CELL_MAX = 1000
_NODE_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_POD_NAME = _NODE_NAME
_OWN_TAINTS = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/")
"""Prefixes of taints that the control plane sets."""
_CORDON = "node.kubernetes.io/unschedulable"
_KEEPS_OUT = ("NoSchedule", "NoExecute")
_SERVICES = frozenset(("ReplicaSet", "StatefulSet", "ReplicationController"))
_PARTS = frozenset(("DaemonSet", "Node"))
_SYSTEM = "kube-system"


def _dotted(name: str) -> str:
    return name.replace(".", "\\.")


_READY = '.status.conditions[?(@.type=="Ready")]'
_NODE_CELLS = (
    "{.metadata.name}",
    "{.spec.unschedulable}",
    f"{{{_READY}.status}}",
    "{range .spec.taints[*]}{.key}={.effect},{end}",
    "{.status.allocatable.cpu}",
    f"{{.metadata.labels.{_dotted(GROUP_LABEL)}}}",
    f"{{.metadata.labels.{_dotted(SKU_LABEL)}}}",
    f'{{.metadata.managedFields[?(@.manager=="{MANAGER}")].fieldsV1.f\\:spec.f\\:unschedulable}}',
    f"{{{_READY}.reason}}",
    f"{{.metadata.annotations.{_dotted(BY)}}}",
    f"{{.metadata.annotations.{_dotted(REASON)}}}",
)
_NODE_CELLS_MIN = 8
"""Cells that no text of a node can cut off."""
_CONTROLLER = ".metadata.ownerReferences[?(@.controller==true)]"
_POD_CELLS = (
    "{.metadata.namespace}",
    "{.metadata.name}",
    "{.metadata.uid}",
    "{.spec.nodeName}",
    "{.status.phase}",
    "{.metadata.deletionTimestamp}",
    f"{{.metadata.labels.{_dotted(DRAIN_LABEL)}}}",
    f"{{{_CONTROLLER}.kind}}",
    f"{{{_CONTROLLER}.name}}",
    "{.metadata.annotations.kubernetes\\.io/config\\.mirror}",
)
_POD_CELLS_MIN = 7
UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed,spec.nodeName!="


def _table(mark: str, cells: Iterable[str]) -> str:
    row = '{"|"}'.join(cells)
    return f'{{"{mark}begin\\n"}}{{range .items[*]}}{{"{mark}|"}}{row}{{"\\n"}}{{end}}{{"{mark}end\\n"}}'


def nodes_question(mark: str, node: str | None = None) -> list[str]:
    """Arguments of kubectl: every node, or one."""
    one = [f"--field-selector=metadata.name={node}"] if node is not None else []
    return ["get", "nodes", *one, "-o", f"jsonpath={_table(mark, _NODE_CELLS)}"]


def pods_question(mark: str, node: str | None = None) -> list[str]:
    """Arguments of kubectl: all pods that are on nodes and not finished, or those of one node."""
    where = f"{UNFINISHED},spec.nodeName={node}" if node is not None else UNFINISHED
    return ["get", "pods", "-A", f"--field-selector={where}", "-o", f"jsonpath={_table(mark, _POD_CELLS)}"]


class PodKind(Enum):
    """What a drain does to a pod."""

    JOB = "wait"
    SERVICE = "evict"
    PART = "ignore"


@dataclass(frozen=True)
class Pod:
    """A pod on a node that has not finished."""

    namespace: str
    name: str
    uid: str
    node: str
    deleted: bool
    kind: PodKind
    owner: str
    """Name of its controller; empty without one."""

    @property
    def id(self) -> str:
        """As kubectl and logs name it."""
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class NodeRow:
    """A node as the API server has it."""

    name: str
    cordoned: bool
    ready: str
    """`True`, `False`, `Unknown`, or empty where the kubelet has not reported."""
    taints: tuple[tuple[str, str], ...]
    """(key, effect) of those that keep pods out."""
    cpus: str
    """Allocatable CPUs as the API prints them: `2` or `1930m`."""
    group: str
    condition: str
    """The kubelet's word for why it is ready or not."""
    by: str
    reason: str
    annotation: str
    """The reason as it is stored, where `reason` is empty because it belongs to an earlier drain."""
    has_by: bool

    @property
    def since(self) -> str:
        """When its reason was set; texts of it sort by time."""
        return self.by.partition("@")[2]

    def state(self, pods: Sequence[Pod]) -> NodeState:
        """The node with the pods that are on it; text as `kubectl get nodes` prints it."""
        word = "Ready" if self.ready == "True" else "NotReady" if self.ready else "Unknown"
        words = (word, *(("SchedulingDisabled",) if self.cordoned else ()))
        own = [key for key, _ in self.taints if key.startswith(_OWN_TAINTS) and key != _CORDON]
        down = self.ready != "True" or bool(own)
        busy = any(jobs_of(pods, silent=self.ready != "True"))
        reason, by = (self.reason, self.by) if self.cordoned else ("", "")
        if down and not self.cordoned:
            reason = self.condition if self.ready != "True" else f"taint {own[0]}"
        return NodeState(
            text=",".join(words),
            words=frozenset(words),
            drained=self.cordoned,
            down=down,
            busy=busy,
            ready=not self.cordoned and not down and not busy,
            reason=reason,
            by=by,
            drained_by=_drained_by(self) if self.cordoned or down else None,
        )


def _drained_by(row: NodeRow) -> DrainedBy:
    if not row.cordoned:
        return DrainedBy.MANAGER
    if row.reason.startswith(HEALTH_PREFIX):
        return DrainedBy.HEALTH
    return DrainedBy.ROLLOUT if run_of(row.reason) is not None else DrainedBy.PERSON


def jobs_of(pods: Iterable[Pod], *, silent: bool = False) -> list[Pod]:
    """The jobs among them; of a silent node, without those that the control plane has given up."""
    return [pod for pod in pods if pod.kind is PodKind.JOB and not (silent and pod.deleted)]


def services_of(pods: Iterable[Pod]) -> list[Pod]:
    """Those that a drain evicts."""
    return [pod for pod in pods if pod.kind is PodKind.SERVICE]


def by_node(pods: Iterable[Pod]) -> dict[str, list[Pod]]:
    """Pods by the node they are on."""
    found: dict[str, list[Pod]] = {}
    for pod in pods:
        found.setdefault(pod.node, []).append(pod)
    return found


def states_of(rows: Mapping[str, NodeRow], pods: Iterable[Pod]) -> dict[str, NodeState]:
    """Every node, by name."""
    of = by_node(pods)
    return {name: row.state(of.get(name, ())) for name, row in rows.items()}


def parse_nodes(text: str, mark: str) -> dict[str, NodeRow]:
    """Nodes by name; NoAnswer for anything but the whole table."""
    found = {}
    for line in _rows(text, mark, "nodes"):
        cells = line.split("|", len(_NODE_CELLS) - 1)
        name, cordoned, ready = (*cells, "", "", "")[:3]
        well = _NODE_NAME.fullmatch(name) and cordoned in ("", "true", "false")
        if len(cells) < _NODE_CELLS_MIN or not well or ready not in ("", "True", "False", "Unknown"):
            raise NoAnswer(f"`kubectl get nodes` printed something else: {printable(line, 80)}")
        cells += [""] * (len(_NODE_CELLS) - len(cells))
        stored = cells[10]
        cells = [printable(cell.strip(), _CELL_MAX) for cell in cells]
        owned, reason = bool(cells[7]), cells[10]
        stale = not owned and (reason.startswith(HEALTH_PREFIX) or run_of(reason) is not None)
        found[name] = NodeRow(
            name=name,
            cordoned=cordoned == "true",
            ready=ready,
            taints=tuple(_taints(cells[3])),
            cpus=cells[4],
            group=cells[5] or cells[6] or "all nodes",
            condition=cells[8],
            by="" if stale else cells[9],
            reason="" if stale else reason,
            annotation=stored,
            has_by=bool(cells[9]),
        )
    return found


def _taints(cell: str) -> Iterable[tuple[str, str]]:
    for word in cell.split(","):
        key, _, effect = word.partition("=")
        if effect in _KEEPS_OUT:
            yield key, effect


def parse_pods(text: str, mark: str) -> list[Pod]:
    """Pods; NoAnswer for anything but the whole table."""
    found = []
    for line in _rows(text, mark, "pods"):
        cells = line.split("|", len(_POD_CELLS) - 1)
        names = cells[:2] + cells[3:4]
        if len(cells) < _POD_CELLS_MIN or not all(map(_POD_NAME.fullmatch, names)):
            raise NoAnswer(f"`kubectl get pods` printed something else: {printable(line, 80)}")
        cells = [printable(cell, 260) for cell in cells] + [""] * (len(_POD_CELLS) - len(cells))
        namespace, name, uid, node, _, deleted, label, controller, owner, mirror = cells
        found.append(
            Pod(namespace, name, uid, node, bool(deleted), _kind(namespace, label, controller, mirror), owner)
        )
    return found


def _kind(namespace: str, label: str, controller: str, mirror: str) -> PodKind:
    declared = next((one for one in PodKind if one.value == label), None)
    if declared is not None:
        return declared
    if controller in _PARTS or mirror:
        return PodKind.PART
    return PodKind.SERVICE if controller in _SERVICES or namespace == _SYSTEM else PodKind.JOB


def _rows(text: str, mark: str, what: str) -> list[str]:
    """Lines of a table without their mark; NoAnswer where its beginning or its end is missing."""
    lines = [line[len(mark) :] for line in text.split("\n") if line.startswith(mark)]
    if len(lines) > LINES_MAX or lines[:1] != ["begin"] or lines[-1:] != ["end"]:
        first = printable(text.strip()[:200].partition("\n")[0], 80) or "nothing"
        raise NoAnswer(f"`kubectl get {what}` did not print a whole table: {first}")
    return [line[1:] for line in lines[1:-1]]
