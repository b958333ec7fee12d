"""One rack for the set: docker, containerd, podman and Slurm with pyxis on a worker, the registries on its head."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml

from rackwright.engine.run import apply
from rackwright.errors import ExitCode
from rackwright.plan.node_plan import PlanResult
from rackwright.secrets.store import store_of
from rackwright.status import Status
from rackwright.verify import verify
from tests.racks.containers import site_files
from tests.racks.serving import served
from tests.racks.site import Site

# The limits are below those of the machine's own processes: not every machine lets a container raise them.
# podman sets no limit of processes, since not every machine has the pids controller to give.
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
mirrors:
  apt_proxy: "http://10.77.0.1:3142"
  containers: "10.77.0.10:5000"
  files: "http://10.77.0.1:8080"
nodes:
  - {nodes: head1, roles: [head], addresses: {management: 10.77.0.10}}
  - {nodes: worker1, roles: [worker], addresses: {management: 10.77.0.11}}
roles:
  base: {}
  access: {users: [{name: ada, uid: 3000}]}
  registry_cache:
    plain_http: true
    registries:
      docker-io: {port: 5000, upstream: "http://10.77.0.10:5001", plain_http: true}
      site: {port: 5001, storage: /scratch/registry, anonymous: true}
      private: {port: 5002, auth: {user: ci, stored_as: registry_ci}}
  containerd:
    root: /scratch/containerd
    registries:
      "10.77.0.10:5000": {plain_http: true}
      "10.77.0.10:5001": {plain_http: true}
      "10.77.0.10:5002": {plain_http: true, auth: {user: ci, stored_as: registry_ci}}
    memlock_mib: 4
    nofile: 16384
  docker:
    users: [ada]
    data_root: /scratch/docker
    registries:
      "10.77.0.10:5000": {plain_http: true}
      "10.77.0.10:5001": {plain_http: true}
      "10.77.0.10:5002": {plain_http: true, auth: {user: ci, stored_as: registry_ci}}
    memlock_mib: 4
    nofile: 16384
  podman:
    graph_root: /scratch/podman
    rootless_root: /scratch/rootless
    registries:
      "10.77.0.10:5000": {plain_http: true}
      "10.77.0.10:5001": {plain_http: true}
      "10.77.0.10:5002": {plain_http: true, auth: {user: ci, stored_as: registry_ci}}
    memlock_mib: 4
    nofile: 16384
    pids_limit: 0
  munge: {}
  mariadb: {}
  slurm: {partitions: {main: {nodes: worker1, default: true}}}
"""

PRIVATE_REGISTRY = "10.77.0.10:5002"
PASSWORD = "of-the-registry-and-not-generated"
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


@dataclass(frozen=True)
class Travelled:
    """What an image's way from docker to the site's registry and back through the cache looked like."""

    in_site_registry: list[str]
    in_cache_before: list[str]
    in_cache_after: list[str]
    pulled: str
    """What `docker pull` and a container of the image printed."""


@pytest.fixture(scope="session")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of files that the site's mirror serves."""
    return tmp_path_factory.mktemp("mirror")


@pytest.fixture(scope="session")
def rack(tmp_path_factory: pytest.TempPathFactory, mirror: Path) -> Iterator[Site]:
    """The rack, applied."""
    declared = yaml.safe_load(_DECLARED)
    declared["roles"]["enroot_pyxis"] = {
        "on": ["worker"],
        "enroot_version": site_files.ENROOT,
        "pyxis_version": site_files.PYXIS,
        "sha256": site_files.make(mirror),
    }
    site = Site(tmp_path_factory.mktemp("containers"), "ct", declared)
    with site.booted(), served(site, mirror, "10.77.0.1"):
        with site.here():
            store_of(site.cluster).put("registry_ci", PASSWORD)
        site.apply()
        yield site


@pytest.fixture
def site(rack: Site, put_right: Callable[[Site], None]) -> Site:
    """The rack as declared, repaired after the previous test."""
    put_right(rack)
    return rack


@pytest.fixture(scope="session")
def image(rack: Site) -> Travelled:
    """shell:1 in docker: made of worker1's own shell, pushed to the site's registry, pulled by way of the cache."""
    rack.on("worker1", _MAKE_IMAGE)
    rack.on(
        "worker1",
        f"docker import /tmp/shell.tar {SITE_REGISTRY}/{IMAGE}; "
        f"docker push -q {SITE_REGISTRY}/{IMAGE}; docker rmi {SITE_REGISTRY}/{IMAGE}",
    )
    pushed, before = _repositories(rack, 5001), _repositories(rack, 5000)
    pulled = rack.on("worker1", "docker pull -q shell:1 && docker run --rm shell:1 /bin/sh -c 'echo ran'")
    return Travelled(pushed, before, _repositories(rack, 5000), pulled)


def bad(site: Site, expect: ExitCode, *roles: str) -> dict[tuple[str, str], Status]:
    """(node, check) to status, of everything that verify does not pass; of all roles unless some are named."""
    with site.here():
        report = verify(site.cluster, roles=frozenset(roles) or None)
    wrong = [result for result in report.results if result.status not in (Status.PASS, Status.OUT_OF_SCOPE)]
    assert report.exit_code == expect, wrong
    return {(result.node, result.check): result.status for result in wrong}


def apply_role(site: Site, role: str) -> PlanResult:
    """Apply one role; the plan that was carried out."""
    with site.here():
        applied = apply(site.cluster, roles=frozenset({role}))
    assert not applied.plan.failed, applied.plan.failed
    assert applied.result is None or not applied.result.failed, applied.result
    return applied.plan


def _repositories(site: Site, port: int) -> list[str]:
    catalog: dict[str, list[str]] = json.loads(
        site.on("worker1", f"curl -sf http://10.77.0.10:{port}/v2/_catalog")
    )
    return catalog["repositories"]
