"""Virtual machines that are declared to have GPUs: one builds their driver, one hands their device files to jobs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from rackwright.lock.content import GroupLock
from rackwright.lock.lock_file import read_lock
from tests.racks.site import Site

BUILDER = "gpu12"
"""Debian 12: its lock asks for Debian's NVIDIA driver, which DKMS builds for a kernel that the machine then boots."""
SLURM = "head1"
"""Debian 13: a head that is its only worker."""
BUILD_SECONDS = 7200
"""Two minutes on a quiet machine, 72 under emulation on two cores (2026-11-23)."""
APPLY_SECONDS = 2400
GPUS = 2
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
    description: a virtual machine of the lab that is declared to have two T4
    sockets: 1
    cores_per_socket: 2
    threads_per_core: 1
    memory_mib: 2048
    gpus: {model: T4, gres_type: t4, count: 2, memory_mib: 15360, architecture: turing, nvswitch: none}
    sources: [{text: made up for the lab, read: 2026-11-23}]
roles:
  base: {}
"""
DRIVER: dict[str, dict[str, str]] = {"kernel": {}, "nvidia_driver": {}}
"""Without the role persistence: its daemon ends at once where there is no GPU."""
_SLURM = """\
access: {users: [{name: ada, uid: 3000}]}
munge: {}
mariadb: {}
slurm:
  gres_autodetect: "off" # Slurm would ask a driver for the GPUs
  memory_headroom_mib: 64
  partitions: {main: {nodes: head1, default: true, max_time: 1-00:00:00}}
  accounts: {research: {description: Research groups}}
  users: {ada: {default_account: research}}
  timeouts: {message: 100, unkillable_step: 500, tcp: 60}
"""


def _declared(node: str, system: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(_DECLARED)
    addresses = {"management": "10.78.0.10"}
    content["nodes"] = [{"nodes": node, "roles": ["head", "worker"], "os": system, "addresses": addresses}]
    return content


@pytest.fixture(scope="session")
def file(tmp_path_factory: pytest.TempPathFactory) -> Site:
    """Cluster file of a builder that is down."""
    content = _declared(BUILDER, "debian-12")
    content["gpu_stack"] = {"source": "distribution", "cuda": "none"}
    return Site(tmp_path_factory.mktemp("vmdkms"), "vmdkms", content)


def lock(site: Site) -> str:
    """Declare the driver, lock it, and return what the program printed."""
    site.declare(lambda content: content["roles"].update(DRIVER))
    return site.cli("lock", str(site.file)).out


def locked(site: Site) -> GroupLock:
    """What the lock of the builder's file has for it."""
    group = read_lock(site.cluster).group_of(site.cluster.by_name[BUILDER])
    assert group is not None
    return group


@pytest.fixture(scope="module")
def builder(file: Site) -> Iterator[Site]:
    """The machine, up and without the driver, which its boot image lacks too; its file asks for it and has its lock.

    The image has what takes an emulated machine half an hour and is not in question: the locked kernel beside the
    newest, which boots, its headers and DKMS. An initramfs has the modules of this machine alone.
    """
    lock(file)
    of_the_kernel = sorted(locked(file).components["kernel"])

    def without_driver(content: dict[str, Any]) -> None:
        for role in DRIVER:
            del content["roles"][role]
        content["roles"]["base"]["packages"] = ["dkms", *of_the_kernel]

    file.declare(without_driver)
    with file.booted():
        file.on(BUILDER, "echo MODULES=dep >/etc/initramfs-tools/conf.d/small")
        lock(file)
        yield file


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The machine that is head and worker, applied; it has the device files of its GPUs, and nothing behind them."""
    content = _declared(SLURM, "debian-13")
    content["roles"].update(yaml.safe_load(_SLURM))
    site = Site(tmp_path_factory.mktemp("vmgres"), "vmgres", content)
    with site.booted():
        for number in range(GPUS):
            site.on(SLURM, f"mknod -m 666 /dev/nvidia{number} c 195 {number}")
        site.cli("apply", str(site.file), "--yes", timeout=APPLY_SECONDS)
        yield site
