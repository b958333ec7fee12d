"""A rack of two racked machines, whose BMCs the tests drive. It boots nothing by itself."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from rackwright.lab import names
from tests.racks.bare_metal.boot_media import Media, Served, serving
from tests.racks.bare_metal.redfish import Redfish, wait
from tests.racks.site import Site

BRIDGE = "10.84.0.1"
BMCS = {"machine1": "10.84.0.11", "machine2": "10.84.0.12"}
_ESCAPES = re.compile(r"\x1b\[[0-9;=?]*[A-Za-z]|\r")

_DECLARED = """\
version: 1
cluster: {name: "", domain: bmc.test}
defaults: {os: debian-13, platform: vm, sku: small-machine, lab: {cpus: 2, memory_mib: 768}, bmc: {ca: .lab/bmc_ca.pem}}
networks:
  management: {purpose: management, cidr: 10.83.0.0/24, gateway: 10.83.0.1}
  oob: {purpose: bmc, cidr: 10.84.0.0/24}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
skus:
  small-machine:
    vendor: rackwright
    description: A racked machine of the lab's tests
    sockets: 1
    cores_per_socket: 2
    threads_per_core: 1
    memory_mib: 768
    nics:
      - {purpose: management, kind: ethernet, speed_gbps: 10}
    nvme:
      - {count: 1, size_gb: 1}
    sources:
      - {text: "By definition: enough memory for the firmware and a boot loader", read: 2026-11-27}
nodes:
  - {nodes: machine1, roles: [head], addresses: {management: 10.83.0.11}, bmc: {address: 10.84.0.11}}
  - {nodes: machine2, roles: [worker], addresses: {management: 10.83.0.12}, bmc: {address: 10.84.0.12}}
roles:
  base: {}
"""


class Machines:
    """The rack's machines, as the tests ask them."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.name = site.name

    def bmc(self, node: str = "machine1") -> Redfish:
        lab = self.site.folder / ".lab"
        password = (lab / "bmc_password").read_text().strip()
        return Redfish(self.name, BMCS[node], lab / "bmc_ca.pem", password)

    def lab(self, command: str, *arguments: str, node: str = "machine1", expect: int = 0) -> str:
        """`rackwright lab COMMAND NODE ...`; what it wrote."""
        ran = self.site.cli("lab", command, node, *arguments, "--file", str(self.site.file), expect=expect)
        return ran.out + ran.err

    def faults(self, node: str = "machine1") -> dict[str, list[str]]:
        found: dict[str, list[str]] = next(
            one.faults for one in self.site.rack.status().nodes if one.name == node
        )
        return found

    def console(self, node: str = "machine1") -> str:
        """What its firmware and boot loader wrote to the serial line, without the terminal's codes."""
        log = names.node_state(self.name, node) / "console.log"
        return _ESCAPES.sub("", log.read_text(errors="replace")) if log.exists() else ""

    def wait_for(self, text: str, after: int = 0, node: str = "machine1") -> None:
        """Waits until the serial line shows a text after this number of characters."""
        wait(lambda: text in self.console(node)[after:], f"{text!r} on the serial line of {node}")

    def off(self, node: str = "machine1") -> None:
        """Without power, medium and override."""
        bmc = self.bmc(node)
        bmc.reset("ForceOff")
        bmc.eject()
        bmc.boot("None", "Disabled")


def declared() -> dict[str, Any]:
    """The content of the set's cluster file."""
    content: dict[str, Any] = yaml.safe_load(_DECLARED)
    return content


@pytest.fixture(scope="session")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """The rack, up."""
    site = Site(tmp_path_factory.mktemp("bmc"), "bmc", declared())
    with site.booted():
        yield Machines(site)


@pytest.fixture
def machines(rack: Machines) -> Iterator[Machines]:
    """The rack, its first machine off and without faults; so it is left too."""
    yield rack
    for node in BMCS:
        if rack.faults(node):
            rack.lab("heal", node=node)
        rack.off(node)


@pytest.fixture(scope="session")
def media(tmp_path_factory: pytest.TempPathFactory) -> Media:
    return Media(tmp_path_factory.mktemp("media"))


@pytest.fixture
def served(rack: Machines, media: Media) -> Iterator[Served]:
    """The media, over plain http."""
    with serving(rack.name, BRIDGE, media.served) as found:
        yield found
