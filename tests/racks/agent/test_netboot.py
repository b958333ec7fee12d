"""What the boot network answers: rackwright's DHCP and HTTP inside a rack's namespace, queried from outside as firmware does."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import pytest

from rackwright.install import agent_image
from rackwright.install.agent_image import GRUB_NET, INITRAMFS, KERNEL, SHIM
from rackwright.install.authority import credentials_in
from rackwright.install.netboot import NetbootMedium, NetbootServer, new_folder, serving
from rackwright.install.record import Record
from rackwright.lab import names
from rackwright.lab.netns import socket_inside
from rackwright.model.cluster import LabSize, Node
from rackwright.model.install import BootNetwork, BootWay, Install
from tests.factories import make_cluster, make_network, make_node
from tests.racks.agent import dhcp_client, wire
from tests.racks.agent.head import PORT, Head
from tests.racks.agent.machine import MAC, SERIAL, Machine

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_HEAD = IPv4Address("10.79.0.1")
_MAC = {"worker1": "02:00:5e:10:00:21", "worker2": "02:00:5e:10:00:22"}
_STRANGER = "02:00:5e:10:00:23"
_BOOT_SECONDS = 420.0
_PXE, _HTTP = ("PXEClient:Arch:00007:UNDI:003016", 7), ("HTTPClient:Arch:00016:UNDI:003016", 16)


class Network:
    """The head's namespace, and one with a port on the boot network."""

    def __init__(self, folder: Path) -> None:
        self.rack = f"netboot{os.getpid()}"
        self.outside = f"{names.namespace(self.rack)}.outside"
        agent = folder / "agent"
        agent.mkdir()
        for name in (KERNEL, INITRAMFS, SHIM, GRUB_NET):
            (agent / name).write_text(f"the {name}")
        nodes = [_node("worker1", 21, BootWay.HTTP), _node("worker2", 22, BootWay.PXE)]
        network = BootNetwork(network="management", server=_HEAD, bmc_server=_HEAD)
        cluster = make_cluster(
            *nodes,
            name=self.rack,
            networks={"management": make_network("management", "10.79.0.0/24")},
            boot_network=network,
        )
        (folder / "served").mkdir()
        self.server = NetbootServer(cluster, network, agent, b"CA", folder / "served", tuple(nodes))
        self.node = cluster.by_name

    def make(self, undo: ExitStack) -> None:
        """Two namespaces with a cable between them."""
        head = names.namespace(self.rack)
        for namespace in (head, self.outside):
            _ip("netns", "add", namespace)
            undo.callback(_ip, "netns", "delete", namespace)
        _ip(
            "-n",
            head,
            "link",
            "add",
            "boot0",
            "type",
            "veth",
            "peer",
            "name",
            dhcp_client.PORT,
            "netns",
            self.outside,
        )
        for namespace, port, address in (
            (head, "boot0", f"{_HEAD}/24"),
            (self.outside, dhcp_client.PORT, "10.79.0.21/24"),
        ):
            _ip("-n", namespace, "link", "set", port, "up")
            _ip("-n", namespace, "addr", "add", address, "dev", port)
        _ip("-n", self.outside, "addr", "add", "10.79.0.22/24", "dev", dhcp_client.PORT)

    def arm(self, name: str) -> None:
        """Answer a node's machine from now on."""
        config = {"run": "run1", "token": f"token-{name}"}
        self.server.arm(self.node[name], _MAC[name], json.dumps(config).encode())

    def offer(self, mac: str, firmware: tuple[str, int]) -> dict[str, Any] | None:
        """What DHCP offers a machine."""
        found: dict[str, Any] | None = json.loads(
            self._run(dhcp_client.__file__, mac, firmware[0], str(firmware[1]))
        )
        return found

    def get(self, url: str, own: str) -> int:
        """HTTP status for a machine with this address."""
        program = (
            "import http.client, sys, urllib.parse as u; p = u.urlsplit(sys.argv[1]);"
            "c = http.client.HTTPConnection(p.hostname, p.port, 5, (sys.argv[2], 0));"
            "c.request('GET', p.path); print(c.getresponse().status)"
        )
        return int(self._run("-c", program, url, own))

    def _run(self, *arguments: str) -> str:
        argv = ["ip", "netns", "exec", self.outside, sys.executable, "-I", *arguments]
        done = subprocess.run(argv, check=False, capture_output=True, text=True, timeout=30)
        assert done.returncode == 0, done.stderr
        return done.stdout


def _node(name: str, number: int, way: BootWay) -> Node:
    lab = LabSize(cpus=1, memory_mib=512)  # so that the servers are inside the rack's namespace
    return make_node(name, f"10.79.0.{number}", mac=_MAC[name], lab=lab, install=Install(boot=way))


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, timeout=30)


@pytest.fixture
def network(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Network]:
    """The boot network, served, and no machine armed."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with ExitStack() as undo:
        made = Network(tmp_path)
        made.make(undo)
        undo.enter_context(serving(made.server))
        yield made


def test_only_armed_machines_are_answered_each_in_its_way(network: Network):
    for mac in (*_MAC.values(), _STRANGER):
        for firmware in (_PXE, _HTTP):
            assert network.offer(mac, firmware) is None
    network.arm("worker1")
    network.arm("worker2")
    url = network.server.url(network.node["worker1"])
    assert url is not None
    worker1 = {"address": "10.79.0.21", "vendor": "HTTPClient", "file": url}
    assert network.offer(_MAC["worker1"], _HTTP) == worker1
    tried = network.offer(_MAC["worker1"], _PXE)
    assert tried is not None
    assert tried["file"] is None, "its firmware goes on to HTTP at once"
    assert network.offer(_MAC["worker2"], _PXE) == {
        "address": "10.79.0.22",
        "vendor": None,
        "file": "shimx64.efi",
    }
    by_http = network.offer(_MAC["worker2"], _HTTP)
    assert by_http is not None
    assert by_http["file"] is None
    for firmware in (_PXE, _HTTP):
        assert network.offer(_STRANGER, firmware) is None
    assert network.get(url, "10.79.0.21") == 200
    assert network.get(url, "10.79.0.22") == 404

    network.server.disarm(network.node["worker1"])
    for firmware in (_PXE, _HTTP):
        assert network.offer(_MAC["worker1"], firmware) is None
    assert network.get(url, "10.79.0.21") == 404
    assert network.offer(_MAC["worker2"], _PXE) is not None


def test_a_machine_boots_the_agent_by_http_under_secure_boot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """From our DHCP's URL through Debian's signed shim and grub to a head over TLS; no file is left to fetch afterwards."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    rack = f"netboot{os.getpid()}"
    head_address = IPv4Address(wire.HEAD)
    network = BootNetwork(network="management", server=head_address, bmc_server=head_address)
    node = make_node(
        "node1",
        wire.NODE,
        mac=MAC,
        lab=LabSize(cpus=2, memory_mib=2048),
        install=Install(boot=BootWay.HTTP),
    )
    networks = {"management": make_network("management", f"10.77.0.0/{wire.PREFIX}")}
    cluster = make_cluster(node, name=rack, networks=networks, boot_network=network)
    with ExitStack() as undo:
        namespace = undo.enter_context(wire.wire(rack))
        credentials = credentials_in(tmp_path, frozenset({head_address}))
        head = Head(_listening(namespace), credentials.chain)
        undo.callback(head.close)
        served = Path(undo.enter_context(new_folder()))
        server = NetbootServer(cluster, network, agent_image.ensure(print), credentials.ca, served, (node,))
        undo.enter_context(serving(server))
        medium = NetbootMedium(node, cluster, network, server)
        medium.make(Record("node1", run="k3x9ab12", mode="discover", mac=MAC, serial=SERIAL), head.token)
        url = server.url(node)
        assert url is not None

        machine = Machine(tmp_path, namespace, 0, secure_boot=True)
        undo.callback(machine.off)
        machine.settings = {"IPv4PXESupport": "no", "IPv6PXESupport": "no"}
        began = time.monotonic()
        machine.start()
        while head.hello is None and time.monotonic() - began < _BOOT_SECONDS:
            time.sleep(0.5)
        print(f"{time.monotonic() - began:.0f} s to the agent")
        machine.wait_off(_BOOT_SECONDS)
        assert head.hello is not None, machine.said()[-3000:]
        assert head.inventories[0]["secure_boot"] is True
        assert [nic["mac"] for nic in head.inventories[0]["nics"]] == [MAC]
        for secret in (head.token, head.session):
            assert secret not in machine.said()


def _listening(namespace: str) -> socket.socket:
    listener = socket_inside(namespace)
    assert listener is not None
    listener.bind((wire.HEAD, PORT))
    listener.listen(64)
    return listener
