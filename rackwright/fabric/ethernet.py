"""Reads lldpd's neighbours from every node of an Ethernet fabric, with one execution each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rackwright.boundary import Refused
from rackwright.errors import ConnectionFailed
from rackwright.fabric import bit_errors, lldp
from rackwright.fabric.discovered import Discovery
from rackwright.fabric.identify import Names
from rackwright.fabric.places import hcas_of
from rackwright.fabric.sections import script, sections
from rackwright.model.cluster import Cluster, Node
from rackwright.model.fabric import Fabric, NodePort
from rackwright.ssh import RootShell
from rackwright.ssh.side_by_side import side_by_side

AT_ONCE = 64
TOOL_SECONDS = 25
SECONDS = 120
_COMMANDS = {"lldp": lldp.COMMAND, "addresses": lldp.INTERFACES, "states": lldp.STATES}


def ask_ethernet(
    cluster: Cluster, fabric: Fabric, nodes: Sequence[Node], declared: Names, shell: RootShell
) -> tuple[tuple[str, ...], Discovery, Names]:
    """The nodes asked, what they found, and the rails of their interfaces.

    An interface has the rail that a role declares, else that of the declared address on it.
    """
    with side_by_side(min(AT_ONCE, len(nodes))) as executor:
        answers = list(executor.map(lambda node: _ask(cluster, fabric, node, shell), nodes))
    found = Discovery().joined(discovery for discovery, _ in answers)
    rails = {key: rail for _, by_address in answers for key, rail in by_address.items()}
    return tuple(node.name for node in nodes), found, replace(declared, rails={**rails, **declared.rails})


def _ask(
    cluster: Cluster, fabric: Fabric, node: Node, shell: RootShell
) -> tuple[Discovery, dict[tuple[str, str], int]]:
    hcas = hcas_of(cluster, node, fabric.network)
    asked = bit_errors.command(hcas) if fabric.max_ber is not None else ""
    commands = {**_COMMANDS, "rates": asked} if asked else _COMMANDS
    try:
        answer = shell.run(node.name, script(commands, TOOL_SECONDS), timeout=SECONDS)
    except ConnectionFailed as error:
        return Discovery(silent={node.name: error.message.rstrip(".")}), {}
    found, rails = read_answer(fabric, node, answer.stdout)
    rates = bit_errors.parse(parts["rates"].text) if "rates" in (parts := sections(answer.stdout)) else {}
    by_port = {NodePort(node.name, hca.rail): rates[hca.name] for hca in hcas if hca.name in rates}
    return replace(found, bit_error_rates=by_port), rails


def read_answer(fabric: Fabric, node: Node, text: str) -> tuple[Discovery, dict[tuple[str, str], int]]:
    """The neighbours in a node's answer, and the rail of each interface by its address."""
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
