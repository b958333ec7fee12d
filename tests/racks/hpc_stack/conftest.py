"""One rack: a head and two workers under Slurm, with the distribution's MPI first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from rackwright.errors import ExitCode
from rackwright.status import Status
from rackwright.verify import verify
from tests.racks.serving import served
from tests.racks.site import Site

_DECLARED = """\
version: 1
cluster: {name: "", domain: lab.test}
defaults:
  os: debian-13
  platform: container
  sku: lab-node
  lab: {cpus: 2, memory_mib: 3072}
networks:
  management: {purpose: management, cidr: 10.95.0.0/24, gateway: 10.95.0.1}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
mirrors:
  apt_proxy: "http://10.95.0.1:3142"
  files: "http://10.95.0.1:8080"
nodes:
  - {nodes: head1, roles: [head], addresses: {management: 10.95.0.10}}
  - {nodes: "worker[1-2]", roles: [worker], addresses: {management: 10.95.0.11}}
roles:
  base: {}
  munge: {}
  mariadb: {}
  hpc_stack: {mpi4py: false}
  slurm: {}
"""


@pytest.fixture(scope="session")
def mirror(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that the site's mirror serves."""
    return tmp_path_factory.mktemp("mirror")


@pytest.fixture(scope="session")
def rack(tmp_path_factory: pytest.TempPathFactory, mirror: Path) -> Iterator[Site]:
    """The rack with the distribution's MPI."""
    declared: dict[str, Any] = yaml.safe_load(_DECLARED)
    site = Site(tmp_path_factory.mktemp("hpc"), "hp", declared)
    with site.booted(), served(site, mirror, "10.95.0.1"):
        site.apply()
        yield site


def bad(site: Site, expect: ExitCode, *roles: str) -> dict[tuple[str, str], Status]:
    """(node, check) to status, of everything that verify does not pass."""
    with site.here():
        report = verify(site.cluster, roles=frozenset(roles) or None)
    wrong = [result for result in report.results if result.status not in (Status.PASS, Status.OUT_OF_SCOPE)]
    assert report.exit_code == expect, wrong
    return {(result.node, result.check): result.status for result in wrong}


_PROGRAM = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
  int rank, size, mine, total, length;
  char host[MPI_MAX_PROCESSOR_NAME], library[MPI_MAX_LIBRARY_VERSION_STRING];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  mine = 1 << rank;
  MPI_Allreduce(&mine, &total, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Get_processor_name(host, &length);
  MPI_Get_library_version(library, &length);
  printf("%d of %d on %s: %d by %.14s\n", rank, size, host, total, library);
  MPI_Finalize();
  return 0;
}
"""


def compile_on(site: Site, node: str, mpicc: str) -> str:
    """The program of the job, compiled on a node; what the loader finds for it."""
    return site.on(
        node,
        f"cat >/tmp/reduce.c <<'C'\n{_PROGRAM}\nC\n{mpicc} -o /usr/local/bin/reduce /tmp/reduce.c\nldd /usr/local/bin/reduce",
    )


def run_job(site: Site, *environment: str) -> tuple[list[str], str]:
    """The program on both workers, started by srun through PMIx: its sorted lines, and what else was printed."""
    command = f"srun -Q -N 2 -n 2 --mpi=pmix env {' '.join(environment)} /usr/local/bin/reduce 2>&1"
    printed = site.on("head1", command).splitlines()
    return sorted(line for line in printed if " of 2 on " in line), "\n".join(printed)
