"""Where a job of Slurm's left lines: nodes, times, and Slurm's own words for it."""

from __future__ import annotations

import re

import pytest

from rackwright.command import CommandResult
from rackwright.errors import WorkloadError
from rackwright.model.types import NodeRole
from rackwright.workload.slurm import traces
from rackwright.workload.slurm.control import Slurm
from rackwright.workload.states import NoAnswer
from tests.factories import RunsSlurm, make_cluster, make_node

OPTIONS = {"slurm": RunsSlurm()}
CLUSTER = make_cluster(
    make_node("head1", 10, NodeRole.HEAD, options=OPTIONS),
    make_node("worker1", 11, options=OPTIONS),
    make_node("worker2", 12, options=OPTIONS),
)
# as Slurm 24.11.5 printed it in a lab rack, 2026-11-27
SACCT = "1|1|worker[1-2]|1795740113|1795740113|1795740120\n"
ARRAY = """\
2_1|3|worker1|1795740113|1795740113|1795740120
2_2|2|worker2|1795740113|1795740113|1795740121
"""
SCONTROL = (
    "JobId=1 JobName=j.sh UserId=ada(3000) GroupId=ada(3000) JobState=COMPLETED Reason=None "
    "SubmitTime=1795740113 EligibleTime=1795740113 StartTime=1795740113 EndTime=1795740120 Deadline=N/A "
    "Partition=main NodeList=worker[1-2] BatchHost=worker1 NumNodes=2\n"
)
SCONTROL_ARRAY = (
    "JobId=3 ArrayJobId=2 ArrayTaskId=1 JobName=j.sh JobState=RUNNING SubmitTime=1795740113 StartTime=1795740113 "
    "EndTime=1795826513 NodeList=worker1 BatchHost=worker1\n"
)
NAMES = list(CLUSTER.by_name)


class Head:
    """Answers by the tool that is asked."""

    def __init__(self, **replies) -> None:
        self.replies, self.asked = replies, []

    def run(self, node, command, *, stdin=None, timeout):
        assert node == "head1"
        self.asked.append(command)
        tool = "sacct" if " sacct " in command else "scontrol"
        return CommandResult(command, *self.replies.get(tool, (1, "", "Invalid job id specified")))


def trace(job="1", **replies):
    return Slurm(CLUSTER, Head(**replies)).trace(job)


def test_from_accounting():
    found = trace(sacct=(0, SACCT, ""))
    assert (found.nodes, found.strangers, found.servers) == (("worker1", "worker2"), (), ("head1",))
    assert (found.submitted, found.started, found.ended) == (1795740113, 1795740113, 1795740120)
    assert re.search(found.cgroup, "/system.slice/slurmstepd.scope/job_1/step_batch/user/task_0")
    assert not re.search(found.cgroup, "/system.slice/slurmstepd.scope/job_11/step_batch")


def test_an_array_is_all_of_its_tasks():
    found = trace("2", sacct=(0, ARRAY, ""))
    assert found.nodes == ("worker1", "worker2")
    assert found.ended == 1795740121
    assert re.search(found.cgroup, "/job_3/")
    assert re.search(found.cgroup, "/job_2/")


def test_from_the_controller_where_accounting_knows_nothing():
    head = Head(sacct=(0, "", ""), scontrol=(0, SCONTROL, ""))
    found = Slurm(CLUSTER, head).trace("1")
    assert (found.nodes, found.started, found.ended) == (("worker1", "worker2"), 1795740113, 1795740120)
    assert head.asked == [
        "timeout 20 env SLURM_TIME_FORMAT=%s sacct -XDnP -j 1 --format=JobID,JobIDRaw,NodeList,Submit,Start,End",
        "timeout 20 env SLURM_TIME_FORMAT=%s scontrol show job 1 -o",
    ]


def test_the_controller_s_guess_of_an_end_is_none():
    """It prints when the time limit ends a job that runs, and when it may start one that waits."""
    assert trace("2_1", scontrol=(0, SCONTROL_ARRAY, "")).ended is None
    waits = SCONTROL.replace("COMPLETED", "PENDING").replace("worker[1-2] ", " ")
    found = trace(scontrol=(0, waits, ""))
    assert (found.nodes, found.started, found.ended) == ((), None, None)


@pytest.mark.parametrize(
    ("row", "started", "ended", "nodes"),
    [
        ("9|9|None assigned|1795740113|Unknown|Unknown", None, None, ()),
        ("9|9|worker1|1795740113|1795740114|Unknown", 1795740114, None, ("worker1",)),
        ("9|9|worker1,old7|1795740113|1795740114|1795740115", 1795740114, 1795740115, ("worker1",)),
    ],
)
def test_jobs_that_have_not_ended_and_nodes_that_are_gone(row, started, ended, nodes):
    found = trace("9", sacct=(0, row + "\n", ""))
    assert (found.started, found.ended, found.nodes) == (started, ended, nodes)
    assert found.strangers == (("old7",) if "old7" in row else ())


def test_a_requeued_job_is_all_of_its_runs():
    rows = "9|9|worker1|100|110|120\n9|9|worker2|100|130|140\n"
    found = trace("9", sacct=(0, rows, ""))
    assert (found.nodes, found.submitted, found.started, found.ended) == (
        ("worker1", "worker2"),
        100,
        110,
        140,
    )


@pytest.mark.parametrize(
    "message",
    [
        "slurmd: task/affinity: task_p_slurmd_batch_request: task_p_slurmd_batch_request: 3",
        "slurmd: task/affinity: batch_bind: job 3 CPU input mask for node: 0x2",
        "slurmd: Launching batch job 3 for UID 3000",
        "slurmd: launch task StepId=3.0 request from UID:3000 GID:3000 HOST:10.83.0.11 PORT:43478",
        "slurmd: task/affinity: lllp_distribution: JobId=3 implicit auto binding: cores,one_thread, dist 1",
        "slurmd: task/affinity: _lllp_generate_cpu_bind: _lllp_generate_cpu_bind jobid [3]: mask_cpu, 0x2",
        "slurmctld: _slurm_rpc_submit_batch_job: JobId=3 InitPrio=11750 usec=1159",
        "slurmctld: sched/backfill: _start_job: Started JobId=2_1(3) in main on worker1",
        "slurmctld: _job_complete: JobId=2_1(3) WEXITSTATUS 0",
        "[3.batch] done with step",
    ],
)
def test_slurm_s_words_for_a_job(message):
    for job in ("3", "2_1"):
        found = trace(job, sacct=(0, ARRAY.splitlines()[0] + "\n", ""))
        assert re.search(found.named, message), job


@pytest.mark.parametrize(
    "message",
    [
        "slurmd: Launching batch job 31 for UID 3000",
        "slurmd: Launching batch job 13 for UID 3000",
        "slurmctld: sched/backfill: _start_job: Started JobId=2_2(2) in main on worker2",
        "slurmctld: _slurm_rpc_submit_batch_job: JobId=30 InitPrio=3 usec=3",
        "slurmd: CPUs=3 Boards=1",
        "[33.batch] done with step",
    ],
)
def test_words_for_other_jobs(message):
    found = trace("2_1", sacct=(0, ARRAY.splitlines()[0] + "\n", ""))
    assert not re.search(found.named, message)


@pytest.mark.parametrize("job", ["", "x", "1;reboot", "1 2", "-1", "$(id)", "1_2_3", "9" * 11])
def test_what_is_no_job(job):
    with pytest.raises(WorkloadError, match="is not a job of Slurm"):
        trace(job, sacct=(0, SACCT, ""))


def test_a_job_nobody_knows():
    with pytest.raises(WorkloadError, match="does not know job 9: Invalid job id specified"):
        trace("9", sacct=(0, "", ""))
    with pytest.raises(WorkloadError, match="does not know job 2_9: Job 2_9 not found"):
        trace("2_9", sacct=(0, "", ""), scontrol=(1, "Job 2_9 not found\n", ""))


DOWN = (1, "", "sacct: error: slurm_persist_conn_open: failed\nConnection refused\n")
NO_CONTROLLER = (1, "", "slurm_load_jobs error: Unable to contact slurm controller (connect failure)\n")


@pytest.mark.parametrize(
    ("replies", "said"),
    [
        ({"sacct": DOWN}, "accounting does not answer: Connection refused"),
        ({"sacct": DOWN, "scontrol": NO_CONTROLLER}, "accounting does not answer: Connection refused"),
        (
            {"sacct": (0, "", ""), "scontrol": NO_CONTROLLER},
            "the controller does not answer: slurm_load_jobs error",
        ),
    ],
)
def test_no_answer_is_not_that_there_is_no_job(replies, said):
    with pytest.raises(WorkloadError, match=f"^Slurm on head1 cannot be queried about job 9: {said}"):
        trace("9", **replies)


def test_a_job_that_the_controller_knows_needs_no_accounting():
    assert trace(sacct=DOWN, scontrol=(0, SCONTROL, "")).nodes == ("worker1", "worker2")


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("1|2\n", "printed something else"),
        ("1|1|worker[x]|1|2|3\n", "the nodes of job 1 cannot be read"),
        ("1|1|worker1|soon|2|3\n", "when job 1 was submitted cannot be read"),
    ],
)
def test_what_is_no_answer(output, said):
    with pytest.raises(WorkloadError, match=said):
        trace(sacct=(0, output, ""))
    with pytest.raises(NoAnswer, match=said):
        traces.accounted("1", output, NAMES, ["head1"])
