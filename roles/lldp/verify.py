"""Checks of the lldp role: the daemon, its settings, and a neighbour on each cabled port."""

from __future__ import annotations

from functools import partial
from typing import Any

from rackwright.boundary import Refused
from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.files import as_rendered
from rackwright.claims.units import runs
from rackwright.fabric.lldp import COMMAND, neighbours_of
from rackwright.model.platforms import Capability
from rackwright.roles.lldp import texts
from rackwright.roles.lldp.options import LldpOptions, cabled_ports

_NEIGHBOURS = f"timeout 20 {COMMAND}"
_CONFIGURATION = "timeout 20 lldpcli -f json show configuration"


def named_neighbours(document: object) -> dict[str, list[str]]:
    """`lldpcli -f json show neighbors details`: `SYSTEM PORT` of every neighbour, by interface."""
    try:
        neighbours = neighbours_of(document)
    except Refused as error:
        raise Undetermined(f"the neighbours that lldpcli printed cannot be read: {error}") from error
    found: dict[str, list[str]] = {}
    for one in neighbours:
        found.setdefault(one.interface, []).append(f"{one.system or one.chassis} {one.port}")
    return found


def parse_configuration(document: Any) -> dict[str, str]:  # noqa: ANN401
    """`lldpcli -f json show configuration`: its values by name."""
    try:
        return {name: str(value) for name, value in document["configuration"]["config"].items()}
    except (KeyError, TypeError, AttributeError) as error:
        raise Undetermined(f"lldpcli printed no configuration that can be read: {error!r}") from error


def _settings(context: CheckContext[LldpOptions]) -> str:
    node, options = context.node, context.options
    as_rendered(context, {texts.SETTINGS: texts.settings(context.cluster, node, options)})
    live = parse_configuration(context.json(_CONFIGURATION))
    wanted = {
        "hostname": node.name,
        "tx-delay": str(options.interval_seconds),
        "lldp-portid-type": "ifname",
        "iface-pattern": options.pattern(context.cluster, node) or "(none)",
    }
    if unknown := [key for key in wanted if key not in live]:
        raise Undetermined(f"lldpcli does not print {', '.join(unknown)}")
    if wrong := [f"{key} {live[key]}, not {value}" for key, value in wanted.items() if live[key] != value]:
        fail(f"the running lldpd has {'; '.join(wrong)}")
    return f"announces {node.name} on {wanted['iface-pattern'].replace('(none)', 'every physical port')}"


def _agents(context: CheckContext[LldpOptions]) -> str:
    found = context.output("sh -c %s", texts.AGENTS_ON).strip()
    if not found:
        raise Undetermined("the node printed nothing about its firmware's LLDP agents")
    if found != "off":
        fail(f"the firmware of {', '.join(found.split())} consumes LLDP frames: its agent is on")
    return "no firmware agent is on"


def _neighbours(context: CheckContext[LldpOptions]) -> str:
    seen = named_neighbours(context.json(_NEIGHBOURS))
    ports = cabled_ports(context.cluster, context.node)
    silent = [port for port in ports if port.interface is not None and port.interface not in seen]
    if silent:
        fail("; ".join(f"{port} ({port.interface}): no neighbour, not {port.leaf}" for port in silent))
    if unnamed := [str(port) for port in ports if port.interface is None]:
        raise Undetermined(f"no role declares the interface of {', '.join(unnamed)}: see `roles.network`")
    if not ports:
        named = "; ".join(f"{port}: {' and '.join(ends)}" for port, ends in sorted(seen.items()))
        return f"no cable is declared; {named or 'no neighbour'}"
    return "; ".join(f"{port.interface}: {' and '.join(seen[port.interface or ''])}" for port in ports)


CHECKS = (
    Check("lldpd is running and enabled at boot", partial(runs, unit=texts.UNIT)),
    Check("lldpd has its declared settings", _settings, settle_seconds=10),
    Check(
        "no NIC firmware consumes LLDP frames",
        _agents,
        needs=frozenset({Capability.HARDWARE}),
        applies=lambda node, options: options.firmware_agent == "off",
    ),
    Check("every cabled Ethernet port of a fabric has a neighbour", _neighbours, settle_seconds=90),
)
