"""The installer by PXE: one machine's folder in place of the agent's files, for as long as it boots."""

from __future__ import annotations

import pytest

from rackwright.bmc.interface import BootTarget
from rackwright.install.agent_image import GRUB_NET, INITRAMFS, KERNEL, SHIM
from rackwright.install.dnsmasq import dnsmasq_conf
from rackwright.install.handover.files import find
from rackwright.install.handover.netboot import NetbootFolder
from rackwright.install.handover.requests import Site
from rackwright.install.handover.run import Handovers
from rackwright.install.netboot import NetbootMedium, NetbootServer
from rackwright.install.record import Record
from rackwright.model.install import BootWay
from tests.unit.install.fake_machine import FakeMachine
from tests.unit.install.handover.installer import installed_by, netboot_folder
from tests.unit.install.site import mac, make_site


@pytest.fixture
def node(tmp_path):
    return installed_by(netboot_folder(tmp_path / "debian"), boot=BootWay.PXE)


@pytest.fixture
def medium(node, tmp_path):
    agent = tmp_path / "agent"
    agent.mkdir()
    for name in (KERNEL, INITRAMFS, SHIM, GRUB_NET):
        (agent / name).write_bytes(name.encode())
    (tmp_path / "netboot").mkdir()
    cluster = make_site(node)
    server = NetbootServer(cluster, cluster.boot_network, agent, b"CA", tmp_path / "netboot", (node,))
    return NetbootMedium(node, cluster, cluster.boot_network, server)


def test_the_agents_files_are_followed_by_the_installers(medium, node):
    record = Record("worker1", run="run1", mode="install", mac=mac(1), serial="S")
    root = medium.server.folder / "tftp"
    medium.make(record, "token-1")
    own = root / "127.0.0.2"
    assert not own.exists(), "the agent comes from the folder of all"
    machine = FakeMachine(1)
    medium.remove(machine)
    assert NetbootFolder(medium).put(find(node), "auto=true", record) == "pxe"
    assert (own / SHIM).read_text() == "bootnetx64.efi\n"
    assert "'auto=true'" in (own / "debian-installer/amd64/grub/grub.cfg").read_text()
    assert (medium.server.folder / "hosts").read_text() == f"{mac(1)},127.0.0.2,worker1\n"
    assert not list((root / "grub/mac").iterdir()), "no token is left"
    medium.insert(machine, "pxe")
    assert machine.override.target is BootTarget.PXE
    medium.remove(machine)
    assert not own.exists()
    assert (medium.server.folder / "hosts").read_text() == ""


def test_dnsmasq_serves_each_machine_its_folder(medium):
    conf = dnsmasq_conf(
        medium.cluster, medium.network, medium.server.folder, medium.server.nodes
    ).splitlines()
    assert "tftp-unique-root" in conf


def test_what_is_missing_for_pxe_is_found_before(node, tmp_path):
    site = Site(make_site(node), make_site(node).boot_network, "ssh-ed25519 AAAA x")
    assert not [one for one in Handovers(site).problems([node]) if "grub" in one]
