"""Asks one node of an InfiniBand fabric for all of it, and each node for the GUIDs of its devices."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from rackwright.errors import ConnectionFailed
from rackwright.fabric.discovered import Discovery
from rackwright.fabric.identify import Names
from rackwright.fabric.infiniband import parse_iblinkinfo, parse_ibnetdiscover, parse_ibqueryerrors
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
GUID_SECONDS = 30
PACKAGE = "infiniband-diags"
_TOOLS = {"ibnetdiscover": "ibnetdiscover", "iblinkinfo": "iblinkinfo", "ibqueryerrors": "ibqueryerrors"}
GUIDS = 'for path in /sys/class/infiniband/*; do [ -e "$path/node_guid" ] || continue; printf "%s %s\\n" "${path##*/}" "$(cat "$path/node_guid")"; done'
_GUID_LINE = re.compile(r"([A-Za-z0-9_]{1,63}) ([0-9a-f]{4}(?::[0-9a-f]{4}){3})")


def ask_infiniband(
    cluster: Cluster, fabric: Fabric, members: Sequence[Node], declared: Names, shell: RootShell
) -> tuple[tuple[str, ...], Discovery, Names]:
    """The nodes asked, what was found, and whose each GUID is.

    The first of `candidates` that answers is asked for the whole fabric; one execution.
    """
    tried: list[str] = []
    discovery = Discovery(unread=("no node of the fabric could be asked",))
    for node in candidates(cluster, members):
        tried.append(node.name)
        try:
            answer = shell.run(node.name, script(_TOOLS, TOOL_SECONDS), timeout=SECONDS)
        except ConnectionFailed as error:
            discovery = Discovery(unread=(f"{node.name}: {error.message.rstrip('.')}",))
            continue
        discovery = read_fabric(node.name, sections(answer.stdout))
        if discovery.devices:
            break
    with side_by_side(min(AT_ONCE, len(members))) as executor:
        found = executor.map(lambda node: _guids(cluster, fabric, node, shell), members)
        guids = {guid: port for one in found for guid, port in one.items()}
    return tuple(tried), discovery, replace(declared, guids=guids)


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
    if "iblinkinfo" not in failed:
        ports = parse_iblinkinfo(parts["iblinkinfo"].text)
        found = replace(found, health={**found.health, **ports.health}, unread=(*found.unread, *ports.unread))
    if "ibqueryerrors" not in failed:
        health = dict(found.health)
        for port, counted in parse_ibqueryerrors(parts["ibqueryerrors"].text).items():
            state = health[port].state if port in health else None
            health[port] = replace(counted, state=state)
        found = replace(found, health=health)
    return replace(found, unread=(*found.unread, *unread))


def _found_errors(tool: str, part: Section) -> bool:
    """Whether the tool only says by its status that it found errors (ibqueryerrors(8))."""
    return tool == "ibqueryerrors" and part.status == 1 and "GUID" in part.text


def _guids(cluster: Cluster, fabric: Fabric, node: Node, shell: RootShell) -> dict[str, NodePort]:
    """Whose the GUIDs of a node's declared devices are; a node that does not answer has none."""
    rails = {hca.name: hca.rail for hca in hcas_of(cluster, node, fabric.network)}
    if not rails:
        return {}
    try:
        answer = shell.run(node.name, GUIDS, timeout=GUID_SECONDS)
    except ConnectionFailed:
        return {}
    return read_guids(node.name, rails, answer.stdout)


def read_guids(node: str, rails: dict[str, int], text: str) -> dict[str, NodePort]:
    """GUIDs of the devices that are declared, by what sysfs prints: `mlx5_rail0 e8eb:d303:00a1:b2c3`."""
    found = {}
    for line in text.splitlines():
        match = _GUID_LINE.fullmatch(line.strip())
        if match is not None and match[1] in rails:
            found[match[2].replace(":", "")] = NodePort(node, rails[match[1]])
    return found
