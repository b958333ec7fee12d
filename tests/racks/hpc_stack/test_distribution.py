"""The distribution's MPI: a job over both workers, nothing left to do, drift found and repaired."""

from __future__ import annotations

import pytest

from rackwright.errors import ExitCode
from tests.racks.hpc_stack.conftest import bad, compile_on, run_job
from tests.racks.site import Site, operations

pytestmark = [pytest.mark.lab, pytest.mark.proof, pytest.mark.smoke]


def test_a_second_apply_is_empty_and_all_claims_hold(rack: Site):
    assert operations(rack.plan(0)) == set()
    assert bad(rack, ExitCode.CLEAN) == {}


def test_a_compiled_program_spans_both_workers(rack: Site):
    for node in ("worker1", "worker2"):
        assert "/lib/x86_64-linux-gnu/libmpi.so.40" in compile_on(rack, node, "mpicc")
    lines, _ = run_job(rack)
    assert lines == ["0 of 2 on worker1: 3 by Open MPI v5.0.", "1 of 2 on worker2: 3 by Open MPI v5.0."]


def test_a_removed_package_is_found_and_repaired(rack: Site):
    rack.on("worker2", "apt-get -qy remove openmpi-bin >/dev/null 2>&1")
    found = bad(rack, ExitCode.CHECK_FAILED, "hpc_stack")
    assert ("worker2", "the packages of MPI and its tools are installed") in found
    assert operations(rack.plan(2)) == {("worker2", "hpc_stack", "Install MPI and its tools")}
    rack.converge()
    assert bad(rack, ExitCode.CLEAN, "hpc_stack") == {}
