"""Reads a whole InfiniBand fabric through one node, and the GUIDs and firmware of its devices from each node."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

from rackwright.errors import ConnectionFailed
from rackwright.fabric import bit_errors
from rackwright.fabric.discovered import Discovery
from rackwright.fabric.identify import Names, identify
from rackwright.fabric.infiniband import (
    parse_firmware,
    parse_iblinkinfo,
    parse_ibnetdiscover,
    parse_ibqueryerrors,
)
from rackwright.fabric.places import hcas_of
from rackwright.fabric.sections import Section, script, sections
from rackwright.model.cluster import Cluster, Node
from rackwright.model.fabric import Fabric, NodePort
from rackwright.model.hcas import RunsSubnetManager
from rackwright.model.types import NodeRole
from rackwright.ssh import RootShell
from rackwright.ssh.side_by_side import side_by_side

AT_ONCE = 64
TOOL_SECONDS = 240
"""A fabric of ten thousand ports is read in tens of seconds; a port that answers nothing costs a timeout each."""
SECONDS = 3 * TOOL_SECONDS + 60
DEVICES_SECONDS = 60
PACKAGE = "infiniband-diags"
_TOOLS = ("ibnetdiscover", "iblinkinfo", "ibqueryerrors")
DEVICES = """\
for path in /sys/class/infiniband/*; do
    [ -e "$path/node_guid" ] || continue
    printf '%s' "${path##*/}"
    for file in node_guid fw_ver board_id; do
        printf ' %s' "$(cat "$path/$file" 2>/dev/null || echo -)"
    done
    echo
done
"""
"""Name, node GUID, firmware and PSID of each RDMA device (Documentation/ABI/stable/sysfs-class-infiniband)."""
VENDSTAT = "vendstat"
_DEVICE_LINE = re.compile(
    r"([A-Za-z0-9_]{1,63}) ([0-9a-f]{4}(?::[0-9a-f]{4}){3}) ([A-Za-z0-9._-]{1,40}) ([A-Za-z0-9._-]{1,40})"
)


def ask_infiniband(
    cluster: Cluster, fabric: Fabric, members: Sequence[Node], declared: Names, shell: RootShell
) -> tuple[tuple[str, ...], Discovery, Names]:
    """The nodes asked, what was found, and whose each GUID is.

    Of each subnet the first way in that answers and has a link is asked for all of it; one execution.
    """
    tried: list[str] = []
    discovery = Discovery()
    for switches in fabric.subnets:
        there = partial(_is_of, fabric, declared, cluster, frozenset(switches))
        asked, found = _ask_one(_ways_in(cluster, fabric, members, switches), shell, there)
        tried += [name for name in asked if name not in tried]
        if not found.links:
            found = replace(found, unread_switches=frozenset(switches))
        discovery = discovery.joined((found,))
    with side_by_side(min(AT_ONCE, len(members))) as executor:
        answers = list(executor.map(lambda node: _own_devices(cluster, fabric, node, shell), members))
    own = {guid: device for answer, _ in answers for guid, device in answer.items()}
    rates = {port: rate for _, answer in answers for port, rate in answer.items()}
    devices = dict(discovery.devices)
    for guid, device in own.items():
        if guid in devices:
            devices[guid] = replace(devices[guid], model=device.psid, firmware=device.firmware)
    names = replace(declared, guids={guid: device.port for guid, device in own.items()})
    return tuple(tried), replace(discovery, devices=devices, bit_error_rates=rates), names


@dataclass(frozen=True, slots=True)
class _WayIn:
    """A node to ask about a subnet, through one of its devices."""

    node: str
    device: str = ""
    """Options of infiniband-diags; empty: the first active port, which is right where all ports are in one subnet."""
    firmware: bool = False
    """Whether switches are asked for theirs."""

    @property
    def script(self) -> str:
        commands = {tool: f"{tool}{self.device}" for tool in _TOOLS}
        if self.firmware:
            commands[VENDSTAT] = switch_firmware(self.device)
        return script(commands, TOOL_SECONDS)


def switch_firmware(device: str = "") -> str:
    """Shell that prints `switch GUID VERSION` for each switch; without a version where it does not answer.

    vendstat asks by NVIDIA's general information, which no other maker's switch has (infiniband-diags, vendstat.c).
    """
    return (
        f"command -v {VENDSTAT} >/dev/null || exit 127; ibswitches{device} | "
        "sed -n 's/^Switch[^0]*0x\\([0-9a-f]*\\) ports .* lid \\([0-9]*\\) .*/\\1 \\2/p' | while read -r guid lid; do "
        f'echo "switch $guid $({VENDSTAT}{device} -t 500 -N "$lid" 2>/dev/null | sed -n \'s/^fw_version: *//p\')"; done'
    )


def _ways_in(
    cluster: Cluster, fabric: Fabric, members: Sequence[Node], switches: Collection[str]
) -> Iterator[_WayIn]:
    firmware = any(switch.firmware is not None for switch in fabric.switches.values())
    if len(fabric.subnets) == 1:
        yield from (_WayIn(node.name, firmware=firmware) for node in candidates(cluster, members))
        return
    ports = {port for port, leaf in fabric.leaf_of.items() if leaf.switch in switches}
    devices = {
        node.name: [
            hca for hca in hcas_of(cluster, node, fabric.network) if NodePort(node.name, hca.rail) in ports
        ]
        for node in members
    }
    for node in candidates(cluster, [node for node in members if devices[node.name]]):
        for hca in devices[node.name]:
            yield _WayIn(node.name, f" -C {hca.name} -P {hca.port}", firmware)


def _is_of(
    fabric: Fabric, names: Names, cluster: Cluster, switches: frozenset[str], found: Discovery
) -> bool:
    """Whether this is the subnet of these switches: a cable in the wrong leaf may lead into another subnet."""
    if len(fabric.subnets) == 1:
        return bool(found.links)
    return not switches.isdisjoint(identify(fabric, found, names, cluster.by_name).seen)


def _ask_one(
    ways: Iterable[_WayIn], shell: RootShell, there: Callable[[Discovery], bool]
) -> tuple[list[str], Discovery]:
    """Query nodes one by one until one is in the subnet; else use any that has a link, else give the reasons."""
    tried: list[str] = []
    unread: list[str] = []
    elsewhere: Discovery | None = None
    for way in ways:
        tried.append(way.node)
        try:
            answer = shell.run(way.node, way.script, timeout=SECONDS)
        except ConnectionFailed as error:
            unread.append(f"{way.node}: {error.message.rstrip('.')}")
            continue
        discovery = read_fabric(way.node, sections(answer.stdout))
        if there(discovery):
            return tried, discovery
        if discovery.links:
            elsewhere = elsewhere or discovery
        else:
            unread += discovery.unread[:1]  # without a link, no other tool can report more
    if elsewhere is not None:
        return tried, elsewhere
    return tried, Discovery(unread=tuple(unread) or ("no node has a declared RDMA device on this subnet",))


def candidates(cluster: Cluster, members: Sequence[Node], most: int = 4) -> list[Node]:
    """Nodes to ask: those that run a subnet manager, heads and others with a port, and some workers."""

    def rank(node: Node) -> tuple[bool, bool]:
        return node.offers(RunsSubnetManager) is None, node.holds(NodeRole.WORKER)

    return sorted(members, key=rank)[:most]


def read_fabric(node: str, parts: dict[str, Section]) -> Discovery:
    """What the tools on a node printed; each that could not be used is named."""
    unread = []
    for tool in _TOOLS:
        if tool not in parts:
            unread.append(f"{node}: {tool} printed nothing that can be used")
        elif (problem := parts[tool].problem(tool, PACKAGE)) is not None and not _found_errors(
            tool, parts[tool]
        ):
            unread.append(f"{node}: {problem}")
    failed = {tool for tool in _TOOLS if any(f" {tool} " in f" {text} " for text in unread)}
    found = Discovery()
    if "ibnetdiscover" not in failed:
        found = parse_ibnetdiscover(parts["ibnetdiscover"].text)
        found = replace(found, unread=tuple(f"{node}: {text}" for text in found.unread))
    if "iblinkinfo" not in failed:
        ports = parse_iblinkinfo(parts["iblinkinfo"].text)
        more = (f"{node}: {text}" for text in ports.unread)
        found = replace(found, health={**found.health, **ports.health}, unread=(*found.unread, *more))
    if "ibqueryerrors" not in failed:
        health = dict(found.health)
        for port, counted in parse_ibqueryerrors(parts["ibqueryerrors"].text).items():
            state = health[port].state if port in health else None
            health[port] = replace(counted, state=state)
        found = replace(found, health=health)
    if VENDSTAT in parts:
        if (problem := parts[VENDSTAT].problem(VENDSTAT, PACKAGE)) is not None:
            unread.append(f"{node}: {problem}")
        versions = parse_firmware(parts[VENDSTAT].text)
        devices = {
            guid: replace(device, firmware=versions.get(guid, device.firmware))
            for guid, device in found.devices.items()
        }
        found = replace(found, devices=devices)
    return replace(found, unread=(*found.unread, *unread))


def _found_errors(tool: str, part: Section) -> bool:
    """Whether the status only means that the tool found errors (ibqueryerrors(8))."""
    return tool == "ibqueryerrors" and part.status == 1 and "GUID" in part.text


@dataclass(frozen=True, slots=True)
class OwnDevice:
    """A declared device as its node reports it."""

    port: NodePort
    firmware: str | None
    psid: str | None


def _own_devices(
    cluster: Cluster, fabric: Fabric, node: Node, shell: RootShell
) -> tuple[dict[str, OwnDevice], dict[NodePort, float]]:
    """The declared devices of a node by their GUIDs, and its bit error rates; a node that does not answer has none."""
    hcas = hcas_of(cluster, node, fabric.network)
    if not hcas:
        return {}, {}
    rails = {hca.name: hca.rail for hca in hcas}
    asked = bit_errors.command(hcas) if fabric.max_ber is not None else ""
    try:
        answer = shell.run(node.name, DEVICES + asked, timeout=DEVICES_SECONDS)
    except ConnectionFailed:
        return {}, {}
    rates = bit_errors.parse(answer.stdout)
    by_port = {NodePort(node.name, rails[name]): rate for name, rate in rates.items() if name in rails}
    return read_devices(node.name, rails, answer.stdout), by_port


def read_devices(node: str, rails: dict[str, int], text: str) -> dict[str, OwnDevice]:
    """Declared devices by GUID, of lines such as `mlx5_rail0 e8eb:d303:00a1:b2c3 28.43.2026 MT_0000000838`."""
    found = {}
    for line in text.splitlines():
        match = _DEVICE_LINE.fullmatch(line.strip())
        if match is not None and match[1] in rails:
            firmware, psid = (value if value != "-" else None for value in match.group(3, 4))
            found[match[2].replace(":", "")] = OwnDevice(NodePort(node, rails[match[1]]), firmware, psid)
    return found
