"""The cluster files of the two racks: one whose leaves can be cabled wrongly, one whose machines have RDMA."""

from __future__ import annotations

from typing import Any

import yaml

_CABLED = """\
version: 1
cluster: {name: "", domain: cabling.test}
defaults: {os: debian-13, platform: container, sku: lab-node, lab: {cpus: 1, memory_mib: 512}}
networks:
  management: {purpose: management, cidr: 10.95.0.0/24, gateway: 10.95.0.1}
  fabric: {purpose: fabric, kind: ethernet, cidr: 10.96.0.0/24, rails: 2, mtu: 9000}
fabrics:
  fabric: {port_name: "swp{port}"}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
mirrors: {apt_proxy: "http://10.95.0.1:3142"}
nodes:
  - {nodes: head1, roles: [head], addresses: {management: 10.95.0.10}}
  - nodes: worker[1-4]
    roles: [worker]
    addresses: {management: 10.95.0.11, fabric: 10.96.0.11}
    rack: r[1-2]
    position: 1
    switch: ["leaf[1,3]", "leaf[2,4]"] # a unit of two nodes: leaf1 and leaf2, another: leaf3 and leaf4
roles:
  base: {}
  lldp: {}
"""

_RDMA = """\
version: 1
cluster: {name: "", domain: rdma.test}
defaults: {os: debian-13}
networks:
  management: {purpose: management, cidr: 10.97.0.0/24, gateway: 10.97.0.1}
  fabric: {purpose: fabric, kind: roce, cidr: 10.98.0.0/24, rails: 2, mtu: 9000}
fabrics:
  fabric: {port_name: "swp{port}"}
ssh:
  user: rack
  key: .lab/id_ed25519
  known_hosts: .lab/known_hosts
  connect_timeout_seconds: 60
  command_timeout_seconds: 3600
  time_factor: 10
mirrors: {apt_proxy: "http://10.97.0.1:3142"}
skus:
  two-rails:
    vendor: rackwright
    description: A virtual machine with a management port and two fabric ports that carry soft-RoCE
    sockets: 1
    cores_per_socket: 2
    threads_per_core: 1
    memory_mib: 1536
    nics:
      - {purpose: management, kind: ethernet, speed_gbps: 10}
      - {purpose: fabric, kind: roce, speed_gbps: 10, rail: 0}
      - {purpose: fabric, kind: roce, speed_gbps: 10, rail: 1}
    sources:
      - {text: "By definition: the smallest machine that has two rails", read: 2026-11-25}
nodes:
  - nodes: head1
    roles: [head]
    platform: container
    sku: lab-node
    lab: {cpus: 2, memory_mib: 1024}
    addresses: {management: 10.97.0.10}
    rack: r1
    position: 1
  - nodes: worker[1-2]
    roles: [worker]
    platform: vm
    sku: two-rails
    lab: {cpus: 2, memory_mib: 1536}
    addresses: {management: 10.97.0.11, fabric: 10.98.0.11}
    rack: r1
    position: 2
    switch: [leaf1, leaf2]
roles:
  base: {}
  access:
    users:
      - {name: ada, uid: 3000}
  network:
    interfaces:
      mgmt0: {pci: "0000:00:04.0"}
      rail0: {pci: "0000:00:05.0"}
      rail1: {pci: "0000:00:06.0"}
    networks:
      management: {"on": mgmt0} # quoted for these tests' own reader, to which a bare `on` is true
      fabric: {"on": [rail0, rail1]}
    policy_routing: rails
  tuning: {}
  time: {max_offset_seconds: 0.25}
  lldp: {}
  rdma:
    devices:
      rxe_rail0: {soft: rxe, rail: 0}
      rxe_rail1: {soft: rxe, rail: 1}
  roce: {dscp: 26, priority: 3, cnp_dscp: 48, cnp_priority: 6}
  nccl: {}
  munge: {}
  mariadb: {}
  hpc_stack: {compilers: false, mpi4py: true}
  slurm:
    memory_headroom_mib: 64
    partitions:
      main: {nodes: "worker[1-2]", default: true, max_time: 1-00:00:00}
    accounts:
      research: {description: Research groups}
    users:
      ada: {default_account: research}
    timeouts: {message: 100, unkillable_step: 500, tcp: 60}
burnin:
  engine: mpi
  max_bytes: 1048576
  iterations: 3
  floor_busbw_gbs: 0.0001
  floor_source: "lab floor: 0.1 MB/s, which an emulated machine passes and a broken transport does not"
"""


def _read(text: str) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(text)
    return content


def cabled() -> dict[str, Any]:
    """A head and four workers as containers, two rails, four leaves."""
    return _read(_CABLED)


def rdma() -> dict[str, Any]:
    """A head as a container and two workers as virtual machines with soft-RoCE on two rails."""
    return _read(_RDMA)
