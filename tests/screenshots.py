"""Draws the pages of docs/images again: python -m tests.screenshots [--out docs/images] [--only NAME]

The clusters and what is known of their nodes are invented here; the pages are what `rackwright map` and `rackwright accept`
write. Needs chromium (or chrome): without it the pages are written, and a message reports that no picture was taken.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from rackwright.accept.write import html as report_page
from rackwright.catalog.read import catalogue
from rackwright.clusterfile.load import load_cluster
from rackwright.clustermap.picture import picture
from rackwright.drawing.page import html
from rackwright.drift.states import State
from rackwright.live.facts import Absent, Unknown
from rackwright.live.findings import Failure, FiringAlert, LastDrift, LastHealth
from rackwright.live.node import Live, LiveNode
from rackwright.model.cluster import Cluster, Node
from rackwright.model.fabric import Cable, Fabric, NodePort, SwitchPort
from rackwright.model.types import LinkKind, NodeRole
from rackwright.workload.slurm.output import node_state
from tests.factories import make_cluster, make_network, make_node, make_sku
from tests.unit.accept.sample import lab_report

AT = 1_795_824_000.0
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
SERVER = make_sku("cpu-64c-256g", rack_units=1, power_watts=800)
PER_RACK, RAILS, UNIT = 4, 8, 32


def small() -> Cluster:
    """Eight nodes in two racks."""
    dgx = catalogue()["dgx-h100"]
    heads = [
        make_node(f"head{n}", n, NodeRole.HEAD, sku=SERVER, rack="a1", position=31 + n, primary=n == 1)
        for n in (1, 2)
    ]
    login = make_node("login1", 9, NodeRole.LOGIN, sku=SERVER, rack="a2", position=32)
    gpus = [
        make_node(f"gpu{n}", 10 + n, sku=dgx, rack="a1" if n < 4 else "a2", position=1 + (n - 1) % 3 * 10)
        for n in range(1, 6)
    ]
    return make_cluster(*heads, login, *gpus, name="atlas")


def big(count: int = 1000) -> Cluster:
    """`count` nodes, heads among them, four in a rack, with eight rails and a leaf for each rail of 32 nodes."""
    dgx, wide = catalogue()["dgx-h100"], {"management": make_network("management", "10.0.0.0/16")}
    heads = [
        make_node(
            f"head{n}", f"10.0.255.{n}", NodeRole.HEAD, sku=SERVER, rack="m1", position=30 + n, primary=n == 1
        )
        for n in (1, 2)
    ]
    gpus = [
        make_node(
            f"gpu{n + 1:04}",
            f"10.0.{n // 250}.{n % 250 + 1}",
            sku=dgx,
            rack=f"r{n // PER_RACK + 1:03}",
            position=1 + n % PER_RACK * 10,
        )
        for n in range(count - len(heads))
    ]
    return make_cluster(*heads, *gpus, name="colossus", networks=wide, fabrics={"fabric": _fabric(gpus)})


def _fabric(nodes: list[Node], spines: int = 32) -> Fabric:
    units = range((len(nodes) + UNIT - 1) // UNIT)
    leaf = {(unit, rail): f"su{unit + 1}-leaf{rail + 1}" for unit in units for rail in range(RAILS)}
    down = [
        Cable(NodePort(node.name, rail), SwitchPort(leaf[n // UNIT, rail], n % UNIT + 1))
        for n, node in enumerate(nodes)
        for rail in range(RAILS)
    ]
    up = [
        Cable(SwitchPort(name, 33 + spine), SwitchPort(f"spine{spine + 1:02}", n + 1))
        for n, name in enumerate(leaf.values())
        for spine in range(spines)
    ]
    names = tuple(f"spine{n + 1:02}" for n in range(spines))
    return Fabric("fabric", LinkKind.INFINIBAND, RAILS, tuple(leaf.values()), names, (*down, *up))


def live_of(cluster: Cluster, every: int = 1) -> Live:
    """Every kind of finding, spread over the workers; `every`: the larger, the fewer."""
    workers = [node for node in cluster.nodes if node.holds(NodeRole.WORKER)]
    wrong = dict(zip((node.name for node in workers[1::every]), _wrongs(len(workers)), strict=False))
    nodes = {}
    for n, node in enumerate(cluster.nodes):
        runs_jobs = node.holds(NodeRole.WORKER)
        facts = {
            "scheduler": node_state("IDLE" if n % 7 == 3 else "ALLOCATED")
            if runs_jobs
            else Absent("it runs no jobs"),
            "health": LastHealth(AT - 90, 90, 84) if runs_jobs else Absent("no health check runs on it"),
            "drift": LastDrift(State.IN_SYNC, AT - 600, 600, scheduled=True),
            "alerts": (),
            **wrong.get(node.name, {}),
        }
        nodes[node.name] = LiveNode(node.name, **facts)  # type: ignore[arg-type]
    others = (FiringAlert("LeafUplinksDown", "warning", {"leaf": "su1-leaf3", "down": "2"}),)
    return Live(cluster.name, AT, 4.2, nodes, others)


def _wrongs(count: int) -> Iterator[dict[str, object]]:
    link = Failure("ib-link", "FAIL", "drain", "mlx5_4 port 1 is Down; declared Active at 400 Gb/s")
    gpu = Failure(
        "gpu-count", "FAIL", "reboot", "nvidia-smi lists 7 of 8 declared GPUs; 0000:9b:00.0 is missing"
    )
    kinds: tuple[dict[str, object], ...] = (
        {
            "scheduler": node_state("ALLOCATED"),
            "alerts": (FiringAlert("GpuMemoryErrors", "critical", {"node": "x", "gpu": "5"}),),
            "health": LastHealth(AT - 60, 60, 84, (gpu,)),
        },
        {
            "scheduler": node_state("IDLE+DRAIN", "rackwright-health: ib-link FAIL drain", "root@2026-11-28T00:41:10"),
            "health": LastHealth(AT - 60, 60, 84, (link,)),
        },
        {"drift": LastDrift(State.DRIFTED, AT - 600, 600, scheduled=True)},
        {"health": Unknown("Cannot connect: no answer within 10 s"), "drift": Unknown("it was not reached")},
        {"scheduler": node_state("IDLE+DRAIN", "fan tray on order, ticket 4711", "ada@2026-11-27T16:02:44")},
        {"scheduler": node_state("DOWN*", "Not responding", "slurm@2026-11-28T00:12:09"), "health": Unknown("no route to host")},
        {"alerts": (FiringAlert("DiskWearsOut", "warning", {"node": "x", "device": "nvme3"}),)},
    )  # fmt: skip
    for n in range(count):
        yield kinds[n % len(kinds)]


@dataclass(frozen=True)
class Shot:
    """A page and how it is photographed."""

    name: str
    width: int
    height: int
    page: Callable[[], str]
    theme: str = "light"


def page_of(cluster: Cluster, live: Live | None = None) -> str:
    return html(picture(cluster, live))


def superpod() -> Cluster:
    return load_cluster(Path("inventory/example-dgx-h100.yaml"), locked=False)


def _big() -> str:
    cluster = big()
    return page_of(cluster, live_of(cluster, every=17))


SHOTS = (
    Shot("map-8-nodes", 900, 1180, lambda: page_of(small(), live_of(small()))),
    Shot("map-superpod", 1440, 1280, lambda: page_of(superpod())),
    Shot("map-1000-nodes", 1640, 1330, _big, theme="dark"),
    Shot("report", 1000, 1500, lambda: report_page(*lab_report())),
)


def take(shot: Shot, out: Path, browser: str | None) -> Path:
    """The picture's path, or the page's where there is no browser."""
    text = shot.page().replace('<html lang="en">', f'<html lang="en" data-theme="{shot.theme}">', 1)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / f"{shot.name}.html"
        page.write_text(text, encoding="utf-8")
        if browser is None:
            return Path(shutil.copy(page, out))
        picture_path = out / f"{shot.name}.png"
        options = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars")
        size = f"--window-size={shot.width},{shot.height}"
        subprocess.run(
            [browser, *options, size, f"--screenshot={picture_path}", page.as_uri()],
            check=True,
            timeout=120,
            capture_output=True,
        )
        return picture_path


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("docs/images"))
    parser.add_argument("--only", choices=[shot.name for shot in SHOTS])
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        print(f"no browser ({', '.join(BROWSERS)}): pages are written, no picture is taken", file=sys.stderr)
    for shot in SHOTS:
        if asked.only in (None, shot.name):
            path = take(shot, asked.out, browser)
            print(f"{path}: {path.stat().st_size / 1000:.0f} kB")
    return 0 if browser is not None else 1


if __name__ == "__main__":
    sys.exit(main())
