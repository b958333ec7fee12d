"""The lines of a job: its own, Slurm's and the kernel's about it, and of no other job."""

from __future__ import annotations

import shlex

import pytest

from rackwright.lab import gpu_node
from tests.racks.logs.lines import HEAD, Line, ask, on_head, until
from tests.racks.site import Site
from tests.racks.slurm_jobs import as_ada, cancel, wait_for

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_FIELDS = {"kind": "xid", "device": "0000:8b:00", "code": 79}
_XID = "NVRM: Xid (PCI:0000:8b:00): 79, pid=4711, name=python3, GPU has fallen off the bus."
_SPEAK = """\
d=/sys/fs/cgroup$(sed -n 's/^0:://p' /proc/self/cgroup)/job_{job}/step_batch/user/task_0
mkdir -p $d
echo $$ >$d/cgroup.procs
exec setpriv --reuid 3000 --regid 3000 --clear-groups systemd-cat -t lo-job sh -c "echo {words}; sleep 2"
"""
_TO_JOURNAL = "import socket; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'<2>lo-fake: {text}', '/dev/log')"
"""With the kernel's facility, which logger refuses to a user."""


def _submit(site: Site) -> str:
    """A job of ada's on worker1."""
    line = "sbatch --parsable -D / -o /dev/null -t 30 -n 1 --mem=64 -w worker1 --wrap 'sleep 900'"
    said = as_ada(site, HEAD, line).split()
    assert said[-2:] == ["status", "0"], said
    wait_for(site, said[0], "RUNNING")
    return said[0]


def _speak(site: Site, job: str, words: str) -> None:
    """A line of a process of ada's in a job's control group.

    The test makes that, where Slurm's cgroup/v2 makes it on a machine: in a container of the lab Slurm uses none.
    """
    script = _SPEAK.format(job=job, words=words)
    site.on(
        "worker1", f"systemd-run -q --scope --unit slurmstepd -p Delegate=yes sh -c {shlex.quote(script)}"
    )
    until(lambda: words in on_head(site, "worker1", "lo-job"), f"line of job {job}")


def _of(site: Site, job: str) -> list[Line]:
    lines: list[Line] = ask(site, "--job", job)["lines"]
    return lines


def test_a_job_has_its_own_lines_those_of_slurm_and_the_kernel_s(site: Site):
    """Two jobs run side by side on a node, and the words of the second are those of Slurm about the first."""
    first, second = _submit(site), _submit(site)
    try:
        _speak(site, first, "lo-first")
        _speak(site, second, f"lo-second JobId={first}")
        site.fault("worker1", "gpu:xid:79")
        gpu_node.write(site.name, "worker2", _XID, by_program=False)
        cancel(site, first)
        cancel(site, second)
        until(lambda: any("_slurm_rpc_kill_job" in one["message"] for one in _of(site, second)), "its end")
        mine, other = _of(site, first), _of(site, second)
    finally:
        site.heal("worker1")
    said = {(line["node"], line.get("unit"), line["message"]) for line in mine}
    assert ("worker1", "slurmstepd.scope", "lo-first") in said
    assert ("worker1", "slurmd.service", f"slurmd: Launching batch job {first} for UID 3000") in said
    assert {unit for node, unit, _ in said if node == HEAD} == {"slurmctld.service"}
    assert {node for node, _, _ in said} == {HEAD, "worker1"}
    strange = ("lo-second", f"JobId={second}", f"batch job {second} ")
    assert [text for _, _, text in said if any(word in text for word in strange)] == []
    assert ("lo-first", f"lo-second JobId={first}") == tuple(
        line["message"] for lines in (mine, other) for line in lines if line["name"] == "lo-job"
    )
    assert [line["fields"] for line in mine if line["message"] == _XID] == [_FIELDS]


def test_only_what_the_kernel_wrote_has_fields(site: Site):
    """Not the same words of a user with the kernel's facility, nor of a program that wrote them into its log."""
    text = _XID.replace("79", "31")
    site.on("worker2", f'cd /; runuser -u ada -- python3 -c "{_TO_JOURNAL.format(text=text)}"')
    gpu_node.write(site.name, "worker2", text, by_program=True)
    gpu_node.write(site.name, "worker2", text, by_program=False)
    until(lambda: len(_xids(site)) == 3, "third line")
    found = [(line["kernel"], line["name"], line.get("fields")) for line in _xids(site)]
    assert sorted(found, key=lambda one: str(one[1])) == [
        (False, "NVRM", None),
        (True, "kernel", {**_FIELDS, "code": 31}),
        (False, "lo-fake", None),
    ]
    shown = site.cli("logs", str(site.file), "--node", "worker2", "--grep", "Xid (PCI:0000:8b:00): 31").out
    assert shown.count("[kind xid, device 0000:8b:00, code 31]") == 1


def _xids(site: Site) -> list[Line]:
    lines: list[Line] = ask(site, "--node", "worker2", "--grep", "Xid (PCI:0000:8b:00): 31")["lines"]
    return lines
