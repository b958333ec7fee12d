"""`rackwright reboot` on machines with their own kernels: under jobs, without return, and with a failing check."""

from __future__ import annotations

import pytest

from tests.racks.node.conftest import APPLY_SECONDS, DRAIN_SECONDS
from tests.racks.program import Ran
from tests.racks.site import Site, operations
from tests.racks.slurm_jobs import in_service, state, submit, wait_for

pytestmark = [pytest.mark.lab, pytest.mark.proof]
_BOOT = "cat /proc/sys/kernel/random/boot_id"
_SECONDS = 2400


def _reboot(site: Site, limit: str, *options: str, expect: int = 0) -> Ran:
    arguments = ("reboot", str(site.file), "--limit", limit, "--yes", *options)
    return site.cli(*arguments, expect=expect, timeout=_SECONDS)


def _state(site: Site, node: str) -> str:
    """State and reason, as Slurm has them."""
    return site.on("head1", f"sinfo -h -N -n {node} -o '%T %E'", 120).strip()


def test_the_head_reboots_alone_and_jobs_go_on(site: Site) -> None:
    job = submit(site, "worker1", 1800)
    before = {name: site.on(name, _BOOT) for name in site.nodes}
    ran = _reboot(site, "head1")
    assert "reboot: 1 of 1 nodes were rebooted and pass their checks" in ran.out, ran
    after = {name: site.on(name, _BOOT) for name in site.nodes}
    assert [name for name in site.nodes if after[name] != before[name]] == ["head1"]
    assert state(site, job) == "RUNNING"
    site.on("head1", f"scancel {job}", 120)
    wait_for(site, job, "CANCELLED")


def test_a_worker_with_a_job_is_left_until_its_jobs_may_be_killed(site: Site) -> None:
    job, boot = submit(site, "worker1", 1800), site.on("worker1", _BOOT)
    ran = _reboot(site, "worker1", expect=1)
    assert f"its jobs did not end within {DRAIN_SECONDS} s; it was left as it is" in ran.out, ran
    assert site.on("worker1", _BOOT) == boot
    assert state(site, job) == "RUNNING"
    ran = _reboot(site, "worker1", "--kill-jobs", "--confirm", "yes", expect=1)
    assert "'yes' is not the cluster's name; nothing was changed" in ran.err, ran
    assert state(site, job) == "RUNNING"
    ran = _reboot(site, "worker1", "--kill-jobs", "--confirm", site.name)
    assert f"{job} (ada, wrap)" in ran.err, ran
    assert site.on("worker1", _BOOT) != boot
    wait_for(site, job, "CANCELLED")
    assert _state(site, "worker1") == "idle none", "resumed, without Slurm's own reason for the reboot"
    assert operations(site.plan(0)) == set()


def test_a_worker_whose_verification_fails_stays_drained_and_the_waves_stop(site: Site) -> None:
    boot = site.on("worker2", _BOOT)
    site.on("worker1", "systemctl mask --now chrony")
    ran = _reboot(site, "worker[1-2]", expect=1)
    assert "worker1: failed: it did not pass after its reboot: time: " in ran.out, ran
    assert "worker2: failed: not started: worker1 did not come back after the reboot" in ran.out, ran
    assert site.on("worker2", _BOOT) == boot
    run = site.runs()[-1].run
    assert _state(site, "worker1") == f"drained rackwright: {run}"
    site.on("worker1", "systemctl unmask chrony")
    site.cli("apply", str(site.file), "--yes", timeout=APPLY_SECONDS)
    in_service(site, "worker1", "worker2")


def test_a_worker_that_does_not_return_is_named_with_its_console(site: Site) -> None:
    running = site.start("reboot", str(site.file), "--limit", "worker[1-2]", "--yes", "--boot-timeout", "120")
    site.wait_for_event(running, timeout=900, event="reboot")
    site.cli("lab", "power", "worker1", "off", "--file", str(site.file))
    ran = running.wait(_SECONDS)
    assert ran.status == 1, ran  # worker2 was not begun
    assert "worker1: lost: reboot: it did not return within 120 s" in ran.out, ran
    assert "last lines of its serial console:" in ran.out, ran
    assert "worker2: failed: not started: worker1 did not come back after the reboot" in ran.out, ran
    site.cli("lab", "power", "worker1", "on", "--file", str(site.file))
    run = site.runs()[-1]
    assert run.left_drained == ["worker1"]
    site.cli("resume", run.run, "--yes", timeout=2 * _SECONDS)
    in_service(site, "worker1", "worker2")
