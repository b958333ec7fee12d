"""The declared cabling: spines, and leaves by rail."""

from __future__ import annotations

from collections import Counter, defaultdict

from rackwright.drawing.model import Net, Row, Switch
from rackwright.fabric.shown import SwitchLine, switch_lines
from rackwright.model.cluster import Cluster
from rackwright.model.fabric import Fabric
from rackwright.model.ranges import fold
from rackwright.model.types import LinkKind

_KINDS = {
    LinkKind.ETHERNET: "Ethernet",
    LinkKind.INFINIBAND: "InfiniBand",
    LinkKind.ROCE: "RoCE",
    LinkKind.SPECTRUM_X: "Spectrum-X",
    LinkKind.IWARP: "iWARP",
    LinkKind.EFA: "EFA",
}
COMPARE = "As declared; `rackwright fabric check` compares it with the cables that are there."


def nets_of(cluster: Cluster) -> tuple[Net, ...]:
    """One for each declared fabric."""
    return tuple(_net(fabric) for fabric in cluster.fabrics.values())


def _net(fabric: Fabric) -> Net:
    lines = switch_lines(fabric)
    by_rails: defaultdict[tuple[int, ...], list[Switch]] = defaultdict(list)
    for line in lines:
        if line.level == "leaf":
            by_rails[line.rails].append(_leaf(line))
    spines = tuple(_spine(line) for line in lines if line.level == "spine")
    links: Counter[tuple[str, str]] = Counter()
    for line in lines:
        if line.level == "leaf":
            for other, ports in line.others.items():
                links[line.name, other] += len(ports)
    count = len(fabric.cables)
    return Net(
        title=f"Network {fabric.network}: {_KINDS[fabric.kind]}, {len(fabric.leaves)} leaves, {len(spines)} spines, "
        f"{count} cables",
        note=COMPARE,
        spines=Row("spines", spines),
        leaves=tuple(Row(rails_text(rails), tuple(found)) for rails, found in sorted(by_rails.items())),
        links=dict(links),
    )


def _leaf(line: SwitchLine) -> Switch:
    uplinks = sum(map(len, line.others.values()))
    nodes = f"{len(line.nodes)} node{'' if len(line.nodes) == 1 else 's'}"
    return Switch(
        line.name,
        f"{rails_text(line.rails)}, {line.cables} cables" if line.rails else f"{line.cables} cables",
        line.cables,
        (
            f"{rails_text(line.rails)}: {len(line.node_ports)} cables to {nodes}, {uplinks} to spines",
            fold(line.nodes) if line.nodes else "no node",
        ),
    )


def _spine(line: SwitchLine) -> Switch:
    return Switch(
        line.name,
        f"{line.cables} cables",
        line.cables,
        (f"{line.cables} cables to {len(line.others)} leaves",),
    )


def rails_text(rails: tuple[int, ...]) -> str:
    """E.g. `rail 3`, `rails 0-7`; `no rail` for a leaf without a node."""
    if not rails:
        return "no rail"
    if len(rails) == 1:
        return f"rail {rails[0]}"
    whole = rails == tuple(range(rails[0], rails[-1] + 1))
    return f"rails {rails[0]}-{rails[-1]}" if whole else f"rails {', '.join(map(str, rails))}"
