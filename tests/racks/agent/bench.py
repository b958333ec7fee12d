"""A head, a medium and a machine on one wire."""

from __future__ import annotations

import json
import time
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from rackwright.install import media
from rackwright.install.authority import credentials_in
from rackwright.lab.netns import open_socket, socket_inside
from tests.racks.agent import wire
from tests.racks.agent.head import PORT, Head
from tests.racks.agent.machine import MAC, SERIAL, Machine

RUN = "k3x9ab12"
RACK = "agenttest"
INSTALL_SECONDS, BOOT_SECONDS = 900.0, 420.0
CLUSTER = """\
version: 1
cluster: {name: agenttest, domain: lab.test}
defaults: {os: debian-13, platform: vm, sku: lab-node, lab: {cpus: 2, memory_mib: 2048}}
networks:
  management: {purpose: management, cidr: 10.77.0.0/24, gateway: 10.77.0.1}
  out-of-band: {purpose: bmc, cidr: 10.78.0.0/24}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
boot_network: {server: 10.77.0.1}
nodes:
  - nodes: node1
    roles: [head]
    addresses: {management: 10.77.0.11}
    macs: ["02:00:5e:10:00:11"]
    serials: [SN-11]
    bmc: {address: 10.78.0.11, user: admin, password: bmc_password}
    install: {image: root, mirror: true, disk: {serials: [RW-disk0, RW-disk1]}}
roles: {}
"""


class Bench:
    """Serves one machine whose port is on the wire."""

    def __init__(self, folder: Path, namespace: str, agent: Path, image: Path) -> None:
        self.folder, self.namespace, self.agent = folder, namespace, agent
        credentials = credentials_in(folder, frozenset({IPv4Address(wire.HEAD)}))
        self.ca, self.chain = credentials.ca, credentials.chain
        listener = socket_inside(namespace)
        assert listener is not None
        listener.bind((wire.HEAD, PORT))
        listener.listen(64)
        self.head = Head(listener, self.chain, image)
        self.medium = folder / "agent.iso"
        self._machines: list[Machine] = []

    def machine(self, disks: int, **options: Any) -> Machine:
        """A machine that is off, with blank disks."""
        return self.own(Machine(self.folder, self.namespace, disks, **options))

    def own(self, machine: Machine) -> Machine:
        """Have a machine switched off in the end."""
        self._machines.append(machine)
        return machine

    def close(self) -> None:
        """No machine and no head is left, however a test ended."""
        for machine in self._machines:
            machine.off()
        self.head.close()

    def arm(self, **changes: Any) -> None:
        """Make the medium."""
        media.make_iso(self.agent, self.config(**changes), self.ca, self.medium)

    def config(self, **changes: Any) -> bytes:
        """config.json of the machine."""
        network = {"mac": MAC, "address": f"{wire.NODE}/{wire.PREFIX}", "gateway": None, "vlan": None}
        config = {
            "version": 1,
            "server": f"https://{wire.HEAD}:{PORT}",
            "token": self.head.token,
            "node": "node1",
            "run": RUN,
            "serial": SERIAL,
            "mode": "install",
            "network": network,
            **changes,
        }
        return json.dumps(config).encode()

    def install(self, document: dict[str, Any], count: int, **changes: Any) -> dict[str, Any]:
        """An order for the first disks of an inventory, as they are."""
        files = {
            "/etc/hostname": "node1\n",
            "/etc/systemd/network/20-install.network": (
                f"[Match]\nMACAddress={MAC}\n[Network]\nAddress={wire.NODE}/{wire.PREFIX}\n"
            ),
        }
        return {
            "node": "node1",
            "run": RUN,
            "disks": [
                {key: disk[key] for key in ("path", "serial", "signatures")}
                for disk in document["disks"][:count]
            ],
            "mirror": count == 2,
            "volumes": "plain",
            "encryption": None,
            "image": self.head.described(),
            "files": [
                {"path": path, "content": text, "mode": 0o644, "uid": 0, "gid": 0}
                for path, text in files.items()
            ],
            "kernel_arguments": f"console=tty0 console=ttyS0,115200 rackwright.run={RUN}",
            "secure_boot": False,
            "console": "ttyS0,115200",
            **changes,
        }

    def greeted(self, seconds: float) -> str:
        """The first words of the node's sshd."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            try:
                connection = open_socket(RACK, wire.NODE, 22, 5)
                assert connection is not None
                with connection:
                    if said := connection.recv(64):
                        return said.decode()
            except OSError:
                pass
            time.sleep(1)
        raise AssertionError("no sshd answered")
