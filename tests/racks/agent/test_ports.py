"""A machine whose management network is tagged and whose ports form a bond: found by the agent, and after the first boot."""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.install.port import Port, networkd
from tests.racks.agent import wire
from tests.racks.agent.bench import BOOT_SECONDS, CLUSTER, INSTALL_SECONDS, VLAN, Bench
from tests.racks.agent.machine import MAC, MACS

pytestmark = [pytest.mark.lab, pytest.mark.proof]


def test_a_tagged_bond_is_reached_by_the_agent_and_by_the_installed_system(tagged: Bench, tmp_path: Path):
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    network = load_cluster(tmp_path / "cluster.yaml").management
    port = Port(MACS, VLAN, IPv4Address(wire.NODE), network, ())
    texts = {"/etc/hostname": "node1\n", **networkd(port)}
    files = [
        {"path": path, "content": text, "mode": 0o644, "uid": 0, "gid": 0} for path, text in texts.items()
    ]
    tagged.head.decide = lambda document, _: {
        "action": "install",
        "install": tagged.install(document, 1, files=files),
    }
    address = f"{wire.NODE}/{wire.PREFIX}"
    tagged.arm(network={"mac": MAC, "address": address, "gateway": None, "vlan": VLAN})
    machine = tagged.machine(1)
    machine.connect_all()
    machine.start(tagged.medium)
    machine.wait_off(INSTALL_SECONDS)
    assert tagged.head.failed is None
    assert [nic["mac"] for nic in tagged.head.inventories[0]["nics"]] == list(MACS)

    machine.start()
    assert tagged.greeted(BOOT_SECONDS).startswith("SSH-2.0-")
    machine.wait_for("root@node1", 120)
    said = machine.ask("cat /proc/net/bonding/bond0; ip -br addr", "DONE1")
    assert "IEEE 802.3ad Dynamic link aggregation" in said
    assert "Number of ports: 2" in said
    assert f"vlan{VLAN}@bond0" in said
