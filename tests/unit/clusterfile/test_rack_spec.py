"""A cluster file as a lab rack."""

from __future__ import annotations

from pathlib import Path

import pytest

from rackwright.errors import LabError
from rackwright.lab.from_cluster import load_rack_spec
from tests.unit.clusterfile.base_file import change

INVENTORY = Path(__file__).parents[3] / "inventory"


def rack(folder: Path, *edits: tuple[str, str]):
    path = folder / "demo.yaml"
    path.write_text(change(*edits))
    return load_rack_spec(path)


CONTAINERS = (
    "  os: debian-13\n",
    "  os: debian-13\n  platform: container\n  lab: {cpus: 1, memory_mib: 512}\n",
)


def test_the_lab_file():
    spec = load_rack_spec(INVENTORY / "lab.yaml")
    assert spec.name == "lab"
    assert (spec.bridge_address, spec.apt_proxy) == ("10.77.0.1/24", "http://10.77.0.1:3142")
    assert spec.key == INVENTORY / ".lab" / "id_ed25519"
    assert spec.known_hosts == INVENTORY / ".lab" / "known_hosts"
    assert [(node.name, node.image, node.cpus, node.memory_mib) for node in spec.nodes] == [
        ("head1", "debian-13", 2, 2048),
        ("worker1", "debian-13", 2, 2048),
        ("worker2", "debian-13", 2, 2048),
    ]


def test_further_networks_and_rails_are_extra_addresses(tmp_path):
    spec = rack(tmp_path, CONTAINERS)
    assert spec.nodes[1].address == "10.1.0.11"
    assert spec.nodes[1].extra_addresses == ("10.3.0.11/25", "10.3.0.139/25")


def test_without_a_gateway_the_bridge_takes_the_first_free_address(tmp_path):
    edits = (CONTAINERS, ("    gateway: 10.1.0.1\n", ""), ("mgmt: 10.1.0.10}", "mgmt: 10.1.0.1}"))
    assert rack(tmp_path, *edits).bridge_address == "10.1.0.2/24"


@pytest.mark.parametrize(
    ("edits", "message"),
    [
        ((), "head1 is bare-metal without a BMC, which the lab cannot boot."),
        (
            (CONTAINERS, ("  key: keys/id_ed25519\n", "")),
            "does not set `ssh.key`, which opens the lab's nodes.",
        ),
    ],
)
def test_what_the_lab_cannot_boot(tmp_path, edits, message):
    with pytest.raises(LabError) as caught:
        rack(tmp_path, *edits)
    assert message in caught.value.message
