"""One rack of one virtual machine, booted once; a second one for what ends a rack."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from rackwright.errors import LabError
from rackwright.lab.netns import open_socket
from rackwright.lab.process import wait_until
from tests.racks.site import Site

NODE = "vm1"
ADDRESS = "10.76.0.10"
MIB = 1024
PATIENCE = 600.0
"""Seconds for what takes a minute on an emulated machine whose host does other things too."""

_DECLARED = """\
version: 1
cluster: {name: "", domain: vm.test}
defaults: {os: debian-13, platform: vm, sku: small-vm, lab: {cpus: 2, memory_mib: 1024}}
networks:
  management: {purpose: management, cidr: 10.76.0.0/24, gateway: 10.76.0.1}
  fabric: {purpose: fabric, cidr: 10.75.0.0/24, rails: 2}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
mirrors: {apt_proxy: "http://10.76.0.1:3142"}
skus:
  small-vm:
    vendor: rackwright
    description: A virtual machine of the lab's tests
    sockets: 2
    cores_per_socket: 1
    threads_per_core: 1
    memory_mib: 1024
    numa_nodes: 2
    nics:
      - {purpose: management, kind: ethernet, speed_gbps: 10}
      - {purpose: fabric, kind: ethernet, speed_gbps: 10, rail: 0}
      - {purpose: fabric, kind: ethernet, speed_gbps: 10, rail: 1}
    nvme:
      - {count: 2, size_gb: 1}
    sources:
      - {text: "By definition: the smallest machine with a second one of everything", read: 2026-11-23}
nodes:
  - {nodes: vm1, roles: [head], addresses: {management: 10.76.0.10, fabric: 10.75.0.10}}
roles:
  base: {}
"""


class Machine:
    """The rack's virtual machine, as the tests ask it."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.name = site.name

    def on(self, script: str, timeout: float = PATIENCE) -> str:
        """A script as root, through the guest agent; LabError where it fails."""
        return self.site.on(NODE, script, timeout)

    def lab(self, command: str, *arguments: str, expect: int | None = 0) -> str:
        """`rackwright lab COMMAND vm1 ...`; what it wrote."""
        ran = self.site.cli("lab", command, NODE, *arguments, "--file", str(self.site.file), expect=expect)
        return ran.out + ran.err

    def state(self) -> str:
        """What `lab status` calls the machine."""
        state: str = self.site.rack.status().nodes[0].state
        return state

    def faults(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = self.site.rack.status().nodes[0].faults
        return found

    def boot(self) -> str:
        """What is different after each boot."""
        return self.on("cat /proc/sys/kernel/random/boot_id")

    def banner(self, timeout: float = 5.0) -> bytes:
        """The first bytes of its sshd; OSError where it does not answer."""
        connection = open_socket(self.name, ADDRESS, 22, timeout)
        assert connection is not None
        with connection:
            return connection.recv(4)

    def answers(self) -> bool:
        """Whether it carries out anything."""
        try:
            return self.on("echo here", 15) == "here\n"
        except LabError:
            return False

    def wait(self, condition: Callable[[], bool], what: str) -> None:
        """Until a condition holds, asked once a second."""

        def asked() -> bool:
            if condition():
                return True
            time.sleep(1)
            return False

        wait_until(asked, what, PATIENCE)


def declared() -> dict[str, Any]:
    """The content of the set's cluster file."""
    content: dict[str, Any] = yaml.safe_load(_DECLARED)
    return content


@pytest.fixture(scope="session")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """The rack, up."""
    site = Site(tmp_path_factory.mktemp("vmlab"), "vmlab", declared())
    began = time.monotonic()
    with site.booted():
        print(f"one virtual machine was up after {time.monotonic() - began:.0f} s")
        yield Machine(site)


@pytest.fixture
def machine(rack: Machine) -> Iterator[Machine]:
    """The machine, running and without faults; healed after the test."""
    if rack.state() != "ready" or rack.faults():
        rack.lab("heal")
    yield rack
    if rack.state() != "ready" or rack.faults():
        rack.lab("heal")
        assert rack.faults() == {}
        assert rack.banner(PATIENCE) == b"SSH-"
