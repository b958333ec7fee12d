"""What the tests of installations share."""

from __future__ import annotations

import socket

import pytest

from rackwright.install.agent_image import GRUB_NET, INITRAMFS, KERNEL, SHIM
from rackwright.install.netboot import NetbootServer
from tests.unit.install.netboot_site import HERE, NODES
from tests.unit.install.operator import Site
from tests.unit.install.site import make_site


@pytest.fixture(autouse=True)
def _state_of_its_own(tmp_path, monkeypatch):
    """Journals, CA and media of a test are its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture(autouse=True)
def other_dhcp_servers(monkeypatch):
    """MAC addresses that another DHCP server answers, and that server; real ones are asked in tests/racks/agent."""
    found = {}
    monkeypatch.setattr("rackwright.install.netboot.answering", lambda *_: found)
    return found


@pytest.fixture
def agent(tmp_path):
    folder = tmp_path / "agent"
    folder.mkdir()
    for name in (KERNEL, INITRAMFS, SHIM, GRUB_NET):
        (folder / name).write_bytes(name.encode())
    return folder


@pytest.fixture
def server(agent, tmp_path):
    cluster = make_site(*NODES.values())
    (tmp_path / "netboot").mkdir()
    folder = tmp_path / "netboot"
    return NetbootServer(cluster, cluster.boot_network, agent, b"CA", folder, tuple(NODES.values()))


@pytest.fixture
def free_port():
    with socket.socket() as taken:
        taken.bind((HERE, 0))
        return taken.getsockname()[1]


@pytest.fixture
def site_kind():
    """The kind of site that a test works on, and how many workers it has."""
    return Site, 3


@pytest.fixture
def sites(tmp_path, monkeypatch, site_kind):
    """Makes a site; its agents end with the test."""
    made = []
    kind, workers = site_kind

    def make(count=workers, **network):
        made.append(kind(tmp_path, monkeypatch, count, **network))
        return made[-1]

    yield make
    for machine in [machine for one in made for machine in one.machines.values()]:
        machine.cut()
        for agent in machine.agents:
            agent.join(10)


@pytest.fixture
def site(sites):
    return sites()
