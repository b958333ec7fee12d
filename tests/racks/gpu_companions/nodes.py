"""What these nodes have beside the lab's: a fake driver, and NVIDIA's packages from a folder.

Everything else of the rack is tests.racks.site.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from rackwright.catalog.read import catalogue
from rackwright.lab import smi_xml
from rackwright.verify import verify
from tests.racks.site import Site

NODES = {"gpu1": "dgx-h100", "gb1": "dgx-gb200"}
LAYOUT = {"3g.40gb": 2}
_DECLARED = """\
version: 1
cluster: {name: "", domain: lab.test}
defaults: {os: debian-13, platform: container, lab: {cpus: 2, memory_mib: 1024}}
networks:
  management: {purpose: management, cidr: 10.118.0.0/24, gateway: 10.118.0.1}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
gpu_stack: {source: mirror, package_index: [repository/Packages], cuda: none, nccl: none}
nodes:
  - nodes: gpu1
    roles: [head, worker]
    sku: dgx-h100
    addresses: {management: 10.118.0.10}
  - nodes: gb1
    roles: [worker]
    sku: dgx-gb200
    rack: r1
    addresses: {management: 10.118.0.11}
roles:
  fabricmanager: {log_level: warning}
  imex: {}
  mig: {}
  dcgm: {}
  gdrcopy: {}
  gpudirect: {}
  nvidia_container_toolkit: {}
"""
_FAKE = "/var/lib/fake-gpus"


def declared() -> dict[str, Any]:
    """The content of the set's cluster file."""
    content: dict[str, Any] = yaml.safe_load(_DECLARED)
    lay_out(content, LAYOUT)
    return content


def lay_out(content: dict[str, Any], layout: dict[str, int]) -> None:
    """Declare this MIG layout for gpu1."""
    content["nodes"][0]["mig"] = layout


def verified(site: Site) -> dict[tuple[str, str, str], tuple[str, str]]:
    """(node, role, check) to (status, evidence)."""
    with site.here():
        report = verify(site.cluster)
    return {(one.node, one.role, one.check): (one.status.value, one.evidence) for one in report.results}


def serve(site: Site, node: str, repository: Path) -> None:
    """Give a node the packages of this folder, and no other source."""
    at = f"/srv/{repository.name}"
    site.send(node, repository, ".", to=at)
    site.on(
        node,
        "rm -rf /etc/apt/sources.list /etc/apt/sources.list.d/*; "
        f"echo 'deb [trusted=yes] file:{at} ./' >/etc/apt/sources.list.d/gpus.list; "
        "rm -f /var/lib/apt/rackwright-index-read; apt-get -q update >/dev/null",
    )


def version_of(site: Site, node: str, package: str) -> str:
    """The installed version of a package; empty where it is not installed."""
    return site.on(node, f"dpkg-query -W -f '${{Version}}' {package} 2>/dev/null || :").strip()


def place_driver(site: Site) -> None:
    """A fake nvidia-smi with the declared GPUs, MIG off, where the driver's would be."""
    program = (Path(__file__).parent / "fake_nvidia_smi.py").read_text()
    for node, sku in NODES.items():
        gpus = catalogue()[sku].gpus
        assert gpus is not None
        here = site.folder / f"driver-{node}"
        here.mkdir()
        (here / "off.xml").write_text(smi_xml.document(gpus))
        layout = tuple(name for name, count in LAYOUT.items() for _ in range(count))
        (here / "on.xml").write_text(smi_xml.document(gpus, layout))
        (here / "state.json").write_text(json.dumps(_state(gpus.count)))
        (here / "nvidia-smi").write_text(program)
        site.send(node, here, ".", to=_FAKE)
        site.on(
            node, f"install -m 755 {_FAKE}/nvidia-smi /usr/local/bin/nvidia-smi; nvidia-smi -L >/dev/null"
        )


def _state(count: int) -> dict[str, Any]:
    gpus = [
        {
            "index": index,
            "uuid": smi_xml.uuid(index),
            "mode": "Disabled",
            "pending": "Disabled",
            "instances": [],
        }
        for index in range(count)
    ]
    return {"apps": [], "needs_reset": False, "can_reset": True, "gpus": gpus}
