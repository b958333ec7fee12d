"""The wire, the image and the agent of machines under qemu."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.image.build import build, order
from rackwright.install import agent_image
from tests.racks.agent import wire
from tests.racks.agent.bench import CLUSTER, RACK, Bench


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
    with wire.wire(RACK) as namespace:
        made = Bench(tmp_path, namespace, agent, root)
        yield made
        made.close()
    assert not wire.exists(RACK)
