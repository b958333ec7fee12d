"""What Slurm's tools print, as types: recorded answers of 24.11.5, shapes of other releases, and what is neither."""

from __future__ import annotations

import json
import math
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rackwright.workload.slurm.metrics.accounting import Ended, Record, command, parse_records, waits
from rackwright.workload.slurm.metrics.details import MOST, Share, parse_details, question
from rackwright.workload.slurm.metrics.gres import Gpus, gpus_of_gres, gpus_of_tres
from rackwright.workload.slurm.metrics.jobs import SEPARATOR, Job, parse_jobs, reason_of, tasks_in, time_of
from rackwright.workload.slurm.metrics.nodes import parse_nodes, states_in
from rackwright.workload.slurm.metrics.scheduler import Scheduler, parse_scheduler
from rackwright.workload.states import NoAnswer
from tests.unit.answers import few
from tests.unit.workload.slurm_metrics.answers import recorded


def by_id(scene):
    return {job.id: job for job in parse_jobs(recorded(scene, "jobs"))}


def test_jobs_of_a_busy_cluster():
    jobs = by_id("busy")
    assert len(jobs) == 17
    assert jobs[1539] == Job(
        id=1539, tasks=1, user="ada", account="research", partitions=("main",), qos="normal", state="running",
        start=time_of("2026-11-27T00:31:38"), eligible=time_of("2026-11-27T00:31:35"), cpus=2, nodes=2,
        node_list="worker[1-2]", gpus=3, reason="None",
    )  # fmt: skip
    assert [(jobs[id].gpus, jobs[id].node_list) for id in (1540, 1541)] == [(0, "worker1"), (1, "worker2")]
    assert jobs[1546].partitions == ("main", "debug")
    assert {id: job.tasks for id, job in jobs.items() if job.tasks != 1} == {1548: 6, 1542: 20}
    assert {job.reason for job in jobs.values()} == {
        *("BeginTime", "Dependency", "JobHeldUser", "None", "Priority", "ReqNodeNotAvail", "Resources"),
    }
    assert jobs[1547].eligible is None
    assert [job.id for job in jobs.values() if job.allocated] == [1539, 1540, 1541]


def test_tasks_of_an_array_have_numbers_of_their_own():
    jobs = by_id("arrays")
    assert {id: (job.tasks, job.state) for id, job in jobs.items()} == {
        1557: (17, "pending"), 1556: (1, "running"), 1558: (1, "running"), 1559: (1, "running"), 1560: (1, "running"),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("1520", 1),
        ("1520_7", 1),
        ("1518+1", 1),
        ("1520_[1-20%3]", 20),
        ("1520_[1-20]", 20),
        ("1_[7]", 1),
        ("1_[0,10,20,30,41,43%2]", 6),
        ("1_[0-30:10,41]", 5),
        ("1_[1-9:2,20-21]", 7),
        ("1_[0-9:0]", 10),
        ("1_[9-1]", 0),
        ("1_[1-4000001]", 4_000_001),
        ("1_[0-9999999999]", 4_000_001),
        ("1_[1-3,...]", 1),
    ],
)
def test_tasks(text, count):
    assert tasks_in(text) == count


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Resources", "Resources"),
        ("None", "None"),
        ("ReqNodeNotAvail, UnavailableNodes:worker[1-900]", "ReqNodeNotAvail"),
        ("QOSMaxGRESPerUser", "QOSMaxGRESPerUser"),
        ("ReqNodeNotAvail(Unavailable)", "ReqNodeNotAvail"),
        (
            "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions",
            "Resources",
        ),
        ("launch failed requeued held", "Other"),
        ("", "Other"),
        ("1234", "Other"),
    ],
)
def test_reasons_are_few(text, reason):
    assert reason_of(text) == reason


def test_a_job_may_be_called_anything():
    """Names, comments and folders are the users'; none of these fields is."""
    assert "1561" in recorded("hostile", "jobs")
    details = parse_details(recorded("hostile", "details"))
    names = [job["name"] for job in json.loads(recorded("hostile", "details"))["jobs"]]
    assert any("\n" in name and SEPARATOR in name and "JobId=1" in name for name in names)
    assert details == {
        1561: {"worker1": Share(1, Gpus(2, (0, 1)))},
        1562: {"worker1": Share(1, Gpus(1, (2,)))},
    }
    assert {id: job.gpus for id, job in by_id("hostile").items()} == {1561: 2, 1562: 1}


LINE = recorded("arrays", "jobs").splitlines()[0]


@pytest.mark.parametrize(
    "output",
    [
        "slurm_load_jobs error: Unable to contact slurm controller",
        LINE[:40],
        f"{LINE}{SEPARATOR}more{SEPARATOR}",
        LINE.replace("1557", "x", 1),
        LINE.replace("N/A", "20262-11-27T00:00:00"),
        LINE.replace(f"{SEPARATOR}1{SEPARATOR}", f"{SEPARATOR}inf{SEPARATOR}", 1),
    ],
)
def test_what_is_not_squeues_answer(output):
    with pytest.raises(NoAnswer, match=r"^`squeue` printed something else: "):
        parse_jobs(output)


def test_large_counts_of_old_releases():
    assert (
        parse_jobs(
            LINE.replace(f"{SEPARATOR}1{SEPARATOR}1{SEPARATOR}", f"{SEPARATOR}1.5K{SEPARATOR}2{SEPARATOR}")
        )[0].cpus
        == 1536
    )


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("gpu:h100:8", Gpus(8)),
        ("gpu:8", Gpus(8)),
        ("gpu:h100:8(S:0-1)", Gpus(8)),
        ("gpu:h100:2(IDX:0-1)", Gpus(2, (0, 1))),
        ("gpu:h100:3(IDX:0,2-3),shard:4(0/4)", Gpus(3, (0, 2, 3))),
        ("gpu:a100:1(IDX:1),gpu:h100:2(IDX:2-3)", Gpus(3, (1, 2, 3))),
        ("gpu:h100:0(IDX:N/A)", Gpus()),
        ("gpu:1g.10gb:7(IDX:0-6)", Gpus(7, (), parts=True)),
        ("gpu:h100:2(IDX:0)", Gpus(2)),
        ("gpu:h100:1(IDX:0-99999)", Gpus(1)),
        ("gpu:h100:999999999", Gpus(1024)),
        ("mps:400", Gpus()),
        ("(null)", Gpus()),
        ("", Gpus()),
        ("xgpu:8", Gpus()),
    ],
)
def test_gpus_of_a_gres(text, gpus):
    assert gpus_of_gres(text) == gpus


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("cpu=2,mem=100M,node=2,billing=800,gres/gpu=4", 4),
        ("cpu=1,gres/gpu=3,gres/gpu:a100=1,gres/gpu:h100=2", 3),
        ("gres/gpu:a100=1,gres/gpu:h100=2", 3),
        ("cpu=1,gres/gpumem=80G", 0),
        ("", 0),
    ],
)
def test_gpus_of_a_tres(text, count):
    assert gpus_of_tres(text) == count


def test_nodes_of_a_busy_cluster():
    one, two = parse_nodes(recorded("busy", "nodes"))
    assert (one.name, one.states, one.partitions) == ("worker1", {"allocated", "draining"}, ("main", "debug"))
    assert (one.cpus, one.cpus_allocated, one.gpus, one.gpus_allocated) == (2, 2, 8, 2)
    assert (one.reason, one.user) == ('rackwright-health: gpu-count: 7 of 8 GPUs "XID 79" ümlaut', "root")
    assert one.since == time_of("2026-11-27T00:31:42")
    assert (two.states, two.reason, two.since, two.out) == ({"allocated"}, "", None, False)


def test_a_node_that_is_down():
    one, two = parse_nodes(recorded("draining", "nodes"))
    assert (one.states, one.gpus_allocated) == ({"mixed", "draining"}, 3)
    assert (two.states, two.reason, two.gpus_allocated) == ({"down"}, "power supply 2 [of 4] failed", 0)


def test_nodes_without_gres_used():
    """Without -d, and in releases that have it not: from what jobs have by AccountingStorageTRES."""
    line = recorded("draining", "nodes").replace("GresUsed=", "Other=").splitlines()[0]
    assert parse_nodes(line)[0].gpus_allocated == 3


def test_gpus_that_slurm_conf_leaves_out_are_not_counted():
    """As Slurm 24.11 answers: slurmd has found eight and slurm.conf has four."""
    line = recorded("busy", "nodes").replace("gres/gpu=8", "gres/gpu=4").splitlines()[0]
    assert "Gres=gpu:h100:8" in line
    assert parse_nodes(line)[0].gpus == 4


def test_texts_of_a_node_are_no_fields():
    line = recorded("draining", "nodes").splitlines()[1]
    text = "see [ticket@2] State=IDLE CPUTot=999 [admin@"
    told = (
        line.replace("power supply 2 [of 4] failed", text)
        + " Comment=State=IDLE CPUAlloc=7 [a@2026-11-27T00:00:00]"
    )
    (node,) = parse_nodes(told)
    assert (node.states, node.cpus, node.cpus_allocated, node.user) == ({"down"}, 2, 0, "root")
    assert node.reason == text


@pytest.mark.parametrize(
    ("text", "states"),
    [
        ("IDLE", {"idle"}),
        ("MIXED+PLANNED", {"mixed", "planned"}),
        ("IDLE+DRAIN", {"drained"}),
        ("IDLE*+DRAIN", {"drained", "not_responding"}),
        ("ALLOCATED+DRAIN", {"allocated", "draining"}),
        ("IDLE+COMPLETING+DRAIN", {"idle", "completing", "draining"}),
        ("DOWN*", {"down", "not_responding"}),
        ("DOWN+DRAIN+NOT_RESPONDING", {"down", "drained", "not_responding"}),
        ("IDLE+MAINTENANCE+RESERVED", {"idle", "maint", "reserved"}),
        ("IDLE+CLOUD+POWERED_DOWN", {"idle", "cloud", "powered_down"}),
        ("MIXED-", {"mixed", "planned"}),
        ("UNKNOWN", {"unknown"}),
        ("IDLE+FAIL", {"idle", "fail"}),
        ("ALLOC", {"allocated"}),
    ],
)
def test_states(text, states):
    assert states_in(text) == states


@pytest.mark.parametrize(
    "output",
    [
        "",
        "slurm_load_node error: x",
        "NodeName=a CPUTot=1 CPUAlloc=0",
        "NodeName=a State=IDLE CPUTot=x CPUAlloc=0",
    ],
)
def test_what_is_not_scontrols_answer(output):
    with pytest.raises(NoAnswer, match=r"^`scontrol show nodes` printed "):
        parse_nodes(output)


def test_the_scheduler():
    text = recorded("busy", "scheduler")
    main, mark, backfill = text.partition("Backfilling stats")
    told = parse_scheduler(main.replace("Last queue length: 6", "Last queue length: 5") + mark + backfill)
    assert told == Scheduler(
        main_cycle=pytest.approx(46e-6),
        backfill_cycle=pytest.approx(278e-6),
        backfill_last=1795739531,
        queue_length=5,
        server_threads=1,
        dbd_queue=0,
    )


def test_a_scheduler_that_has_not_begun():
    text = recorded("busy", "scheduler").replace("(1795739531)", "(0)")
    assert parse_scheduler(text).backfill_last is None
    begun = parse_scheduler("Server thread count:  3\nAgent queue size:     0\n")
    assert begun == Scheduler(None, None, None, None, 3, None)


@pytest.mark.parametrize("output", ["", "sdiag: error: Unable to contact slurm controller\n"])
def test_what_is_not_sdiags_answer(output):
    with pytest.raises(NoAnswer, match=r"^`sdiag` printed something else: "):
        parse_scheduler(output)


def test_what_jobs_have_on_nodes():
    assert parse_details(recorded("busy", "details")) == {
        1539: {"worker1": Share(1, Gpus(2, (0, 1))), "worker2": Share(1, Gpus(1, (0,)))},
        1540: {"worker1": Share(1)},
        1541: {"worker2": Share(1, Gpus(1, (1,)))},
    }


def of_release(resources, **more):
    job = {
        "job_id": 7,
        "nodes": "gpu[1-2]",
        "gres_detail": ["gpu:h100:1(IDX:3)", ""],
        "job_resources": resources,
    }
    return parse_details(json.dumps({"jobs": [{**job, **more}]}))[7]


ON_TWO = {"gpu1": Share(4, Gpus(1, (3,))), "gpu2": Share(2)}


def test_openapi_v0_0_38_numbers_nodes():
    nodes = {"1": {"sockets": {"0": "assigned"}, "cpus": 2}, "0": {"sockets": {}, "cpus": 4}}
    assert of_release({"nodes": "gpu[1-2]", "allocated_nodes": nodes}) == ON_TWO


@pytest.mark.parametrize("cpus", [6, {"set": True, "infinite": False, "number": 6}])
def test_data_parser_v0_0_40_counts_cores(cpus):
    def node(name, cores):
        states = {**{str(core): "allocated" for core in range(cores)}, "9": "unallocated"}
        return {"nodename": name, "cpus_used": 0, "sockets": {"0": {"cores": states}}}

    hyperthreads = {"nodes": "gpu[1-2]", "allocated_nodes": [node("gpu1", 2), node("gpu2", 1)]}
    assert of_release(hyperthreads, cpus=cpus) == ON_TWO
    unclear = {"allocated_nodes": [node("gpu1", 2), node("gpu2", 2)]}
    assert {share.cpus for share in of_release(unclear, cpus=cpus).values()} == {None}


@pytest.mark.parametrize(
    "resources", [None, {}, {"allocated_nodes": None}, {"nodes": {"allocation": []}}, "x"]
)
def test_without_allocation_there_still_are_gpus(resources):
    assert of_release(resources) == {"gpu1": Share(None, Gpus(1, (3,))), "gpu2": Share(None)}


def test_gpus_that_do_not_match_the_nodes_are_left_out():
    assert of_release(None, gres_detail=["gpu:h100:1(IDX:3)"]) == {"gpu1": Share(None), "gpu2": Share(None)}


def test_a_job_that_cannot_be_read_costs_no_other_one():
    jobs = [
        {"job_id": 1, "nodes": "gpu[1-", "job_resources": {"nodes": {"allocation": "worker1"}}},
        {"job_id": 2, "nodes": "gpu[1-99999999]"},
        {"job_id": 3, "nodes": "gpu1", "gres_detail": None},
        {
            "job_id": 4,
            "nodes": "gpu1",
            "job_resources": {"nodes": {"allocation": [{"name": "gpu1", "cpus": {"count": "x"}}]}},
        },
    ]
    assert parse_details(json.dumps({"jobs": jobs})) == {3: {"gpu1": Share(None)}, 4: {"gpu1": Share(None)}}


@pytest.mark.parametrize(
    "output",
    [
        "",
        recorded("busy", "details")[:5000],
        "[]",
        '{"jobs": {}}x',
        '{"jobs": [{"job_id": Infinity}]}',
        "[" * 100_000,
    ],
)
def test_what_is_not_squeues_json(output):
    with pytest.raises(NoAnswer, match=r"^`squeue` printed something else: "):
        parse_details(output)


def job(id, gpus=0, nodes=1):
    return Job(id, 1, "ada", "a", ("main",), "normal", "running", 1.0, 1.0, 1, nodes, f"n{id}", gpus, "None")


def test_one_question_has_a_limit_and_asks_for_gpus_first():
    command, chosen = question([job(2), job(1), job(3, gpus=1)])
    assert command == ("squeue", "-a", "--json", "-j", "3,1,2")
    assert [one.id for one in chosen] == [3, 1, 2]
    assert len(question([job(id) for id in range(5000)])[1]) == MOST
    assert len(question([job(id, nodes=150) for id in range(100)])[1]) == MOST // 150
    assert len(question([job(id) for id in range(5000)], 70)[1]) == 70


def test_a_job_beyond_the_limit_is_asked_alone():
    assert [one.id for one in question([job(1, nodes=9000), job(2)])[1]] == [1]


def test_one_job_is_asked_twice():
    """`squeue -j 7` fails where 7 has just ended, `squeue -j 7,7` does not (24.11.5, 2026-11-27)."""
    assert question([job(7)])[0][-1] == "7,7"


NOW = float(recorded("busy", "now"))


def test_waiting_times():
    records = parse_records(recorded("busy", "accounting"))
    assert waits(records, NOW) == {
        "main": {0.5: 1.0, 0.9: 10.0, 0.99: 10.0},
        "debug": {0.5: 1.0, 0.9: 1.0, 0.99: 1.0},
    }
    assert waits(records, NOW + 3600) == {}


def test_accounting_is_asked_for_one_hour():
    told = command(NOW)
    assert told[:6] == ("sacct", "-a", "-X", "-n", "-P", f"--delimiter={SEPARATOR}")
    assert time_of(told[7]) == math.floor(NOW - 3600)


def record(id, state="completed", end=50.0, joules=0.0, user="ada"):
    return Record(str(id), "main", "research", user, state, 1.0, 2.0, end, joules)


def test_jobs_are_counted_once_when_they_have_ended():
    ended = Ended()
    ended.add([record(1), record(2, "running", None)])
    assert (dict(ended.jobs), dict(ended.joules)) == ({}, {})  # counted before the program started, if ever
    window = [record(1), record(2, "failed", 60.0, joules=7200.0), record(3, "timeout", 61.0, joules=1.0)]
    for _ in range(3):
        ended.add(window)
    assert dict(ended.jobs) == {("main", "failed"): 1, ("main", "timeout"): 1}
    assert dict(ended.joules) == {("research", "ada"): 7201.0}
    ended.add([])
    ended.add([record(2, "failed", 90.0)])  # requeued, and failed again
    assert ended.jobs["main", "failed"] == 2


def test_records():
    records = {one.id: one for one in parse_records(recorded("busy", "accounting"))}
    assert records["1539"].state == "running"
    assert not records["1539"].ended
    assert records["2"].ended
    assert records["2"].state == "cancelled"
    assert records["1546"].partition == "main"
    line = recorded("busy", "accounting").splitlines()[1]
    assert parse_records(line.rpartition(SEPARATOR)[0] + SEPARATOR + "54000")[0].joules == 54000
    assert parse_records(line.rpartition(SEPARATOR)[0] + SEPARATOR + "9" * 400)[0].joules == 0


@pytest.mark.parametrize(
    "output",
    ["sacct: error: slurmdbd is down", "a" + SEPARATOR * 7, "1" + SEPARATOR * 6 + "2" + SEPARATOR * 2],
)
def test_what_is_not_saccts_answer(output):
    with pytest.raises(NoAnswer, match=r"^`sacct` printed something else: "):
        parse_records(output)


@settings(few, max_examples=100)
@given(st.text())
def test_no_text_breaks_a_parser(text):
    for parse in (parse_jobs, parse_nodes, parse_scheduler, parse_details, parse_records):
        with suppress(NoAnswer):
            parse(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(
            st.sampled_from(["name", "cpus", "nodes", "allocation", "sockets", "0"]) | st.text(), inner
        )
    ),
)


@settings(few, max_examples=60)
@given(JSON, JSON, JSON)
def test_no_json_breaks_the_parser(resources, nodes, gres):
    job = {"job_id": 1, "job_resources": resources, "nodes": nodes, "gres_detail": gres, "cpus": nodes}
    found = parse_details(json.dumps({"jobs": [job]}))
    assert set(found) <= {1}
    assert all(
        share.cpus is None or isinstance(share.cpus, int) for one in found.values() for share in one.values()
    )
