"""A rack of a head and a worker that Debian's installer is to install; both are virtual machines with a BMC and no system."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackwright.install.record import Record, folder, read
from rackwright.lab import names
from tests.racks.installers.netboot import Unpacked
from tests.racks.program import Ran, Running
from tests.racks.site import Site

WORKER = "worker1"
POLL = 0.5
BRIDGE, ADDRESS = "10.86.0.1", "10.86.0.12"
_ESCAPES = re.compile(r"\x1b\[[0-9;=?]*[A-Za-z]|\r")
_DECLARED = """\
version: 1
cluster: {name: "", domain: installers.test}
defaults: {os: debian-12, platform: vm, sku: small-machine, lab: {cpus: 2, memory_mib: 2048}, bmc: {ca: .lab/bmc_ca.pem}}
networks:
  management: {purpose: management, cidr: 10.86.0.0/24, gateway: 10.86.0.1}
  oob: {purpose: bmc, cidr: 10.87.0.0/24}
boot_network: {server: 10.86.0.1, bmc_server: 10.87.0.1, token_minutes: 8}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts, time_factor: 10}
mirrors: {apt_proxy: "http://10.86.0.1:3142"}
skus:
  small-machine:
    vendor: rackwright
    description: A racked machine of the lab's tests
    sockets: 1
    cores_per_socket: 2
    threads_per_core: 1
    memory_mib: 2048
    nics:
      - {purpose: management, kind: ethernet, speed_gbps: 10}
    nvme:
      - {count: 1, size_gb: 1}
    sources:
      - {text: "By definition: enough memory for the agent and an installer", read: 2026-11-27}
nodes:
  - {nodes: head1, roles: [head], addresses: {management: 10.86.0.11}, bmc: {address: 10.87.0.11}}
  - nodes: worker1
    roles: [worker]
    addresses: {management: 10.86.0.12}
    bmc: {address: 10.87.0.12}
    install:
      installer: preseed
      installer_files: netboot
      disk: {by_path: ["pci-0000:00:02.0"]}
      kernel_arguments: [no_timer_check] # a machine that a busy host emulates misses the kernel's test of its timer
roles:
  base: {}
"""


class Machines(Site):
    """The rack, as the tests drive it."""

    def __init__(self, folder_: Path, netboot: Path) -> None:
        content: dict[str, Any] = yaml.safe_load(_DECLARED)
        content["nodes"][1]["install"]["installer_files"] = str(netboot)
        super().__init__(folder_, "in", content)
        self.declare(lambda one: one["nodes"][1].update(macs=[names.port_mac(self.name, WORKER, 0)]))

    def prepare(self) -> None:
        """The BMCs' password in the secrets store."""
        password = (self.folder / ".lab" / "bmc_password").read_text()
        self.cli("secrets", "put", "bmc_password", str(self.file), stdin=password)

    def record(self) -> Record:
        """Where the worker's installation is."""
        with self.here():
            return read(self.name, WORKER)

    def journal(self) -> list[dict[str, Any]]:
        """All lines of the worker's journal."""
        with self.here():
            lines = (folder(self.name) / f"{WORKER}.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def start_install(self) -> Running:
        """`rackwright install` of the worker, and go on at once."""
        return self.start("install", str(self.file), "--limit", WORKER, "--confirm", WORKER)

    def refused(self) -> Ran:
        """The same, which must not begin."""
        return self.cli("install", str(self.file), "--limit", WORKER, "--confirm", WORKER, expect=3)

    def wait_for(self, reached: Callable[[Record], bool], running: Running, seconds: float = 900) -> Record:
        """Until the worker's record is as wanted."""
        deadline = time.monotonic() + seconds
        while not reached(record := self.record()):
            text = f"{record.state} ({record.reason}; {record.phase}) "
            assert time.monotonic() < deadline, f"{text} after {seconds} s: {self.console()[-3000:]}"
            assert running.process.poll() is None, f"{text}: the run has ended: {running.said()}"
            time.sleep(POLL)
        return record

    def power(self) -> str:
        """What the worker's BMC reports."""
        ran = self.cli("bmc", "status", str(self.file), "--limit", WORKER, "--json", expect=None)
        power: str = json.loads(ran.out)["nodes"][0]["power"]
        return power

    def console(self) -> str:
        """What the worker wrote to its serial line, without the terminal's codes."""
        log = names.node_state(self.name, WORKER) / "console.log"
        return _ESCAPES.sub("", log.read_text(errors="replace")) if log.exists() else ""


@pytest.fixture(scope="session")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Unpacked:
    """Debian's packages."""
    return Unpacked(tmp_path_factory.mktemp("packages"))


@pytest.fixture(scope="session")
def bare(tmp_path_factory: pytest.TempPathFactory, unpacked: Unpacked) -> Iterator[Machines]:
    """The rack, up; nothing is installed."""
    site = Machines(tmp_path_factory.mktemp("in"), unpacked.netboot)
    with site.booted():
        site.prepare()
        yield site
