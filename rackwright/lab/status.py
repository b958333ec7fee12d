"""What a rack looks like now, as data."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from rackwright.lab import cgroup, fault_record, links, mirror, names, node, state
from rackwright.lab.bmc import service
from rackwright.lab.spec import NodeSpec, RackSpec

STOPPED = "stopped"


@dataclass(frozen=True, slots=True)
class NodeStatus:
    """One node: whether it runs, whether it answers, and what is wrong with it on purpose."""

    name: str
    address: str
    image: str
    kind: str
    state: str
    faults: dict[str, list[str]]
    limits: str
    memory_mib: int | None
    bmc: str = ""
    """Of a racked machine: the URL of its BMC, or that it does not answer."""


@dataclass(frozen=True, slots=True)
class RackStatus:
    """One rack; `up` means that every node without a declared fault is ready, and every BMC is served."""

    name: str
    up: bool
    mirror: str
    nodes: tuple[NodeStatus, ...]

    def to_json(self) -> dict[str, Any]:
        """The status as JSON types."""
        return asdict(self)


def read(rack: str, spec: RackSpec | None) -> RackStatus:
    """The status of a rack; an unknown one is simply not up."""
    if spec is None or not links.exists(names.namespace(rack)):
        return RackStatus(rack, False, "none" if spec is None or spec.apt_proxy is None else "stopped", ())
    with ThreadPoolExecutor(max_workers=32) as pool:
        nodes = tuple(pool.map(lambda target: _node(spec, target), spec.nodes))
    door = "none"
    if spec.apt_proxy is not None:
        door = spec.apt_proxy if mirror.door_answers(spec) else "stopped"
    healthy = [one.state == "ready" or bool(one.bmc) for one in nodes if not one.faults]
    reached = all(one.bmc != STOPPED for one in nodes)
    return RackStatus(rack, all(healthy) and reached and door != "stopped", door, nodes)


def describe_limits(limits: dict[str, bool]) -> str:
    """The limits as text, with those that the host does not enforce marked."""
    missing = [name for name in ("cpu", "memory") if not limits.get(name)]
    if not missing:
        return "enforced"
    return "not enforced" if len(missing) == 2 else f"{missing[0]} not enforced"


def _node(spec: RackSpec, target: NodeSpec) -> NodeStatus:
    record = state.node_record(spec.name, target.name)
    running = node.running(spec.name, target.name)
    return NodeStatus(
        name=target.name,
        address=target.address,
        image=target.image,
        kind=_kind(target),
        state=_state(spec, target, running),
        faults=fault_record.recorded(spec.name, target.name),
        limits=describe_limits(record.limits if record is not None and running else {}),
        memory_mib=cgroup.memory_mib(spec.name, target.name) if running else None,
        bmc=_bmc(spec, target),
    )


def _kind(target: NodeSpec) -> str:
    if target.vm is None:
        return "container"
    return "vm" if target.bmc is None else "racked"


def _bmc(spec: RackSpec, target: NodeSpec) -> str:
    if target.bmc is None:
        return ""
    if not service.running(spec.name):
        return STOPPED
    return f"https://{target.bmc.address}:{target.bmc.port}"


def _state(spec: RackSpec, target: NodeSpec, running: bool) -> str:
    if not running:
        return "off"
    if target.bmc is not None:
        return "on"  # whether something is installed on it, and answers, is not the lab's
    return "ready" if node.kind(target).ready(spec, target) else "not ready"
