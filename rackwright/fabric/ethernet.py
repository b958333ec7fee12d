"""Asks every node of an Ethernet fabric what lldpd hears on its ports: one execution each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rackwright.boundary import Refused
from rackwright.errors import ConnectionFailed
from rackwright.fabric import lldp
from rackwright.fabric.discovered import Discovery
from rackwright.fabric.identify import Names
from rackwright.fabric.sections import script, sections
from rackwright.model.cluster import Node
from rackwright.model.fabric import Fabric
from rackwright.ssh import RootShell
from rackwright.ssh.side_by_side import side_by_side

AT_ONCE = 64
TOOL_SECONDS = 15
SECONDS = 60
_SCRIPT = script({"lldp": lldp.COMMAND, "addresses": lldp.INTERFACES, "states": lldp.STATES}, TOOL_SECONDS)


def ask_ethernet(
    fabric: Fabric, nodes: Sequence[Node], declared: Names, shell: RootShell
) -> tuple[tuple[str, ...], Discovery, Names]:
    """The nodes asked, what they found, and the rails of their interfaces.

    An interface has the rail that a role declares, else that of the declared address on it.
    """
    with side_by_side(min(AT_ONCE, len(nodes))) as executor:
        answers = list(executor.map(lambda node: _ask(fabric, node, shell), nodes))
    found = Discovery().joined(discovery for discovery, _ in answers)
    rails = {key: rail for _, by_address in answers for key, rail in by_address.items()}
    return tuple(node.name for node in nodes), found, replace(declared, rails={**rails, **declared.rails})


def _ask(fabric: Fabric, node: Node, shell: RootShell) -> tuple[Discovery, dict[tuple[str, str], int]]:
    try:
        answer = shell.run(node.name, _SCRIPT, timeout=SECONDS)
    except ConnectionFailed as error:
        return Discovery(silent={node.name: error.message.rstrip(".")}), {}
    return read_answer(fabric, node, answer.stdout)


def read_answer(fabric: Fabric, node: Node, text: str) -> tuple[Discovery, dict[tuple[str, str], int]]:
    """What a node's answer says: its neighbours, and the rail of each interface by its address."""
    parts = sections(text)
    for name, tool, package in (
        ("lldp", "lldpcli", "lldpd; the role lldp installs it"),
        ("addresses", "ip", "iproute2"),
        ("states", "sh", "coreutils"),
    ):
        if name not in parts:
            return Discovery(silent={node.name: f"{tool} printed nothing that can be used"}), {}
        if (problem := parts[name].problem(tool, package)) is not None:
            return Discovery(silent={node.name: problem}), {}
    try:
        neighbours = lldp.parse_neighbours(parts["lldp"].text)
        addresses = lldp.addresses_of(parts["addresses"].text)
    except Refused as error:
        return Discovery(silent={node.name: f"its answer cannot be used: {error}"}), {}
    states, speeds = lldp.states_of(parts["states"].text)
    own = {entry.address: entry.rail for entry in node.addresses if entry.network == fabric.network}
    rails = {
        (node.name, interface): own[address] for address, interface in addresses.items() if address in own
    }
    return lldp.of_node(node.name, neighbours, states, speeds), rails
