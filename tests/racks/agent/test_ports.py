"""A machine whose ports form an LACP bond, at a switch that does not speak LACP: one port of it carries the traffic.

Tagged networks are not tried: the host's kernel may lack 802.1Q.
"""

from __future__ import annotations

from ipaddress import IPv4Address
from pathlib import Path

import pytest

from rackwright.clusterfile.load import load_cluster
from rackwright.install.port import Port, networkd
from tests.racks.agent import wire
from tests.racks.agent.bench import BOOT_SECONDS, CLUSTER, INSTALL_SECONDS, Bench
from tests.racks.agent.machine import MACS

pytestmark = [pytest.mark.lab, pytest.mark.proof]


def test_a_bond_is_reached_after_the_first_boot(bench: Bench, tmp_path: Path):
    (tmp_path / "cluster.yaml").write_text(CLUSTER)
    network = load_cluster(tmp_path / "cluster.yaml").management
    texts = {"/etc/hostname": "node1\n", **networkd(Port(MACS, None, IPv4Address(wire.NODE), network, ()))}
    files = [
        {"path": path, "content": text, "mode": 0o644, "uid": 0, "gid": 0} for path, text in texts.items()
    ]
    bench.head.decide = lambda document, _: {
        "action": "install",
        "install": bench.install(document, 1, files=files),
    }
    bench.arm()
    machine = bench.machine(1)
    machine.connect_all()
    machine.start(bench.medium)
    machine.wait_off(INSTALL_SECONDS)
    assert bench.head.failed is None
    assert [nic["mac"] for nic in bench.head.inventories[0]["nics"]] == list(MACS)

    machine.start()
    assert bench.greeted(BOOT_SECONDS).startswith("SSH-2.0-")
    machine.wait_for("root@node1", 120)
    said = machine.ask("cat /proc/net/bonding/bond0; ip -color=never -br addr show bond0", "DONE1")
    assert "IEEE 802.3ad Dynamic link aggregation" in said
    assert said.count("Slave Interface:") == len(MACS)
    assert f"{wire.NODE}/{wire.PREFIX}" in said
