"""One rack for the set: applied once, with an image that a worker makes of its own shell."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from rackwright.lab.rack import Rack
from tests.racks.slurm.site import Site

# Limits below those of the machine's own processes: not every machine lets a container raise them.
# No pids controller is needed, since not every machine has one to give.
_DECLARED = """\
version: 1
cluster: {name: "", domain: lab.test}
defaults:
  os: debian-13
  platform: container
  sku: lab-node
  lab: {cpus: 2, memory_mib: 2048, containers: true}
networks:
  management: {purpose: management, cidr: 10.77.0.0/24, gateway: 10.77.0.1}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
mirrors: {apt_proxy: "http://10.77.0.1:3142", containers: "10.77.0.10:5000"}
nodes:
  - {nodes: head1, roles: [head], addresses: {management: 10.77.0.10}}
  - {nodes: worker1, roles: [worker], addresses: {management: 10.77.0.11}}
roles:
  base: {}
  access: {users: [{name: ada, uid: 3000}]}
  registry_cache:
    registries:
      docker-io: {port: 5000, upstream: "http://10.77.0.10:5001"}
      site: {port: 5001, storage: /scratch/registry}
  containerd:
    root: /scratch/containerd
    insecure_registries: ["10.77.0.10:5000", "10.77.0.10:5001"]
    memlock_mib: 4
    nofile: 16384
  docker:
    users: [ada]
    data_root: /scratch/docker
    insecure_registries: ["10.77.0.10:5000", "10.77.0.10:5001"]
    memlock_mib: 4
    nofile: 16384
  podman:
    graph_root: /scratch/podman
    rootless_root: /scratch/rootless
    insecure_registries: ["10.77.0.10:5000", "10.77.0.10:5001"]
    memlock_mib: 4
    nofile: 16384
    pids_limit: 0
"""

SITE_REGISTRY = "10.77.0.10:5001"
IMAGE = "library/shell:1"

_MAKE_IMAGE = """\
cd "$(mktemp -d)"
mkdir -p root/bin root/tmp root/proc root/dev root/sys root/etc
for program in sh cat sleep; do cp "/bin/$program" root/bin/; done
for library in $(ldd root/bin/* | grep -o '/[^ ]*' | grep '[.]so' | sort -u); do
  mkdir -p "root${library%/*}"; cp -L "$library" "root$library"
done
tar -C root -cf /tmp/shell.tar .
"""


def declared() -> dict[str, Any]:
    """The content of the set's cluster file."""
    content: dict[str, Any] = yaml.safe_load(_DECLARED)
    return content


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied once, with /tmp/shell.tar on its worker."""
    site = Site(tmp_path_factory.mktemp("containers"), f"ct{os.getpid()}", declared())
    try:
        site.cli("lab", "up", str(site.file))
        site.apply()
        site.on("worker1", _MAKE_IMAGE)
        yield site
    finally:
        if site.name in Rack.names():
            Rack.named(site.name).down()
