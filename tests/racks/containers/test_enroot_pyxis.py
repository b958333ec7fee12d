"""enroot_pyxis on a node with Slurm: fetched by digest, built against the Slurm that is there, known to srun."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
import yaml

from rackwright.lab import names, network
from rackwright.lab.rack import Rack
from tests.racks.containers import site_files
from tests.racks.containers.test_containers import bad
from tests.racks.slurm.site import Site, operations

pytestmark = pytest.mark.lab

_DECLARED = """\
version: 1
cluster: {name: "", domain: lab.test}
defaults: {os: debian-13, platform: container, sku: lab-node, lab: {cpus: 2, memory_mib: 2048}}
networks:
  management: {purpose: management, cidr: 10.77.0.0/24, gateway: 10.77.0.1}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
mirrors: {apt_proxy: "http://10.77.0.1:3142", files: "http://10.77.0.1:8080"}
nodes:
  - {nodes: head1, roles: [head, worker], addresses: {management: 10.77.0.10}}
roles:
  base: {}
  munge: {}
  mariadb: {}
  slurm: {partitions: {main: {nodes: head1, default: true}}}
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A node with Slurm, applied once, and a mirror of files on the rack's bridge."""
    folder = tmp_path_factory.mktemp("enroot")
    mirror = folder / "files"
    mirror.mkdir()
    declared = yaml.safe_load(_DECLARED)
    declared["roles"]["enroot_pyxis"] = {
        "enroot_version": site_files.ENROOT,
        "pyxis_version": site_files.PYXIS,
        "sha256": site_files.make(mirror),
    }
    site = Site(folder, f"ep{os.getpid()}", declared)
    server = [sys.executable, "-m", "http.server", "--bind", "10.77.0.1", "--directory", str(mirror), "8080"]
    try:
        site.cli("lab", "up", str(site.file))
        command = network.inside(names.namespace(site.name), server)
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            try:
                site.apply()
                yield site
            finally:
                process.terminate()
    finally:
        if site.name in Rack.names():
            Rack.named(site.name).down()


def test_srun_knows_the_flag_and_runs_jobs(site: Site):
    assert operations(site.plan(0)) == set()
    assert not {check for _, check in bad(site, 0)}
    assert "--container-image=IMAGE" in site.on("head1", "srun --help")
    assert site.on("head1", "srun --container-image=any echo ran") == "ran\n"


def test_a_build_for_another_slurm_is_done_again(site: Site):
    """As after an upgrade of Slurm: its version is in the mark."""
    site.on("head1", "echo '0.24.0 slurm-wlm 22.05.8' >/usr/local/share/pyxis/rackwright-built")
    assert ("head1", "pyxis was built for the installed Slurm") in bad(site, 3)
    assert ("head1", "enroot_pyxis", "Build pyxis") in operations(site.plan(2))
    site.apply()
    assert operations(site.plan(0)) == set()


def test_another_file_than_declared_never_lands(site: Site):
    site.on("head1", "apt-get -qy remove enroot+caps >/dev/null; rm /var/cache/rackwright/*caps*")
    file = f"enroot+caps_{site_files.ENROOT}-1_amd64.deb"
    path = site.folder / "files" / file
    right = path.read_bytes()
    path.write_bytes(right + b"x")
    failed = site.apply(1)
    assert "is declared" in failed.out + failed.err
    assert site.on("head1", "ls /var/cache/rackwright").split() == [
        "enroot_4.1.2-1_amd64.deb",
        "pyxis-0.24.0.tar.gz",
    ]
    path.write_bytes(right)
    site.apply()
    assert operations(site.plan(0)) == set()
