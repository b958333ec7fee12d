"""The document of `map`: racks, nodes and switches, and what is known of each node."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field

from rackwright.schemas.base import ClusterName, Document, Open, Part, Sha256


class Power(Part):
    """The most that the nodes of a rack draw."""

    watts: int
    nodes_with_a_figure: int
    nodes: int


class RackedNode(Part):
    """One node as declared."""

    node: str
    roles: tuple[str, ...]
    primary: bool
    sku: str
    power_watts: int | None
    position: int | None = Field(description="Lowest unit in the rack; null: not declared.")
    rack_units: int | None = Field(description="Height of the SKU; null: the catalogue has none.")
    switches: tuple[str, ...]


class Rack(Part):
    """One rack."""

    rack: str | None = Field(description="null: nodes without a declared rack.")
    power: Power
    nodes: tuple[RackedNode, ...]


class Switch(Part):
    """One declared switch."""

    name: str
    level: str
    rails: tuple[int, ...]
    nodes: tuple[str, ...]
    cables: int
    cables_to: dict[str, int] = Field(description="Number of cables to each other switch.")


class DrawnFabric(Part):
    """One fabric."""

    network: str
    kind: str
    rails: int
    switches: tuple[Switch, ...]


class LiveState(Part):
    """With `--live`: what the sources reported."""

    version: Literal[1]
    cluster: str = ClusterName
    at: float = Field(description="Unix time when the queries began.")
    seconds: float
    counts: dict[str, int] = Field(description="Number of nodes by level.")
    not_asked: dict[str, str] = Field(
        description="Sources that the cluster does not have, each with the reason."
    )
    alerts: tuple[Any, ...] = Field(description="Firing alerts about no single node.")
    nodes: tuple[Open, ...]


class Map(Document):
    """`map`: the declared racks and fabrics; with `--live` the state of each node."""

    kind: Literal["rackwright.map"]
    cluster: str = ClusterName
    file: str
    sha256: str = Sha256
    compared: bool = Field(description="Whether the nodes were asked (`--live`).")
    racks: tuple[Rack, ...]
    fabrics: tuple[DrawnFabric, ...]
    live: LiveState | None
