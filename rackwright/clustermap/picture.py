"""The whole picture of a cluster, and the same as plain data."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from rackwright import __version__
from rackwright.boundary import printable
from rackwright.clustermap.looks import DECLARED, LEVELS
from rackwright.clustermap.nets import nets_of
from rackwright.clustermap.racks import Face, power_of, racks_of, rooms_of
from rackwright.drawing.model import Look, Mark, Picture, Trouble
from rackwright.fabric.shown import switch_lines
from rackwright.live.findings import TEXT_MAX_CHARACTERS, FiringAlert, Reason
from rackwright.live.judge import QUIET, level_of
from rackwright.live.node import Live
from rackwright.model.cluster import Cluster, Node
from rackwright.model.fabric import Fabric
from rackwright.model.ranges import fold
from rackwright.model.types import NodeRole

KIND, VERSION = "rackwright.map", 1
NOT_COMPARED = (
    "Declared; not compared with the nodes. With --live, nodes are coloured by what is known of them now."
)
_LINES = 6
"""Reasons that hovering shows; the list below has all."""


def picture(cluster: Cluster, live: Live | None = None) -> Picture:
    """As declared; with `live`, every node has the look of its level."""
    troubles = [] if live is None else _troubles(cluster, live)
    faces = {} if live is None else _faces(live, troubles)
    racks = racks_of(cluster)
    heads = [node.name for node in cluster.holding(NodeRole.HEAD)]
    count = len([name for name in racks if name is not None])
    power = power_of(cluster.nodes).text
    parts = [_number(len(cluster.nodes), "node"), _number(count, "rack"), _number(len(heads), "head")]
    parts[-1] += f" ({fold(heads)}, primary {cluster.primary.name})"
    if power:
        parts.append(power)
    return Picture(
        title=f"{cluster.name}",
        subtitle=", ".join(parts),
        claim=NOT_COMPARED if live is None else _claim(live),
        notes=() if live is None else _notes(live),
        marks=_marks(cluster, live),
        rooms=rooms_of(cluster, faces),
        nets=nets_of(cluster),
        troubles=tuple(trouble for trouble, _ in troubles),
        others=() if live is None else tuple(_other(one) for one in live.alerts if one.severity not in QUIET),
        footer=(
            f"{cluster.path.name}, sha256 {cluster.sha256}. Drawn by rackwright {__version__}.",
            "Power is the most that a node of the SKU draws, as the catalogue or the cluster file has it; it is not measured.",
        ),
    )


def _claim(live: Live) -> str:
    when = datetime.fromtimestamp(live.at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    return f"As found at {when}, asked within {live.seconds:.1f} s."


def _notes(live: Live) -> tuple[str, ...]:
    silent = [f"{source.value} ({why})" for source, why in live.not_asked.items()]
    return (f"Not part of the colours: {'; '.join(silent)}.",) if silent else ()


def _marks(cluster: Cluster, live: Live | None) -> tuple[Mark, ...]:
    if live is None:
        return (Mark(*DECLARED, len(cluster.nodes)),)
    return tuple(Mark(*LEVELS[level], count) for level, count in live.counts.items())


def _troubles(cluster: Cluster, live: Live) -> list[tuple[Trouble, tuple[str, ...]]]:
    """Nodes with the same reasons as one entry, with their names; the worst first."""
    alike: defaultdict[tuple[Reason, ...], list[str]] = defaultdict(list)
    for name, node in live.nodes.items():
        if node.reasons:
            own = _own_words(cluster, name)
            alike[tuple(replace(one, text=own(one.text)) for one in node.reasons)].append(name)
    listed = sorted(alike.items(), key=lambda item: item[0][0].level.rank)
    found = []
    for number, (reasons, names) in enumerate(listed, 1):
        shown = LEVELS[reasons[0].level]
        exact = live.nodes[names[0]].reasons if len(names) == 1 else reasons
        lines = tuple((one.source.value, one.text) for one in exact)
        trouble = Trouble(f"w{number}", shown.look, shown.label, fold(names), len(names), lines)
        found.append((trouble, tuple(names)))
    return found


def _own_words(cluster: Cluster, name: str) -> Callable[[str], str]:
    """Replaces a node's name and address, by which the reasons of nodes differ that have the same fault."""
    address = str(cluster.management_address(cluster.by_name[name]))
    pattern = re.compile(rf"(?<![\w.-])(?:({re.escape(name)})|{re.escape(address)})(?![\w-]|\.\w)")
    return lambda text: pattern.sub(lambda found: "NODE" if found[1] else "ADDRESS", text)


def _faces(live: Live, troubles: list[tuple[Trouble, tuple[str, ...]]]) -> dict[str, Face]:
    anchors = {name: trouble.anchor for trouble, names in troubles for name in names}
    found = {}
    for name, node in live.nodes.items():
        shown = LEVELS[node.level]
        lines = tuple(f"{one.source.value}: {one.text}" for one in node.reasons[:_LINES])
        more = len(node.reasons) - len(lines)
        found[name] = Face(
            shown.look, shown.label, (*lines, *([f"and {more} more"] if more else ())), anchors.get(name, "")
        )
    return found


def _other(alert: FiringAlert) -> tuple[Look, str]:
    labels = ", ".join(
        f"{name} {value}" for name, value in sorted(alert.labels.items()) if name not in ("job", "instance")
    )
    text = f"{alert.name} ({alert.severity}){f': {labels}' if labels else ''}"
    return LEVELS[level_of(alert.severity)].look, printable(text, TEXT_MAX_CHARACTERS)


def document(cluster: Cluster, live: Live | None = None) -> dict[str, Any]:
    """The versioned document behind `--json`: racks, nodes and switches, and what is known of each node."""
    return {
        "kind": KIND,
        "version": VERSION,
        "cluster": cluster.name,
        "file": str(cluster.path),
        "sha256": cluster.sha256,
        "compared": live is not None,
        "racks": [
            {"rack": name, "power": _power_json(nodes), "nodes": [_node_json(node) for node in nodes]}
            for name, nodes in racks_of(cluster).items()
        ],
        "fabrics": [_fabric_json(fabric) for fabric in cluster.fabrics.values()],
        "live": None if live is None else live.to_json(),
    }


def _power_json(nodes: tuple[Node, ...]) -> Mapping[str, int]:
    power = power_of(nodes)
    return {"watts": power.watts, "nodes_with_a_figure": power.known, "nodes": power.nodes}


def _node_json(node: Node) -> dict[str, Any]:
    return {
        "node": node.name,
        "roles": sorted(role.value for role in node.roles),
        "primary": node.primary,
        "sku": node.sku.name,
        "power_watts": node.sku.power_watts,
        "position": node.position,
        "rack_units": node.sku.rack_units,
        "switches": list(node.switches),
    }


def _fabric_json(fabric: Fabric) -> dict[str, Any]:
    return {
        "network": fabric.network,
        "kind": fabric.kind.value,
        "rails": fabric.rails,
        "switches": [
            {
                "name": line.name,
                "level": line.level,
                "rails": list(line.rails),
                "nodes": list(line.nodes),
                "cables": line.cables,
                "cables_to": {other: len(ports) for other, ports in line.others.items()},
            }
            for line in switch_lines(fabric)
        ],
    }


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"
