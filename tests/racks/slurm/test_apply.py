"""The first apply makes the nodes what is declared; the second finds that it is so and leaves it."""

from __future__ import annotations

import re

import pytest

from tests.racks.site import Site
from tests.racks.slurm.conftest import NODES, FirstApply
from tests.racks.snapshot import assert_same, snapshots

pytestmark = pytest.mark.lab

_EXECUTED = (
    "journalctl --sync; journalctl --after-cursor='{cursor}' -o cat -t sudo | grep -c COMMAND= || true"
)
_LOGGED_IN = (
    "journalctl --sync; journalctl --after-cursor='{cursor}' -o cat | grep -c '^Accepted publickey' || true"
)
_CURSOR = "journalctl --sync; journalctl -n 0 --show-cursor | sed -n 's/^-- cursor: //p'"


def test_first_apply_ends_clean_and_says_so(first_apply: FirstApply):
    out = first_apply.ran.out
    for node in NODES:
        assert re.search(rf"^{node}: [1-9]\d* changed in \d+\.\d s$", out, re.MULTILINE)
    assert out.endswith("apply: 3 of 3 nodes are as declared\n")
    for node in NODES:  # progress of a run without a terminal
        assert re.search(rf"^{node}: done after \d+\.\d s$", first_apply.ran.err, re.MULTILINE)


def test_then_the_plan_is_empty(rack: Site):
    ran = rack.cli("plan", str(rack.file), expect=0)
    assert ran.out.strip() == "plan: nothing to change on 3 of 3 nodes"


def test_second_apply_touches_nothing(rack: Site):
    """Not by the tool's own word: /etc with its times, every service's process, every package."""
    before = snapshots(rack)
    ran = rack.apply(expect=0)
    assert ran.out.strip() == "plan: nothing to change on 3 of 3 nodes"
    assert_same(before, snapshots(rack))


def test_slurmctld_has_taken_what_slurm_conf_says(rack: Site):
    """A daemon leaves unknown settings out of `scontrol show config`, or logs an error."""
    config = rack.on("head1", "scontrol show config")
    for key, value in {
        "PriorityFlags": "MAX_TRES",
        "ResumeTimeout": "1800 sec",
        "SuspendTime": "INFINITE",
        "SuspendTimeout": "300 sec",
    }.items():
        assert re.search(rf"^{key} +=\s*{value}\s*$", config, re.MULTILINE), key
    assert " Weight=9 " in rack.on("head1", "scontrol show node -o worker1")
    log = rack.on("head1", "grep -iE 'error|warn|fatal' /var/log/slurm/slurmctld.log || true")
    assert not re.search(r"(?i)invalid|unrecognized|deprecated|replaced|unknown|parsing", log), log


def test_a_job_is_billed_by_gpu(rack: Site):
    asked = rack.on("head1", "srun -Q -A burnin --mem=16 -n 1 -t 1 --gres=gpu:2 sh -c 'echo $SLURM_JOB_ID'")
    rows = rack.on(
        "head1",
        "for try in $(seq 20); do"
        f' row=$(sacct -X -n -P -j {asked.strip()} -o AllocTRES); [ -n "$row" ] && break; sleep 1; done;'
        ' echo "$row"',
    )
    share = 8 * 100 / 2  # half of the two CPUs of a container with eight GPUs
    assert f"billing={share:.0f}," in rows


def test_the_comparison_would_have_seen_it(rack: Site):
    before = snapshots(rack)
    rack.on(
        "worker1", "touch /etc/hostname; systemctl restart chrony; chmod 700 /etc/slurm; chmod 755 /etc/slurm"
    )
    found = "\n".join(before["worker1"].differences(snapshots(rack)["worker1"]))
    assert "paths /etc/hostname: " in found
    assert "units chrony.service: " in found
    assert "paths /etc/slurm" not in found
    assert before["worker1"].differences(snapshots(rack)["worker1"], touched=False) == []
    rack.converge()


def test_a_plan_of_nothing_is_one_execution_on_each_node(rack: Site):
    """Counted by sudo and sshd in the node's journal, and by the plan itself."""
    rack.plan(0)  # the first one after a change learns what to ask
    cursors = {node: rack.on(node, _CURSOR).strip() for node in NODES}
    plan = rack.plan(0)
    assert {node["node"]: node["executions"] for node in plan["nodes"]} == dict.fromkeys(NODES, 1)
    for node, cursor in cursors.items():
        assert rack.on(node, _EXECUTED.format(cursor=cursor)).strip() == "1", node
        assert rack.on(node, _LOGGED_IN.format(cursor=cursor)).strip() == "1", node


def test_only_who_has_changed_gets_a_worker_process(rack: Site):
    """Each worker leaves a log; a look that finds a change is an execution too."""
    logs = rack.state / "rackwright" / rack.name / "log"
    for log in logs.iterdir():
        log.unlink()
    rack.plan(0)
    assert list(logs.iterdir()) == []
    cursor = rack.on("worker2", f"echo Europe/Oslo >/etc/timezone; {_CURSOR}").strip()
    plan = rack.plan(2)
    assert {node["node"]: node["executions"] for node in plan["nodes"]} == {
        "head1": 1,
        "worker1": 1,
        "worker2": 2,
    }
    assert rack.on("worker2", _EXECUTED.format(cursor=cursor)).strip() == "2"
    assert len(list(logs.iterdir())) == 1
    rack.converge()


def test_a_clock_that_is_wrong_on_this_machine_changes_nothing(rack: Site):
    """restart_on files are compared on the node alone; this host's time zone does not matter there."""
    rack.environment["TZ"] = "Pacific/Kiritimati"
    try:
        for options in ((), ("--full",)):
            ran = rack.cli("plan", str(rack.file), *options, expect=0)
            assert ran.out.strip() == "plan: nothing to change on 3 of 3 nodes"
    finally:
        del rack.environment["TZ"]
