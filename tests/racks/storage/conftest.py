"""A head that serves NFS and two workers that mount it, each a virtual machine with its own drives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml

from tests.racks.patience import APPLY_SECONDS
from tests.racks.site import Site

HEAD, WORKERS = "head1", ("worker1", "worker2")
SHARED = ("/shared/home", "/shared/data", "/shared/software", "/shared/ckpt")
_DECLARED = """\
version: 1
cluster: {name: "", domain: store.test}
defaults: {os: debian-13, platform: vm, sku: three-drives, lab: {cpus: 2, memory_mib: 2048}}
networks:
  management: {purpose: management, cidr: 10.89.0.0/24, gateway: 10.89.0.1}
ssh:
  user: rack
  key: .lab/id_ed25519
  known_hosts: .lab/known_hosts
  connect_timeout_seconds: 60
  command_timeout_seconds: 3600
  time_factor: 10
mirrors: {apt_proxy: "http://10.89.0.1:3142"}
skus:
  three-drives:
    vendor: rackwright
    description: Lab virtual machine with three NVMe drives
    sockets: 1
    cores_per_socket: 2
    threads_per_core: 1
    memory_mib: 2048
    numa_nodes: 1
    nics: [{purpose: management, kind: ethernet, speed_gbps: 10}]
    nvme: [{count: 3, size_gb: 2}]
    sources: [{text: "By definition: the size the lab rack gives it", read: 2026-11-26}]
storage:
  home: {kind: nfs, purpose: home, servers: [head1], export: /srv/home, path: /shared/home, quota: {gib: 1}}
  data:
    kind: nfs
    purpose: data
    servers: [head1]
    export: /srv/data
    path: /shared/data
    nodes: "worker[1-2]"
    floor:
      read_gbs: 0.0001
      write_gbs: 0.0001
      together_read_gbs: 0.0001
      together_write_gbs: 0.0001
      metadata_ops: 1
      source: {text: "lab floor: what an emulated machine passes and a broken server does not", read: 2026-11-26}
    bench: {size_mib: 32, block_kib: 1024, jobs: 2, files: 50, timeout_seconds: 300, user: ada}
  software:
    kind: nfs
    purpose: software
    servers: [head1]
    export: /srv/software
    path: /shared/software
    read_only: true
    nodes: "worker[1-2]"
  ckpt:
    kind: nfs
    purpose: checkpoint
    servers: [head1]
    export: /spare/ckpt
    path: /shared/ckpt
    nodes: "worker[1-2]"
    floor:
      read_gbs: 0.0001
      write_gbs: 0.0001
      together_read_gbs: 0.0001
      together_write_gbs: 0.0001
      metadata_ops: 1
      source: {text: "lab floor: what an emulated machine passes and a broken server does not", read: 2026-11-26}
    bench:
      size_mib: 32
      block_kib: 1024
      jobs: 2
      files: 50
      timeout_seconds: 600
      user: ada
      checkpoint: {size_mib: 8, ranks_per_node: 2, nodes: 2, interval_seconds: 600}
  scratch: {kind: local, purpose: scratch, path: /scratch, nodes: "worker[1-2]"}
nodes:
  - nodes: head1
    roles: [head]
    addresses: {management: 10.89.0.10}
    options:
      storage_layout:
        arrays: {store: {level: 1, disks: [a, b]}}
        filesystems:
          /srv: {"on": store, mount_options: [noatime, uquota]}
          /spare: {"on": c}
  - nodes: worker[1-2]
    roles: [worker]
    addresses: {management: 10.89.0.11}
    options:
      storage_layout:
        arrays: {scratch: {level: 1, disks: [a, b]}}
        filesystems: {/scratch: {"on": scratch, mount_options: [noatime, prjquota]}}
roles:
  base: {}
  access:
    users:
      - {name: ada, uid: 3000}
      - {name: grace, uid: 3001}
  tuning: {}
  time: {max_offset_seconds: 0.25}
  firewall: {}
  storage_layout:
    disks:
      a: {serials: {head1: head1-data0, worker1: worker1-data0, worker2: worker2-data0}}
      b: {serials: {head1: head1-data1, worker1: worker1-data1, worker2: worker2-data1}}
      c: {serials: {head1: head1-data2, worker1: worker1-data2, worker2: worker2-data2}}
  nfs_server: {}
  nfs_client: {}
  home: {}
  scratch: {quota_gib: 1}
  storage_bench: {torch: true}
  containerd: {root: /scratch/containerd}
  munge: {}
  mariadb: {}
  slurm:
    memory_headroom_mib: 64
    private_tmp_dir: /scratch/slurm
    partitions:
      main: {nodes: "worker[1-2]", default: true, max_time: 1-00:00:00}
    accounts:
      research: {description: Research groups}
    users:
      ada: {default_account: research}
    timeouts: {message: 100, unkillable_step: 500, tcp: 60}
"""


def declared() -> dict[str, Any]:
    """The content of the rack's cluster file."""
    content: dict[str, Any] = yaml.safe_load(_DECLARED)
    return content


@pytest.fixture(scope="session")
def booted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied once."""
    site = Site(tmp_path_factory.mktemp("storage"), "store", declared())
    with site.booted():
        site.cli("apply", str(site.file), "--yes", timeout=APPLY_SECONDS)
        yield site


@pytest.fixture
def rack(booted: Site, put_right: Callable[[Site], None]) -> Site:
    """The rack as declared: what a failed test left behind is repaired first."""
    put_right(booted)
    return booted
