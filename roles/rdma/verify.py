"""Checks of the rdma role, read from sysfs and from running programs."""

from __future__ import annotations

from rackwright.claims.check import Check, CheckContext, NotInScope, Undetermined, Warned, fail
from rackwright.claims.files import as_rendered
from rackwright.claims.kernel import loaded_modules
from rackwright.claims.units import runs
from rackwright.facts.settings import Answer
from rackwright.model.cluster import Node
from rackwright.model.hcas import Hca
from rackwright.model.platforms import Capability
from rackwright.model.sku import Nic
from rackwright.model.types import Platform
from rackwright.roles.rdma import texts
from rackwright.roles.rdma.at_boot import interrupts_claim, read_requests_claim
from rackwright.roles.rdma.options import RdmaOptions
from rackwright.roles.rdma.partitions import pkeys
from rackwright.roles.rdma.readings import READ, Found, parse_devices, parse_memlock
from rackwright.roles.rdma.sharp import reachable
from rackwright.workload.lookup import declared_on, runs_jobs

Context = CheckContext[RdmaOptions]
_MODULES = frozenset({Capability.KERNEL_MODULES})
_HARDWARE = frozenset({Capability.KERNEL_MODULES, Capability.HARDWARE})


def _found(context: Context) -> dict[str, Found]:
    return parse_devices(context.output("sh -c %s", READ))


def _cards(context: Context) -> tuple[Hca, ...]:
    return tuple(hca for hca in context.options.hcas(context.cluster, context.node) if hca.pci is not None)


def _rails(context: Context, hca: Hca) -> str:
    """`mlx5_rail0 (rail 0 of fabric)`."""
    many = context.cluster.networks[hca.network].rails > 1
    return f"{hca.name} ({f'rail {hca.rail} of ' if many else ''}{hca.network})"


def _devices(context: Context) -> str:
    """Each card is at its address and has its name."""
    found = _found(context)
    by_pci = {one.pci: one.name for one in found.values() if one.pci is not None}
    wrong = []
    for hca in _cards(context):
        there = by_pci.get(hca.pci or "")
        if hca.name in found and found[hca.name].pci == hca.pci:
            continue
        if there is None:
            wrong.append(f"{_rails(context, hca)} is missing: no RDMA device is at {hca.pci}")
        else:
            wrong.append(f"{_rails(context, hca)}: the device at {hca.pci} is named {there}")
    if wrong:
        fail("; ".join(wrong))
    return ", ".join(f"{hca.name} at {hca.pci}" for hca in _cards(context))


def _rules(context: Context) -> str:
    return as_rendered(
        context, {texts.RULES: texts.rules(context.options.hcas(context.cluster, context.node))}
    )


def _ports(context: Context) -> str:
    """Software devices too: theirs follow the interface."""
    found = _found(context)
    hcas = context.options.hcas(context.cluster, context.node)
    wrong, unknown = [], []
    for hca in hcas:
        there = found.get(hca.name)
        if there is None:
            wrong.append(f"{_rails(context, hca)} is missing")
        elif there.state is None or there.physical is None:
            unknown.append(hca.name)
        elif (there.state, there.physical) != ("ACTIVE", "LinkUp"):
            wrong.append(f"{_rails(context, hca)} is {there.state}, {there.physical}{_why(there)}")
    _report(wrong, unknown, "do not report the state of their port")
    return f"{len(hcas)} ports ACTIVE, LinkUp"


def _why(there: Found) -> str:
    if there.state == "INIT" and there.link_layer == "InfiniBand":
        return ": no subnet manager has brought the port up"
    if there.physical == "Disabled":
        return ": its port or interface is switched off"
    return ": no cable, or no link partner" if there.physical == "Polling" else ""


def _report(wrong: list[str], unknown: list[str], what: str) -> None:
    if wrong:
        fail("; ".join(wrong))
    if unknown:
        raise Undetermined(f"{', '.join(unknown)} {what}")


def _link_layers(context: Context) -> str:
    found = _found(context)
    wrong, unknown = [], []
    hcas = context.options.hcas(context.cluster, context.node)
    for hca in hcas:
        _, _, wanted = texts.link_type(context.cluster.networks[hca.network].kind)
        there = found.get(hca.name)
        if there is None:
            wrong.append(f"{_rails(context, hca)} is missing")
        elif there.link_layer is None:
            unknown.append(hca.name)
        elif there.link_layer != wanted:
            wrong.append(f"{_rails(context, hca)} is {there.link_layer}, not {wanted}")
    _report(wrong, unknown, "do not report their link layer")
    return ", ".join(dict.fromkeys(found[hca.name].link_layer or "" for hca in hcas))


def _nic(node: Node, context: Context, hca: Hca) -> Nic | None:
    """The port of the SKU that a device is; None where it has none, or several that differ."""
    network = context.cluster.networks[hca.network]
    ports = [nic for nic in node.sku.nics if nic.purpose is network.purpose]
    by_rail = [nic for nic in ports if nic.rail == hca.rail]
    ports = by_rail or ports
    return ports[0] if ports and len({nic.speed_gbps for nic in ports}) == 1 else None


def _rates(context: Context) -> str:
    found = _found(context)
    wrong, unknown, good = [], [], []
    for hca in _cards(context):
        nic = _nic(context.node, context, hca)
        there = found.get(hca.name)
        if nic is None:
            raise Undetermined(
                f"the SKU {context.node.sku.name} does not declare the speed of {_rails(context, hca)}"
            )
        if there is None:
            wrong.append(f"{_rails(context, hca)} is missing")
        elif there.rate_gbps is None:
            unknown.append(hca.name)
        elif there.rate_gbps != nic.speed_gbps:
            wrong.append(f"{_rails(context, hca)} runs at {there.rate_gbps:g} Gb/s, not {nic.speed_gbps}")
        else:
            good.append(nic.speed_gbps)
    _report(wrong, unknown, "do not report the rate of their port")
    return f"{len(good)} ports at {', '.join(map(str, sorted(set(good))))} Gb/s"


def _firmware(context: Context) -> str:
    found, declared = _found(context), context.options.firmware
    wrong, unknown, strange = [], [], []
    for hca in _cards(context):
        there = found.get(hca.name)
        if there is None:
            wrong.append(f"{_rails(context, hca)} is missing")
        elif there.board is None or there.firmware is None:
            unknown.append(hca.name)
        elif there.board not in declared:
            strange.append(f"{hca.name} is a {there.board}")
        elif there.firmware != declared[there.board]:
            wrong.append(f"{hca.name} ({there.board}) has {there.firmware}, not {declared[there.board]}")
    _report(wrong, unknown, "do not report their board and firmware")
    if strange:
        raise Warned(f"no firmware is declared for these boards: {', '.join(strange)}")
    return ", ".join(f"{board} {version}" for board, version in declared.items())


def _soft(context: Context) -> str:
    wrong, good = [], []
    for hca in context.options.hcas(context.cluster, context.node):
        if hca.pci is not None:
            continue
        runs(context, texts.soft_unit(hca.name))
        there = context.fact(Answer, texts.soft_read(hca.name), may_be_empty=True)
        if there is None and hca.name in _found(context):
            raise Undetermined(f"rdma link does not report the interface of {hca.name}")
        if there is None:
            wrong.append(f"{hca.name} is missing")
        elif there != hca.netdev:
            wrong.append(f"{hca.name} is made of {there}, not {hca.netdev}")
        good.append(f"{hca.name} of {there}")
    if wrong:
        fail("; ".join(wrong))
    return ", ".join(good)


def _modules(context: Context) -> str:
    loaded = loaded_modules(context)
    missing = []
    for module in texts.modules(context.cluster, context.node, context.options):
        # part of the kernel itself, it is not in /proc/modules
        if module not in loaded and context.host.run("test -d %s", f"/sys/module/{module}").rc != 0:
            missing.append(module)
    if missing:
        fail(f"not loaded: {', '.join(missing)}")
    return "the RDMA modules are loaded"


def _session_memlock(context: Context) -> str:
    _can_raise(context.node)
    user = context.cluster.ssh.user
    printed = context.output("runuser -u %s -- prlimit --memlock --output=SOFT,HARD --noheadings", user)
    return _unlimited(f"a session of {user}", parse_memlock(printed))


def _slurmd_memlock(context: Context) -> str:
    _can_raise(context.node)
    pid = context.output("systemctl show --property=MainPID --value slurmd.service").strip()
    if pid == "0":
        fail("slurmd is not running")
    if not pid.isdecimal():
        raise Undetermined(f"systemctl printed no process of slurmd: {pid[:40]!r}")
    return _unlimited("slurmd", parse_memlock(context.output("cat %s", f"/proc/{pid}/limits")))


def _can_raise(node: Node) -> None:
    if node.platform is Platform.CONTAINER:
        raise NotInScope("a container's limits cannot exceed those of the process that started it")


def _unlimited(who: str, limit: tuple[str, str]) -> str:
    if limit != ("unlimited", "unlimited"):
        fail(f"{who} can lock {limit[0]} bytes of memory (at most {limit[1]}): RDMA needs unlimited")
    return f"{who} can lock unlimited memory"


def _has_cards(node: Node, options: RdmaOptions) -> bool:
    return any(device.pci is not None for device in options.of_node(node).values())


def _has_soft(node: Node, options: RdmaOptions) -> bool:
    return any(device.soft is not None for device in options.of_node(node).values())


def _has_any(node: Node, options: RdmaOptions) -> bool:
    return bool(options.of_node(node))


def _declares_firmware(node: Node, options: RdmaOptions) -> bool:
    return bool(options.firmware) and _has_cards(node, options)


def _declares_requests(node: Node, options: RdmaOptions) -> bool:
    return options.max_read_request is not None and _has_cards(node, options)


def _declares_interrupts(node: Node, options: RdmaOptions) -> bool:
    return options.interrupts is not None and _has_cards(node, options)


def _declares_managers(node: Node, options: RdmaOptions) -> bool:
    return any(sharp.port is not None for sharp in options.sharp.values())


def _runs_slurmd(node: Node, options: RdmaOptions) -> bool:
    manager = declared_on(node)
    return runs_jobs(node) and manager is not None and manager.agent == "slurmd"


CHECKS = (
    Check("the RDMA modules are loaded", _modules, needs=_MODULES),
    Check("udev rules for RDMA device names are as declared", _rules, needs=_MODULES),
    Check(
        "every declared RDMA device has its name at its PCI address",
        _devices,
        needs=_MODULES,
        applies=_has_cards,
    ),
    Check(
        "software RDMA devices are on their interfaces",
        _soft,
        needs=_MODULES,
        settle_seconds=30,
        applies=_has_soft,
    ),
    Check("every RDMA port is active", _ports, needs=_MODULES, settle_seconds=60, applies=_has_any),
    Check("every RDMA port has its network's link layer", _link_layers, needs=_MODULES, applies=_has_any),
    Check("every RDMA port runs at its SKU's speed", _rates, needs=_HARDWARE, applies=_has_cards),
    Check("HCA firmware is as declared", _firmware, needs=_HARDWARE, applies=_declares_firmware),
    Check(
        "PCIe read requests of HCAs are as declared",
        read_requests_claim,
        needs=_HARDWARE,
        applies=_declares_requests,
    ),
    Check(
        "HCA interrupts are on local CPUs",
        interrupts_claim,
        needs=_HARDWARE,
        applies=_declares_interrupts,
    ),
    Check(
        "InfiniBand ports have their declared partitions",
        pkeys,
        needs=_MODULES,
        settle_seconds=30,
        applies=_has_cards,
    ),
    Check("SHARP aggregation managers accept connections", reachable, applies=_declares_managers, live=True),
    Check("user sessions can lock unlimited memory", _session_memlock),
    Check("slurmd can lock unlimited memory", _slurmd_memlock, applies=_runs_slurmd),
)
