"""A tiny cluster of one virtual machine, its image built once, and the roles of inventory/vm.yaml for the full tier."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.image.build import build, order
from rackwright.image.choice import alike
from rackwright.model.cluster import Cluster
from rackwright.model.selection import pick
from tests.racks.host_state import State
from tests.racks.image import machine
from tests.racks.image.boot_image import BootImage

TINY = """\
version: 1
cluster: {name: tiny, domain: lab.test}
defaults: {os: debian-13, platform: vm, sku: lab-node, lab: {cpus: 2, memory_mib: 2048}}
networks:
  management: {purpose: management, cidr: 10.77.0.0/24, gateway: 10.77.0.1}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
mirrors: {apt_proxy: "http://10.77.0.1:3142"}
nodes:
  - {nodes: head1, roles: [head], addresses: {management: 10.77.0.10}}
roles:
  munge: {uid: 441, gid: 442}
"""


@dataclass(frozen=True)
class Built:
    """An image, the output of the build, and the machine before it."""

    cluster: Cluster
    image: BootImage
    said: list[str]
    before: State
    seconds: float


def tiny(folder: Path, **replaced: str) -> Path:
    """A cluster file for one virtual machine."""
    text = TINY
    for old, new in replaced.items():
        text = text.replace(f"platform: {old}", f"platform: {new}")
    (folder / "tiny.yaml").write_text(text)
    return folder / "tiny.yaml"


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """The image of the tiny cluster's head, with a disk of 4 GiB."""
    folder = tmp_path_factory.mktemp("image")
    cluster = load_cluster(tiny(folder))
    before, said, start = machine.state(), [], time.monotonic()
    build(order(cluster, cluster.nodes, "disk", 4), folder / "head", said.append)
    return Built(cluster, BootImage(folder / "head", folder), said, before, time.monotonic() - start)


@pytest.fixture(scope="session")
def of_the_lab(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], BootImage]:
    """Builds the image of a node of inventory/vm.yaml, once each."""
    folder = tmp_path_factory.mktemp("lab-images")
    text = (Path(__file__).parents[3] / "inventory/vm.yaml").read_text()
    (folder / "vm.yaml").write_text(text)
    cluster = load_cluster(folder / "vm.yaml")
    images: dict[str, BootImage] = {}

    def of(name: str) -> BootImage:
        if name not in images:
            nodes = alike(cluster, pick(cluster, name))
            build(order(cluster, nodes, "disk", 16), folder / name, print)
            images[name] = BootImage(folder / name, folder)
        return images[name]

    return of
