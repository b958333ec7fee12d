"""UCX and Open MPI built on a worker: interrupted once, then whole; taken over by another one; a job over both."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from rackwright.errors import ExitCode
from tests.racks.hpc_stack import sources
from tests.racks.hpc_stack.conftest import bad, compile_on, run_job
from tests.racks.program import Ran
from tests.racks.site import Site, operations

pytestmark = [pytest.mark.lab, pytest.mark.proof]

WORKERS = ("worker1", "worker2")
_MINUTES = 90
# gcc 14 wants <cstdint> where this UCX leaves it out, and warns of more than its -Werror knew.
_UCX = ("CFLAGS=-O1 -Wno-error", "CXX=g++ -include cstdint")
_OPENMPI = ("CFLAGS=-O1", "--disable-mpi-fortran", "--disable-oshmem", "--disable-io-romio")


@pytest.fixture(scope="session")
def declared(rack: Site, mirror: Path) -> Site:
    """The rack with `mpi: build` declared, and nothing built."""
    found = sources.fetch(mirror)
    parts = {
        "openmpi": {"version": sources.OPENMPI, "flags": list(_OPENMPI)},
        "ucx": {"version": sources.UCX, "flags": list(_UCX)},
    }
    for part, (file, sha256) in found.items():
        parts[part] |= {"file": file, "sha256": sha256}
    options = {"mpi": "build", "mpi4py": False, "build_minutes": _MINUTES, **parts}
    rack.declare(lambda file: file["roles"].update(hpc_stack=options))
    return rack


@pytest.fixture(scope="session")
def interrupted(declared: Site) -> Ran:
    """An apply during which worker1's compilers are killed in the middle of UCX."""
    running = declared.start("apply", str(declared.file), "--yes", "--limit", "worker1")
    deadline = time.monotonic() + 1800
    while not declared.on("worker1", "ls /var/tmp/rackwright-ucx.*/source/src/ucs/.libs 2>/dev/null || :"):
        assert time.monotonic() < deadline, "UCX is not being built"
        assert running.process.poll() is None, running.wait()
        time.sleep(1)
    declared.on("worker1", "pkill -9 -f '^sh -eu /var/tmp/rackwright-ucx'")
    return running.wait()


_SHARE = """\
import socket
with socket.create_server(("", 9999)) as server:
    connection, _ = server.accept()
    with connection, open("/var/tmp/built.tar", "rb") as file:
        connection.sendfile(file)
"""


@pytest.fixture(scope="session")
def built(declared: Site, interrupted: Ran) -> Site:
    """Built on worker1, and copied to worker2 as an image would have it: building again would take as long."""
    ran = declared.cli("apply", str(declared.file), "--yes", "--limit", "worker1", timeout=_MINUTES * 60)
    assert "done" in ran.out + ran.err
    declared.on("worker1", "tar -cf /var/tmp/built.tar -C /opt rackwright")
    declared.on("worker1", f"systemd-run --collect python3 -c '{_SHARE}'")
    declared.on(
        "worker2",
        "for try in $(seq 20); do bash -c 'tar -xf - -C /opt </dev/tcp/10.95.0.11/9999' && break; sleep 0.5; done",
    )
    declared.apply()
    assert (
        declared.on("worker2", "ls /var/log/rackwright-* 2>/dev/null || :") == ""
    )  # nothing was built there
    return declared


def test_an_interrupted_build_leaves_nothing_that_looks_whole(declared: Site, interrupted: Ran):
    assert interrupted.status == 1, interrupted
    assert "UCX 1.13.1 was not built; the whole log is in /var/log/rackwright-ucx-1.13.1-" in (
        interrupted.out + interrupted.err
    )
    assert declared.on("worker1", "ls -A /opt/rackwright; ls -d /var/tmp/rackwright-* 2>/dev/null || :") == ""


def test_a_second_apply_is_empty_and_all_claims_hold(built: Site):
    assert operations(built.plan(0)) == set()
    assert bad(built, ExitCode.CLEAN) == {}


def test_a_program_of_the_built_compiler_spans_both_workers_by_ucx(built: Site):
    for node in WORKERS:
        loaded = compile_on(built, node, "/opt/rackwright/openmpi/bin/mpicc")
        assert "libmpi.so.40 => /opt/rackwright/openmpi/lib/" in loaded
        assert (
            "libpmix.so.2 => /usr/lib/x86_64-linux-gnu/pmix2/lib/" in loaded
        )  # the OS's, as Slurm's plugin loads
    lines, printed = run_job(
        built,
        "OMPI_MCA_pml=ucx",
        "OMPI_MCA_pml_ucx_tls=any",
        "OMPI_MCA_pml_ucx_devices=any",
        "UCX_TLS=tcp,self",
        "UCX_LOG_LEVEL=info",
    )
    assert lines == ["0 of 2 on worker1: 3 by Open MPI v5.0.", "1 of 2 on worker2: 3 by Open MPI v5.0."]
    assert "tcp/" in printed, printed  # UCX's own word for the transport it chose


def test_a_login_shell_finds_the_built_mpi(built: Site):
    assert built.on("worker1", "bash -lc 'command -v mpicc; mpirun --version'").splitlines()[:2] == [
        "/opt/rackwright/openmpi/bin/mpicc",
        "mpirun (Open MPI) 5.0.7",
    ]


def test_a_link_to_another_build_is_found_and_put_right_without_building(built: Site):
    built.on("worker2", "ln -sfn ucx-elsewhere /opt/rackwright/ucx")
    found = bad(built, ExitCode.CHECK_FAILED, "hpc_stack")
    assert ("worker2", "everything was built as declared") in found
    began = time.monotonic()
    built.converge()
    assert time.monotonic() - began < 120  # the folder is there
    assert bad(built, ExitCode.CLEAN, "hpc_stack") == {}
