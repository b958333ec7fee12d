"""What the imex role claims of a node and of its NVLink domain."""

from __future__ import annotations

from functools import partial
from typing import Any

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.gpu import as_locked, needed
from rackwright.claims.units import runs, starts_at_boot
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability
from rackwright.roles.imex.domains import addresses
from rackwright.roles.imex.options import ImexOptions


def whole(report: Any, declared: tuple[str, ...]) -> str:  # noqa: ANN401 - JSON
    """`nvidia-imex-ctl -N -j`: the domain is UP, and its members are the declared nodes, all READY."""
    nodes = report.get("nodes") if isinstance(report, dict) else None
    if not isinstance(nodes, dict) or not isinstance(report.get("status"), str):
        raise Undetermined("nvidia-imex-ctl reports no nodes or no status")
    ready = {str(node.get("host")): str(node.get("status")) for node in nodes.values()}
    missing = [address for address in declared if address not in ready]
    strange = [address for address in ready if address not in declared]
    idle = [
        f"{address} is {ready[address]}" for address in declared if ready.get(address, "READY") != "READY"
    ]
    wrong = [f"{address} is not a member" for address in missing]
    wrong += [f"{address} is a member but not declared" for address in strange]
    if wrong or idle:
        fail(f"the domain is {report['status']}: {'; '.join([*wrong, *idle])}")
    if report["status"] != "UP":
        fail(f"the domain is {report['status']}, although every node is READY: check the connections")
    return f"UP, {len(declared)} of {len(declared)} nodes READY"


def _domain(context: CheckContext[ImexOptions]) -> str:
    declared = addresses(context.cluster, context.node, context.options)
    return whole(context.json("timeout 20 nvidia-imex-ctl -N -j"), tuple(map(str, declared)))


def _channels(context: CheckContext[ImexOptions]) -> str:
    wanted = context.options.channels
    listed = context.output("find /dev/nvidia-caps-imex-channels -type c -perm 0666 -name %s", "channel*")
    there = {line.rpartition("/channel")[2] for line in listed.splitlines()}
    missing = [str(number) for number in range(wanted) if str(number) not in there]
    if missing:
        fail(f"channel {', '.join(missing[:5])} is missing or not open to every user")
    return f"channels 0 to {wanted - 1}"


def _makes_channels(node: Node, options: ImexOptions) -> bool:
    return needed(node, options) and options.channels > 0


CHECKS = (
    Check("IMEX is installed as locked and held", as_locked, applies=needed),
    Check("IMEX is running", partial(runs, unit="nvidia-imex.service"), settle_seconds=60, applies=needed),
    Check(
        "the NVLink domain is up with every declared node",
        _domain,
        settle_seconds=90,
        applies=needed,
    ),
    Check(
        "the IMEX channels are created at every boot",
        partial(starts_at_boot, unit="rackwright-imex-channels.service", why="they are gone after a reboot"),
        applies=_makes_channels,
    ),
    Check(
        "the declared IMEX channels exist",
        _channels,
        needs=frozenset({Capability.KERNEL_MODULES}),
        applies=_makes_channels,
    ),
)
