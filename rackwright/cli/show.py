"""rackwright show: the resolved cluster, and where each value comes from."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Annotated

import typer

from rackwright.cli.arguments import ClusterFile
from rackwright.cli.json_output import print_document
from rackwright.cli.lines import say
from rackwright.clusterfile.load import load
from rackwright.clusterfile.origins import Origins, Value
from rackwright.documents.nearest import suggest
from rackwright.errors import RackwrightError
from rackwright.lab.ports import ports
from rackwright.model.cluster import Cluster, Node


def show_command(
    file: ClusterFile,
    node: Annotated[str | None, typer.Option(metavar="NODE", help="Everything about this node.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
) -> None:
    """Show the resolved cluster: ranges expanded, defaults filled in, each value with its origin.

    Without --node: the settings of the whole cluster and a line for each node. The JSON has
    `file`, `node` (a name or null), `values` (each with `path`, `value` and `origin`,
    which has `kind`, `text` and `line`) and, without --node, `nodes`, the names, and `details`: of each
    node, what a tool needs to make a machine for it (vagrant/Vagrantfile does).
    """
    loaded = load(file)
    origins = Origins(loaded)
    cluster = loaded.cluster
    if node is not None and node not in cluster.by_name:
        raise RackwrightError(
            f"{file} declares no node {node}.", hint=suggest(node, cluster.by_name, what="nodes")
        )
    values = list(origins.cluster_values() if node is None else origins.node_values(cluster.by_name[node]))
    if as_json:
        content: dict[str, object] = {"file": str(file), "node": node}
        content["values"] = [asdict(value) for value in values]
        if node is None:
            content["nodes"] = list(cluster.by_name)
            content["details"] = [_details(cluster, each) for each in cluster.nodes]
        print_document("show", content)
        return
    say("\n".join(_table(_row(value) for value in values)))
    if node is None:
        say("\n" + "\n".join(_table(_nodes(cluster))))


def _details(cluster: Cluster, node: Node) -> dict[str, object]:
    return {
        "name": node.name,
        "roles": sorted(node.roles),
        "primary": node.primary,
        "platform": node.platform,
        "os": node.os.id,
        "lab": None if node.lab is None else node.lab.model_dump(),
        "topology": {
            "sockets": node.sku.sockets,
            "cores_per_socket": node.sku.cores_per_socket,
            "threads_per_core": node.sku.threads_per_core,
        },
        "disks": [{"size_gb": drive.size_gb} for drive in node.sku.nvme for _ in range(drive.count)],
        "ports": [asdict(port) for port in ports(cluster, node)],
    }


def _row(value: Value) -> tuple[str, ...]:
    shown = value.value if isinstance(value.value, str) else json.dumps(value.value)
    return value.path, shown, f"# {value.origin.text}"


def _nodes(cluster: Cluster) -> Iterable[tuple[str, ...]]:
    yield "NODE", "ROLES", "ADDRESS", "SKU", "OS", "PLATFORM", "RACK", "SWITCH"
    for node in cluster.nodes:
        roles = ",".join(sorted(node.roles)) + (" (primary)" if node.primary else "")
        rack = (
            "-"
            if node.rack is None
            else node.rack + (f":{node.position}" if node.position is not None else "")
        )
        address = str(cluster.management_address(node))
        yield node.name, roles, address, node.sku.name, node.os.id, node.platform, rack, node.switch or "-"


def _table(rows: Iterable[tuple[str, ...]]) -> Iterable[str]:
    """Rows as aligned lines; a cell that is far too wide does not push the others away."""
    listed = list(rows)
    widths = [min(44, max(len(cell) for cell in column)) for column in zip(*listed, strict=True)]
    for row in listed:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
