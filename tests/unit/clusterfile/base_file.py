"""A small correct cluster file that the tests of mistakes spoil, one change at a time."""

from __future__ import annotations

from pathlib import Path

from rackwright.clusterfile.load import load_cluster
from rackwright.errors import ClusterFileError, Problem

BASE = """\
version: 1

cluster:
  name: demo
  domain: demo.test

defaults:
  os: debian-13
  sku: cpu-16c-64g

networks:
  mgmt:
    purpose: management
    cidr: 10.1.0.0/24
    gateway: 10.1.0.1
  store:
    purpose: storage
    cidr: 10.2.0.0/24
    mtu: 9000
    vlan: 20
  ib:
    purpose: fabric
    kind: infiniband
    cidr: 10.3.0.0/24
    rails: 2
    rail_prefix: 25

ssh:
  user: admin
  key: keys/id_ed25519

mirrors:
  apt: http://mirror.example.com/debian

skus:
  own-node:
    vendor: Example
    description: A server of ours
    sockets: 1
    cores_per_socket: 8
    threads_per_core: 2
    memory_mib: 65536
    sources:
      - {text: "the site's own order", read: 2026-11-20}

nodes:
  - nodes: head1
    roles: [head]
    addresses: {mgmt: 10.1.0.10}
  - nodes: w[1-4]
    roles: [worker]
    addresses:
      mgmt: 10.1.0.11
      ib: 10.3.0.11
    rack: r[1-2]
    position: 1
    switch: s[1-2]

roles:
  munge: {}
  mariadb:

burnin:
  floor_busbw_gbs: 10
  floor_source: measured here, 2026-11-20
"""


def change(*edits: tuple[str, str]) -> str:
    """The base file with each old text, which stands in it exactly once, replaced by the new one."""
    text = BASE
    for old, new in edits:
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the file"
        text = text.replace(old, new)
    return text


def problems_of(folder: Path, text: str | bytes) -> tuple[Problem, ...]:
    """What load_cluster says about a file of this content; nothing for a correct one."""
    file = folder / "demo.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    try:
        load_cluster(file)
    except ClusterFileError as error:
        return error.problems
    return ()
