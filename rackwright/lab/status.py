"""What a rack looks like now, as data."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

from rackwright.lab import cgroup, faults, links, mirror, names, node, state
from rackwright.lab.spec import NodeSpec, RackSpec


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


@dataclass(frozen=True, slots=True)
class RackStatus:
    """One rack; `up` means that every node without a declared fault is ready."""

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
    healthy = [one.state == "ready" for one in nodes if not one.faults]
    return RackStatus(rack, all(healthy) and door != "stopped", door, nodes)


def describe_limits(limits: dict[str, bool]) -> str:
    """The limits in words, so that none is taken for granted which the host does not enforce."""
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
        kind="container" if target.vm is None else "vm",
        state=_state(spec, target, running),
        faults=faults.recorded(spec.name, target.name),
        limits=describe_limits(record.limits if record is not None and running else {}),
        memory_mib=cgroup.memory_mib(spec.name, target.name) if running else None,
    )


def _state(spec: RackSpec, target: NodeSpec, running: bool) -> str:
    if not running:
        return "off"
    return "ready" if node.kind(target).ready(spec, target) else "not ready"
