"""A Debian 12 machine whose lock asks for Debian's NVIDIA driver, built by DKMS for a kernel that it then boots."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from tests.racks.site import Site

NODE = "gpu12"
BUILD_SECONDS = 5400
"""Two minutes on a quiet machine, some twenty times that under emulation."""
_DECLARED = """\
version: 1
cluster: {name: "", domain: vm.test}
defaults: {platform: vm, sku: vm-gpu, lab: {cpus: 2, memory_mib: 2048}}
networks:
  management: {purpose: management, cidr: 10.78.0.0/24, gateway: 10.78.0.1}
ssh:
  user: rack
  key: .lab/id_ed25519
  known_hosts: .lab/known_hosts
  connect_timeout_seconds: 60
  command_timeout_seconds: 5000
  time_factor: 10
mirrors: {apt_proxy: "http://10.78.0.1:3142"}
skus:
  vm-gpu:
    vendor: rackwright
    description: a virtual machine of the lab that is declared to have one T4
    sockets: 1
    cores_per_socket: 2
    threads_per_core: 1
    memory_mib: 2048
    gpus: {model: T4, gres_type: t4, count: 1, memory_mib: 15360, architecture: turing, nvswitch: none}
    sources: [{text: made up for the lab, read: 2026-11-23}]
nodes:
  - {nodes: gpu12, roles: [head, worker], os: debian-12, addresses: {management: 10.78.0.12}}
gpu_stack: {source: distribution, cuda: none}
roles:
  base: {}
"""
DRIVER: dict[str, dict[str, str]] = {"nvidia_driver": {}, "persistence": {}}


def declared() -> dict[str, Any]:
    """The content of the set's cluster file; without the driver, so that no boot image has it."""
    content: dict[str, Any] = yaml.safe_load(_DECLARED)
    return content


@pytest.fixture(scope="session")
def file(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Cluster file of a machine that is down."""
    return Site(tmp_path_factory.mktemp("vmdkms"), "vmdkms", declared())


def lock(site: Site) -> str:
    """Declare the driver, lock it, and return what the program printed."""
    site.declare(lambda content: content["roles"].update(DRIVER))
    return site.cli("lock", str(site.file)).out


def _without_driver(content: dict[str, Any]) -> None:
    for role in DRIVER:
        content["roles"].pop(role, None)


@pytest.fixture(scope="session")
def site(file: Site) -> Iterator[Site]:
    """The machine, up and without the driver; its file asks for the driver and has its lock."""
    file.declare(_without_driver)
    with file.booted():
        lock(file)
        yield file
