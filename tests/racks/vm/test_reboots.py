"""Machines that reboot and lose power under jobs and in the middle of an apply."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.racks.program import Running
from tests.racks.site import Site, operations
from tests.racks.slurm_jobs import in_service, run_job, state, submit, wait_for
from tests.racks.vm.conftest import APPLY_SECONDS, Times

pytestmark = [pytest.mark.lab, pytest.mark.proof]
_BOOT = "cat /proc/sys/kernel/random/boot_id"
_LEFT = "/var/spool/slurmd/pmix.4711.0"
"""As a step leaves it when its node loses power."""
_INSTALL = {"event": "start", "role": "base", "name": "Install the base packages"}


def test_jobs_go_on_while_the_head_reboots(rack: Site, times: Times) -> None:
    times.note("until the head's reboot")
    ends, stays = submit(rack, "worker1", 60), submit(rack, "worker2", 900)
    asked = "squeue -h -o '%i %S' | sort"
    before, boot = rack.on("head1", asked, 120), rack.on("head1", _BOOT)
    rack.cli("lab", "reboot", "head1", "--file", str(rack.file))
    times.note("head's reboot")
    assert rack.on("head1", _BOOT) != boot
    rack.on(
        "head1",
        "systemctl is-system-running --wait || :; until timeout 60 squeue -h && timeout 60 sacct -n; do sleep 5; done",
        900,
    )
    wait_for(rack, ends, "COMPLETED")  # while the head was away, or after it
    assert state(rack, stays) == "RUNNING"
    (line,) = [line for line in before.splitlines() if line.startswith(f"{stays} ")]
    assert line in rack.on("head1", asked, 120).splitlines(), "the job was started again"
    rack.on("head1", f"scancel {stays}", 120)
    wait_for(rack, stays, "CANCELLED")
    rows = rack.on("head1", f"sacct -n -X -P -j {ends},{stays} -o jobid,state,exitcode", 120).split()
    assert f"{ends}|COMPLETED|0:0" in rows
    assert any(row.startswith(f"{stays}|CANCELLED") for row in rows)
    in_service(rack, "worker1", "worker2")
    assert operations(rack.plan(0)) == set()


def _one_more_package(content: dict[str, Any]) -> None:
    content["roles"]["base"]["packages"].append("linux-headers-amd64")  # large: it takes minutes


def _unpacking(site: Site, running: Running) -> None:
    """Until dpkg is at work on worker1."""
    site.wait_for_event(running, timeout=900, node="worker1", **_INSTALL)
    site.on(
        "worker1",
        "for try in $(seq 600); do pgrep -x dpkg >/dev/null && exit 0; sleep 0.2; done; exit 1",
        300,
    )


def test_a_power_cut_in_the_middle_of_an_installation_is_repaired(
    rack: Site, times: Times, record_property: Callable[[str, object], None]
) -> None:
    with rack.declaring(_one_more_package):
        running = rack.start("apply", str(rack.file), "--yes")
        _unpacking(rack, running)
        rack.on("worker1", f"mkdir {_LEFT} && sync")
        rack.fault("worker1", "power-cut")
        ran = running.wait(APPLY_SECONDS)
        assert ran.status in (1, 4), ran
        assert "worker1" in ran.out
        rack.heal("worker1")
        rack.on("worker1", "systemctl is-system-running --wait || :; sleep 15", 900)  # slurmd has registered
        rack.on("worker1", f"test ! -e {_LEFT}")
        in_service(rack, "worker1")
        rack.cli("apply", str(rack.file), "--yes", timeout=APPLY_SECONDS)
        times.note("power cut and the apply after it")
        assert rack.on("worker1", "dpkg --audit; dpkg -s linux-headers-amd64 | grep ^Status:", 300) == (
            "Status: install ok installed\n"
        )
        assert operations(rack.plan(0, full=True)) == set()
    in_service(rack, "worker1", "worker2")
    assert run_job(rack, "worker1", "--mem=64", "uname -n") == "worker1\nstatus 0\n"
    record_property("times", times)
