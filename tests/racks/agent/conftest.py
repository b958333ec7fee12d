"""The wire, the image and the agent of machines under qemu."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.image.build import build, order
from rackwright.install import agent_image
from tests.racks.agent import wire
from tests.racks.agent.bench import CLUSTER, RACK, VLAN, Bench


@pytest.fixture(scope="session")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """root.tar.zst of a node whose disks are a mirror."""
    folder = tmp_path_factory.mktemp("root")
    (folder / "cluster.yaml").write_text(CLUSTER)
    cluster = load_cluster(folder / "cluster.yaml")
    built = build(order(cluster, cluster.nodes, "root", 16), folder / "image", print)
    assert "mdadm" in {package.name for package in built.packages}
    return folder / "image/root.tar.zst"


@pytest.fixture(scope="session")
def agent() -> Path:
    """The agent image."""
    return agent_image.ensure(print)


@pytest.fixture
def bench(tmp_path: Path, agent: Path, root: Path) -> Iterator[Bench]:
    """A wire with a head."""
    yield from _bench(tmp_path, agent, root, None)


@pytest.fixture
def tagged(tmp_path: Path, agent: Path, root: Path) -> Iterator[Bench]:
    """The same in a VLAN, with an LACP bundle for the machine."""
    yield from _bench(tmp_path, agent, root, VLAN)


def _bench(folder: Path, agent: Path, root: Path, vlan: int | None) -> Iterator[Bench]:
    with wire.wire(RACK, vlan=vlan) as namespace:
        made = Bench(folder, namespace, agent, root)
        yield made
        made.close()
    assert not wire.exists(RACK)
