"""What the network role claims of a node's network."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.files import as_rendered
from rackwright.facts import rollback
from rackwright.facts.settings import Answer
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability
from rackwright.roles.network import shell, texts
from rackwright.roles.network.layout import Device, Layout, layout
from rackwright.roles.network.options import NetworkOptions

Context = CheckContext[NetworkOptions]
_NEEDS = frozenset({Capability.NETWORK_PORTS})


@dataclass(frozen=True)
class BondPort:
    """A port of a bond, in /proc/net/bonding."""

    name: str
    up: bool
    aggregator: str | None


@dataclass(frozen=True)
class BondState:
    """/proc/net/bonding/NAME."""

    mode: str
    hash: str | None
    lacp_rate: str | None
    active: str | None
    partner: str | None
    """MAC of the LACP partner; 00:00:00:00:00:00 where no partner answers."""
    ports: tuple[BondPort, ...]


def parse_bond(text: str) -> BondState:
    """Read /proc/net/bonding/NAME; Undetermined where it is not that."""
    head, *slaves = text.split("\nSlave Interface: ")
    mode = _value(head, "Bonding Mode")
    if mode is None:
        raise Undetermined(f"this is not the state of a bond: {text[:60]!r}")
    ports = tuple(
        BondPort(
            slave.split("\n", 1)[0].strip(),
            _value(slave, "MII Status") == "up",
            _value(slave, "Aggregator ID"),
        )
        for slave in slaves
    )
    return BondState(
        mode,
        _value(head, r"Transmit Hash Policy"),
        _value(head, "LACP rate"),
        _value(head, "Currently Active Slave"),
        _value(head, r"\s*Partner Mac Address"),
        ports,
    )


def _value(text: str, name: str) -> str | None:
    found = re.search(rf"^{name}: (.*)$", text, re.MULTILINE)
    return found[1].strip() if found else None


_MODES = {"802.3ad": "IEEE 802.3ad", "active-backup": "fault-tolerance (active-backup)"}
NO_PARTNER = "00:00:00:00:00:00"


def bond_faults(device: Device, state: BondState) -> list[str]:
    """What is not as declared, each naming the port."""
    assert device.bond is not None
    bond, name = device.bond, device.name
    wrong = []
    if not state.mode.startswith(_MODES[bond.mode]):
        wrong.append(f"{name} is {state.mode}, not {bond.mode}")
    there = {port.name: port for port in state.ports}
    wrong += [f"{port} is not in {name}" for port in bond.interfaces if port not in there]
    wrong += [f"{port.name} of {name} is down" for port in state.ports if not port.up]
    wrong += [f"{port} is in {name}, undeclared" for port in there if port not in bond.interfaces]
    if bond.mode == "802.3ad":
        if state.partner in (None, NO_PARTNER):
            wrong.append(f"no LACP partner answers on {name}: check the switch's port channel")
        elif len({port.aggregator for port in state.ports if port.up}) > 1:
            ids = ", ".join(f"{port.name} {port.aggregator}" for port in state.ports)
            wrong.append(f"the ports of {name} are in different aggregators ({ids}): check their cabling")
        if state.hash is None or not state.hash.startswith(f"{bond.hash} "):
            wrong.append(f"{name} has the transmit hash policy {state.hash}, not {bond.hash}")
        if state.lacp_rate != bond.lacp_rate:
            wrong.append(f"{name} has the LACP rate {state.lacp_rate}, not {bond.lacp_rate}")
    return wrong


def _layout(context: Context) -> Layout:
    return layout(context.cluster, context.node, context.options)


def _files(context: Context) -> str:
    files = texts.files(context.node, _layout(context))
    there = context.fact(Answer, texts.of_ours(), may_be_empty=True)
    stale = {path: None for path in (there or "").splitlines() if path not in files}
    wanted = {**files, **stale}
    return as_rendered(context, wanted, dict.fromkeys(wanted, texts.mode(context.node)))


def _in_force(context: Context) -> str:
    state = context.fact(Answer, shell.live(_layout(context)), may_be_empty=True)
    if state is None:
        raise Undetermined("the node printed nothing about its interfaces")
    if state != shell.IN_FORCE:
        fail("; ".join(state.splitlines()))
    return ", ".join(f"{one.address} on {one.device} ({one.label})" for one in _layout(context).carried)


def _links(context: Context) -> str:
    """Every device that something is declared on has a carrier."""
    printed = context.json("ip -j link show")
    flags = _flags(printed)
    wrong = []
    devices = _layout(context).devices
    for device in devices:
        if device.name not in flags:
            wrong.append(f"{device.name} is missing")
        elif "UP" not in flags[device.name]:
            wrong.append(f"{device.name} is switched off")
        elif "LOWER_UP" not in flags[device.name]:
            wrong.append(f"{device.name} has no link")
    if wrong:
        fail("; ".join(wrong))
    return f"{len(devices)} up"


def _flags(printed: Any) -> dict[str, list[str]]:  # noqa: ANN401 - JSON, unchecked until here
    try:
        return {entry["ifname"]: list(entry["flags"]) for entry in printed if entry}
    except (KeyError, TypeError) as error:
        raise Undetermined(f"`ip -j link show` did not print interfaces: {error!r}") from None


def _bonds(context: Context) -> str:
    wrong, good = [], []
    for device in _layout(context).virtual:
        if device.bond is None:
            continue
        state = parse_bond(context.output("cat %s", f"/proc/net/bonding/{device.name}"))
        wrong += bond_faults(device, state)
        active = f", {state.active} active" if state.active else ""
        good.append(f"{device.name}: {len(state.ports)} ports up{active}")
    if wrong:
        fail("; ".join(wrong))
    return ", ".join(good)


def _nothing_armed(context: Context) -> str:
    command = f"{rollback.pending(shell.KEY)} || echo none"
    state = context.output("sh -c %s", f"({command}) 2>/dev/null").strip()
    if state in ("armed", "restoring"):
        fail(f"a network change is {state}: neither confirmed nor rolled back yet")
    if state != "none":
        raise Undetermined(f"the state of the last change cannot be read: {state[:60]!r}")
    return "the last change is confirmed, or there was none"


def _declares(node: Node, options: NetworkOptions) -> bool:
    return bool(options.networks)


def _has_bonds(node: Node, options: NetworkOptions) -> bool:
    return bool(options.networks and options.bonds)


CHECKS = (
    Check("network configuration files are as declared", _files, needs=_NEEDS, applies=_declares),
    Check(
        "interfaces have their declared names, MTUs, VLANs, addresses and routes",
        _in_force,
        needs=_NEEDS,
        settle_seconds=30,
        applies=_declares,
    ),
    Check("every declared port has link", _links, needs=_NEEDS, settle_seconds=30, applies=_declares),
    Check("every bond has all its ports", _bonds, needs=_NEEDS, settle_seconds=30, applies=_has_bonds),
    Check("no network change is unconfirmed", _nothing_armed, needs=_NEEDS, applies=_declares),
)
