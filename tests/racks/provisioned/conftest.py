"""The rack of inventory/baremetal.yaml: a head, and three machines that have blank disks and a BMC, no more."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackwright.install.record import Record, read
from rackwright.lab import names
from tests.racks.program import Ran, Running
from tests.racks.site import REPO, Site

WORKERS = ("worker1", "worker2", "worker3")
PROVISION_SECONDS = 5400
POLL = 0.5


def declared() -> dict[str, Any]:
    """The content of the set's cluster file; the machines' MACs follow from the name of the rack."""
    content: dict[str, Any] = yaml.safe_load((REPO / "inventory" / "baremetal.yaml").read_text())
    content["nodes"][1]["install"]["image"] = "image"
    return content


class Machines(Site):
    """A site whose workers are racked machines, with their secret and their image."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "bm", declared())
        macs = [names.port_mac(self.name, worker, 0) for worker in WORKERS]
        self.declare(lambda content: content["nodes"][1].update(macs=macs))

    def prepare(self) -> None:
        """The BMCs' password in the secrets store, and the image of the workers."""
        password = (self.folder / ".lab" / "bmc_password").read_text()
        self.cli("secrets", "put", "bmc_password", str(self.file), stdin=password)
        build = ("image", "build", str(self.file), "--group", "worker1", "--format", "root")
        self.cli(*build, "--out", str(self.folder / "image"))

    def record(self, node: str) -> Record:
        """Where the installation of a node is."""
        with self.here():
            return read(self.name, node)

    def install(self, node: str, *options: str, expect: int | None = 0) -> Ran:
        """`rackwright install` of one node."""
        return self.cli(*self.command(node, *options), expect=expect)

    def start_install(self, node: str, *options: str) -> Running:
        """The same, and go on at once."""
        return self.start(*self.command(node, *options))

    def command(self, node: str, *options: str) -> tuple[str, ...]:
        """Its words."""
        return ("install", str(self.file), "--limit", node, "--confirm", node, *options)

    def wait_for(self, node: str, reached: Callable[[Record], bool], seconds: float = 900) -> Record:
        """Until the record of a node is as wanted."""
        deadline = time.monotonic() + seconds
        while not reached(record := self.record(node)):
            assert time.monotonic() < deadline, (
                f"{node} is {record.state} ({record.reason}) after {seconds} s"
            )
            time.sleep(POLL)
        return record

    def serial(self, node: str) -> str:
        """Serial number of a machine."""
        return f"RW-{self.name}-{node}"

    def power(self, node: str) -> str:
        """What its BMC reports."""
        ran = self.cli("bmc", "status", str(self.file), "--limit", node, "--json", expect=None)
        power: str = json.loads(ran.out)["nodes"][0]["power"]
        return power

    def console(self, node: str) -> str:
        """What the machine wrote to its serial line."""
        log = names.node_state(self.name, node) / "console.log"
        return log.read_text(errors="replace") if log.exists() else ""


@pytest.fixture(scope="package")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machines]:
    """The rack, up; nothing is installed yet."""
    site = Machines(tmp_path_factory.mktemp("bm"))
    with site.booted():
        site.prepare()
        yield site


@pytest.fixture(scope="package")
def provisioned(bare: Machines) -> tuple[Machines, Ran]:
    """The same after `rackwright provision`."""
    options = ("--confirm", "worker[1-3]", "--yes")
    return bare, bare.cli("provision", str(bare.file), *options, timeout=PROVISION_SECONDS)
