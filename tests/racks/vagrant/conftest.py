"""A private libvirtd for the session; the VMs of the whole inventory, brought up and accepted once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.racks.host_state import State
from tests.racks.program import Ran
from tests.racks.vagrant.machine_state import machine_state
from tests.racks.vagrant.private_libvirt import PrivateLibvirt, missing
from tests.racks.vagrant.rack import VagrantRack


@dataclass(frozen=True)
class Accepted:
    """The rack after `vagrant up` and `rackwright accept`."""

    rack: VagrantRack
    up: Ran
    ran: Ran


@pytest.fixture(scope="session")
def programs() -> None:
    """All that these tests run is installed; else each of them is UNKNOWN."""
    if absent := missing():
        pytest.skip(f"UNKNOWN: not installed: {', '.join(absent)}")


@pytest.fixture(scope="session")
def before(programs: None) -> State:
    """The machine before any libvirtd of the tests ran."""
    return machine_state()


@pytest.fixture(scope="session")
def libvirt(tmp_path_factory: pytest.TempPathFactory, before: State) -> Iterator[PrivateLibvirt]:
    """A libvirtd that sees nothing of this machine's, with an empty storage pool."""
    assert before
    daemon = PrivateLibvirt(tmp_path_factory.mktemp("libvirt"))
    try:
        daemon.start()
        yield daemon
    finally:
        daemon.stop()


@pytest.fixture(scope="session")
def one(tmp_path_factory: pytest.TempPathFactory, libvirt: PrivateLibvirt) -> Iterator[VagrantRack]:
    """The head alone with the role base, its box made and its VM not yet."""
    rack = VagrantRack(tmp_path_factory.mktemp("one"), libvirt)
    rack.declare(_head_alone)
    try:
        rack.build("head")
        yield rack
    finally:
        rack.remove()


@pytest.fixture(scope="session")
def accepted(tmp_path_factory: pytest.TempPathFactory, libvirt: PrivateLibvirt) -> Iterator[Accepted]:
    """All VMs of inventory/vagrant.yaml, up and accepted; destroyed in the end."""
    rack = VagrantRack(tmp_path_factory.mktemp("rack"), libvirt)
    rack.declare(lambda _: None)
    try:
        rack.build("head", "worker")
        up = rack.vagrant("up")
        yield Accepted(rack, up, rack.rackwright("accept", str(rack.file), "--yes", "--report", "report"))
        rack.vagrant("destroy", "--force", timeout=600)
    finally:
        rack.remove()


def _head_alone(content: dict[str, Any]) -> None:
    content["cluster"]["name"] = "one"  # networks, volumes and domains have other names than the whole rack's
    content["networks"]["management"] |= {"cidr": "10.80.0.0/24", "gateway": "10.80.0.1"}
    content["networks"]["storage"]["cidr"] = "10.80.1.0/24"
    del content["nodes"][1:]
    content["nodes"][0]["addresses"] = {"management": "10.80.0.10", "storage": "10.80.1.10"}
    content["roles"] = {"base": {}}
    content["defaults"]["lab"]["memory_mib"] = content["skus"]["vagrant-node"]["memory_mib"] = 1024
    del content["burnin"]
