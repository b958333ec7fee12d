"""Jobs and logins of ada, a user without any right of an administrator."""

from __future__ import annotations

import shlex
import time

from tests.racks.site import Site

PATIENCE = 900.0
"""Seconds for what takes some twenty on a machine that is not emulated."""
JOB_SECONDS = 600
_SSH = (
    "ssh -o BatchMode=yes -o ConnectTimeout=60 -o PreferredAuthentications=hostbased "
    "-o HostbasedAuthentication=yes -o UserKnownHostsFile=none"
)


def as_ada(site: Site, node: str, command: str, timeout: float = JOB_SECONDS) -> str:
    """What a command of hers prints on a node, with its exit status in the last line."""
    script = f"cd /; runuser -u ada -- sh -c {shlex.quote(command)} 2>&1 </dev/null && echo status 0 || echo status $?"
    return site.on(node, script, timeout)


def run_job(site: Site, node: str, options: str, script: str) -> str:
    """What a script prints as her job on a worker, with srun's exit status in the last line."""
    return as_ada(
        site, "head1", f"srun -Q --mpi=none -t 9 -n 1 -w {node} {options} sh -c {shlex.quote(script)}"
    )


def log_in(site: Site, node: str, command: str) -> str:
    """What a command prints in her login from the head, with ssh's exit status in the last line."""
    return as_ada(site, "head1", f"{_SSH} {node} {shlex.quote(command)}")


def submit(site: Site, node: str, seconds: int, options: str = "") -> str:
    """The number of a job of hers that runs on a worker for a while."""
    line = f"sbatch --parsable -D / -o /dev/null -t 30 -n 1 --mem=128 -w {node} {options} --wrap 'sleep {seconds}'"
    said = as_ada(site, "head1", line).split()
    assert said[-2:] == ["status", "0"], said
    wait_for(site, said[0], "RUNNING")
    # the controller calls it so before the node has run its prolog and started it
    batch = f"/sys/fs/cgroup/system.slice/*slurmstepd.scope/job_{said[0]}/step_batch"
    site.on(
        node,
        f"for try in $(seq {PATIENCE:.0f}); do ls -d {batch} 2>&1 && exit; sleep 1; done; exit 1",
        PATIENCE,
    )
    return said[0]


def state(site: Site, job: str) -> str:
    """A job's state in accounting, which has it when the controller has forgotten it."""
    return site.on("head1", f"sacct -n -X -P -j {job} -o state", 120).strip()


def wait_for(site: Site, job: str, wanted: str) -> None:
    """Until a job's state begins with this word."""
    deadline = time.monotonic() + PATIENCE
    while not state(site, job).startswith(wanted):
        assert time.monotonic() < deadline, f"job {job} is {state(site, job)}, not {wanted}"
        time.sleep(5)


def cancel(site: Site, job: str) -> None:
    site.on("head1", f"scancel {job}", 120)
    wait_for(site, job, "CANCELLED")


def in_service(site: Site, *nodes: str) -> None:
    """Until these workers take jobs; one that rebooted unasked is put back, as its operator would."""
    deadline = time.monotonic() + PATIENCE
    for node in nodes:
        while True:
            said = site.on("head1", f"sinfo -h -N -n {node} -o '%T %E'", 120).strip()
            if said.startswith(("idle", "mixed", "allocated")) and "*" not in said.partition(" ")[0]:
                break
            assert time.monotonic() < deadline, f"{node}: {said}"
            if "unexpectedly rebooted" in said:
                site.on("head1", f"scontrol update nodename={node} state=resume", 120)
            time.sleep(5)
