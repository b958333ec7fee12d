"""From answers to metrics: recorded scenes, what is asked how often, what happens when Slurm is silent, limits, scale."""

from __future__ import annotations

import gc
import sys
import time
import tracemalloc

import pytest

from rackwright.workload.slurm.metrics import collector as program
from rackwright.workload.slurm.metrics.collector import Collector, Settings, collected
from rackwright.workload.slurm.metrics.job_figures import OTHERS, Limits, queue_figures
from rackwright.workload.slurm.metrics.jobs import SEPARATOR, Job
from rackwright.workload.slurm.metrics.nodes import Node
from rackwright.workload.slurm.metrics.snapshot import Snapshot
from rackwright.workload.states import NoAnswer
from tests.unit.workload.slurm_metrics.answers import FakeSlurm, large_site, of, recorded, samples

NOW = float(recorded("busy", "now"))
CONTRACT = """
    slurm_nodes slurm_node_state slurm_node_drain_since_timestamp_seconds slurm_node_cpus slurm_node_cpus_allocated
    slurm_node_gpus slurm_node_gpus_allocated slurm_partition_nodes slurm_jobs slurm_jobs_pending
    slurm_oldest_pending_seconds slurm_oldest_fitting_seconds slurm_account_jobs slurm_account_gpus_allocated slurm_account_cpus_allocated
    slurm_job_info slurm_job_start_timestamp_seconds slurm_job_gpus slurm_job_gpu slurm_job_cpus
    slurm_scheduler_main_cycle_seconds slurm_scheduler_backfill_cycle_seconds
    slurm_scheduler_backfill_last_timestamp_seconds slurm_scheduler_queue_length slurm_server_threads
    slurm_dbd_agent_queue_length slurm_wait_seconds
"""
OURS = "slurm_accounts_left_out slurm_jobs_left_out slurm_jobs_without_details slurm_source_up"


class Clock:
    """Stands until it is moved."""

    def __init__(self, now=NOW):
        self.now = now

    def __call__(self):
        return self.now


def collect(scene="busy", **settings):
    return samples(Collector(Settings("x", **settings), FakeSlurm.of(scene), Clock()).metrics())


BUSY = collect()


def test_every_metric_of_the_contract_and_no_other():
    assert {name for name, _ in BUSY} == {*CONTRACT.split(), *OURS.split()}


def test_nodes():
    assert {key[0]: count for key, count in of(BUSY, "slurm_nodes").items() if count} == {
        "allocated": 2,
        "draining": 1,
    }
    assert of(BUSY, "slurm_node_state") == {
        ("worker1", "allocated"): 1,
        ("worker1", "draining"): 1,
        ("worker2", "allocated"): 1,
    }
    assert of(BUSY, "slurm_node_drain_since_timestamp_seconds") == {
        ("worker1", 'rackwright-health: gpu-count: 7 of 8 GPUs "XID 79" ümlaut', "root"): 1795739502
    }
    assert of(BUSY, "slurm_node_gpus") == {("worker1",): 8, ("worker2",): 8}
    assert of(BUSY, "slurm_node_gpus_allocated") == {("worker1",): 2, ("worker2",): 2}
    assert of(BUSY, "slurm_node_cpus_allocated") == {("worker1",): 2, ("worker2",): 2}
    assert of(BUSY, "slurm_partition_nodes")["debug", "draining"] == 1


def test_states_without_a_node_are_there_as_zero():
    for state in ("down", "drained", "fail", "idle", "maint", "mixed", "not_responding", "unknown"):
        assert of(BUSY, "slurm_nodes")[(state,)] == 0
        assert of(BUSY, "slurm_partition_nodes")["main", state] == 0


def test_the_queue():
    assert of(BUSY, "slurm_jobs") == {("pending",): 38, ("running",): 3}
    assert of(BUSY, "slurm_jobs_pending") == {
        ("debug", "Resources"): 1,
        ("main", "BeginTime"): 1,
        ("main", "Dependency"): 1,
        ("main", "JobHeldUser"): 7,
        ("main", "Priority"): 26,
        ("main", "ReqNodeNotAvail"): 1,
        ("main", "Resources"): 2,
    }


def test_only_jobs_that_wait_for_room_count_as_waiting():
    """1542, 1543 and 1546 have been eligible since 00:31:42; held and later jobs, and those of drained nodes, wait for others."""
    oldest = of(BUSY, "slurm_oldest_pending_seconds")
    assert oldest == {("debug",): pytest.approx(NOW - 1795739502), ("main",): pytest.approx(NOW - 1795739502)}
    assert set(of(collect("maintenance"), "slurm_oldest_pending_seconds").values()) == {0}


@pytest.mark.parametrize(
    ("states", "asked", "waited"),
    [
        (("idle", "idle", "idle"), 3, 500),
        (("idle", "idle", "mixed"), 3, 0),
        (("idle", "idle", "idle+planned"), 3, 0),
        (("idle", "idle", "idle+not_responding"), 3, 0),
        (("idle", "mixed", "mixed"), 1, 500),
        ((), 1, 0),
    ],
)
def test_a_job_with_room_is_one_that_enough_nodes_are_idle_for(states, asked, waited):
    nodes = [
        Node(f"n{i}", frozenset(state.split("+")), ("main",), 8, 0, 0, 0) for i, state in enumerate(states)
    ]
    job = Job(
        *(7, 1, "ada", "research", ("main", "gone"), "normal", "pending"),
        *(None, NOW - 500, 8, asked, "", 0, "Resources"),
    )
    figures = {one.name: one for one in queue_figures([job], nodes, Limits(9, 9), NOW)}
    fitting = figures["slurm_oldest_fitting_seconds"].samples
    assert [one.value for one in fitting if one.labels == {"partition": "main"}] == [waited][: len(states)]
    assert all(one.labels["partition"] == "main" for one in fitting)
    assert {one.value for one in figures["slurm_oldest_pending_seconds"].samples} == {500}


def test_a_job_that_no_scheduler_looks_at_waits_too():
    """Its reason stays None."""
    slurm = FakeSlurm.of("busy")
    slurm.answers["jobs"] = slurm.answers["jobs"].replace("Priority", "None").replace("Resources", "None")
    oldest = of(samples(Collector(Settings("x"), slurm, Clock()).metrics()), "slurm_oldest_pending_seconds")
    assert oldest == of(BUSY, "slurm_oldest_pending_seconds")


def test_accounts():
    assert of(BUSY, "slurm_account_jobs") == {
        ("physics", "pending", "bob"): 24,
        ("physics", "running", "bob"): 2,
        ("research", "pending", "ada"): 14,
        ("research", "running", "ada"): 1,
    }
    assert of(BUSY, "slurm_account_gpus_allocated") == {("physics", "bob"): 1, ("research", "ada"): 3}
    assert of(BUSY, "slurm_account_cpus_allocated") == {("physics", "bob"): 2, ("research", "ada"): 2}


def test_jobs_that_run():
    assert set(of(BUSY, "slurm_job_info")) == {
        ("research", "1539", "main", "normal", "ada"),
        ("physics", "1540", "main", "normal", "bob"),
        ("physics", "1541", "main", "normal", "bob"),
    }
    assert of(BUSY, "slurm_job_gpu") == {
        ("0", "1539", "worker1"): 1,
        ("1", "1539", "worker1"): 1,
        ("0", "1539", "worker2"): 1,
        ("1", "1541", "worker2"): 1,
    }
    assert of(BUSY, "slurm_job_gpus") == {
        ("1539", "worker1"): 2,
        ("1539", "worker2"): 1,
        ("1541", "worker2"): 1,
    }
    assert sum(of(BUSY, "slurm_job_cpus").values()) == 4
    assert of(BUSY, "slurm_job_start_timestamp_seconds")[("1539",)] == 1795739498


def test_tasks_of_an_array_have_their_gpus():
    found = collect("arrays")
    assert {key[1] for key in of(found, "slurm_job_gpu")} == {"1556", "1558", "1559", "1560"}
    per_node = [(gpu, node) for gpu, _, node in of(found, "slurm_job_gpu")]
    assert len(per_node) == len(set(per_node)) == 6, "no GPU is of two jobs"


def test_a_node_that_is_down_and_one_for_maintenance():
    assert of(collect("draining"), "slurm_node_state")[("worker2", "down")] == 1
    found = collect("maintenance")
    assert set(of(found, "slurm_node_state")) >= {
        ("worker1", "idle"),
        ("worker1", "maint"),
        ("worker1", "reserved"),
    }
    assert not of(found, "slurm_job_info")
    assert of(found, "slurm_jobs") == {("pending",): 0, ("running",): 0}


def test_names_of_jobs_are_in_no_metric():
    text = Collector(Settings("x"), FakeSlurm.of("hostile"), Clock()).metrics().decode()
    assert "slurm_job_info" in text
    assert "root" not in text.replace('user="root"', "")
    assert "new" not in text
    assert all(line.isprintable() for line in text.splitlines())


def test_parts_of_gpus_have_no_numbers_of_gpus():
    slurm = FakeSlurm.of("arrays")
    slurm.answers["details"] = slurm.answers["details"].replace("gpu:h100:", "gpu:1g.10gb:")
    found = samples(Collector(Settings("x"), slurm, Clock()).metrics())
    assert not of(found, "slurm_job_gpu")
    assert sum(of(found, "slurm_job_gpus").values()) == 6


def test_each_job_is_asked_once():
    slurm, clock = FakeSlurm.of("busy"), Clock()
    collector = Collector(Settings("x"), slurm, clock)
    texts = []
    for _ in range(4):
        texts.append(collector.metrics())
        clock.now += 30
    assert slurm.asked == {"nodes": 4, "jobs": 4, "scheduler": 4, "details": 1, "accounting": 1}
    assert of(samples(texts[0]), "slurm_job_gpu") == of(samples(texts[3]), "slurm_job_gpu")


def test_a_job_that_is_requeued_is_asked_again_and_one_that_ended_is_forgotten():
    slurm = FakeSlurm.of("busy")
    collector = Collector(Settings("x"), slurm, Clock())
    collector.metrics()
    jobs = slurm.answers["jobs"]
    slurm.answers["jobs"] = jobs.replace("2026-11-27T00:31:38", "2026-11-27T00:40:00")
    collector.metrics()
    assert slurm.commands[-2][-1] == "1539,1539"
    slurm.answers["jobs"] = "\n".join(line for line in jobs.splitlines() if "RUNNING" not in line)
    assert not of(samples(collector.metrics()), "slurm_job_gpu")
    assert not collector._shares
    assert slurm.asked["details"] == 2


def test_without_details_the_rest_is_there():
    slurm = FakeSlurm.of("busy")
    slurm.broken = {"details", "scheduler", "accounting"}
    found = samples(Collector(Settings("x"), slurm, Clock()).metrics())
    assert of(found, "slurm_source_up") == {("accounting",): 0, ("details",): 0, ("scheduler",): 0}
    assert of(found, "slurm_jobs_without_details") == {(): 3}
    assert len(of(found, "slurm_job_info")) == 3
    assert not {name for name, _ in found} & {"slurm_job_gpu", "slurm_server_threads", "slurm_wait_seconds"}


def test_what_was_not_answered_is_asked_again():
    slurm, clock = FakeSlurm.of("busy"), Clock()
    collector = Collector(Settings("x"), slurm, clock)
    slurm.broken = {"details", "accounting"}
    collector.metrics()
    slurm.broken = set()
    clock.now += 60
    found = samples(collector.metrics())
    assert of(found, "slurm_source_up") == {("accounting",): 1, ("details",): 1, ("scheduler",): 1}
    assert len(of(found, "slurm_job_gpu")) == 4


def test_a_head_that_is_too_busy_is_asked_for_less():
    slurm = large_site(3000, 1000)
    collector = Collector(Settings("x", accounting_interval=0), slurm, Clock())
    asked = []
    for broken in (True, True, False, False, False, True, True, True, True, True, True, False):
        slurm.broken = {"details"} if broken else set()
        collector.metrics()
        asked.append(slurm.commands[-2][-1].count(",") + 1)
    assert asked == [1000, 500, 250, 500, 1000, 1000, 500, 250, 125, 62, 50, 50]


def test_accounting_is_asked_rarely_or_never():
    slurm, clock = FakeSlurm.of("busy"), Clock()
    collector = Collector(Settings("x", accounting_interval=300), slurm, clock)
    for _ in range(21):
        found = samples(collector.metrics())
        clock.now += 30
    assert slurm.asked["accounting"] == 3
    assert of(found, "slurm_source_up")[("accounting",)] == 1
    clock.now = NOW - 86400  # set back
    collector.metrics()
    assert slurm.asked["accounting"] == 4
    never = FakeSlurm.of("busy")
    found = samples(Collector(Settings("x", accounting_interval=0), never, Clock()).metrics())
    assert never.asked["accounting"] == 0
    assert ("accounting",) not in of(found, "slurm_source_up")


def test_jobs_that_ended_are_counted():
    slurm, clock = FakeSlurm.of("busy"), Clock()
    collector = Collector(Settings("x", accounting_interval=60), slurm, clock)
    collector.metrics()
    clock.now += 60
    ended = SEPARATOR.join(
        ("1539", "main", "research", "ada", "FAILED", "2026-11-27T00:31:35", "2026-11-27T00:31:38")
    )
    slurm.answers["accounting"] += f"{ended}{SEPARATOR}2026-11-27T00:33:00{SEPARATOR}36000\n"
    found = samples(collector.metrics())
    assert of(found, "slurm_jobs_ended_total") == {("main", "failed"): 1}
    assert of(found, "slurm_account_energy_joules_total") == {("research", "ada"): 36000}


def test_jobs_are_not_counted_again_after_slurmdbd_was_away():
    slurm, clock = FakeSlurm.of("busy"), Clock()
    collector = Collector(Settings("x", accounting_interval=60), slurm, clock)
    for broken in ({"accounting"}, set(), {"accounting"}, set()):
        slurm.broken = broken
        found = samples(collector.metrics())
        clock.now += 60
    assert not of(found, "slurm_jobs_ended_total")


@pytest.mark.parametrize("source", ["nodes", "jobs"])
def test_without_nodes_or_jobs_there_is_no_answer(source):
    slurm = FakeSlurm.of("busy")
    slurm.broken = {source}
    with pytest.raises(NoAnswer, match="gave no answer within 8 s"):
        Collector(Settings("x"), slurm, Clock()).metrics()


def test_a_silent_slurm_is_asked_one_question_only():
    slurm = FakeSlurm.of("busy")
    slurm.broken = {"nodes"}
    before = Snapshot(1.0, 1.0, None, b"old")
    after = collected(Collector(Settings("x"), slurm, Clock()), before, lambda: 31.0)
    assert after == Snapshot(31.0, 1.0, "`scontrol` gave no answer within 8 s", b"old")
    assert slurm.asked == {"nodes": 1}
    slurm.broken = set()
    healed = collected(Collector(Settings("x"), slurm, Clock()), after, lambda: 61.0)
    assert healed[:3] == (61.0, 61.0, None)
    assert b"slurm_nodes" in healed.metrics


def test_too_many_jobs_and_accounts():
    found = collect("busy", max_jobs=2, max_accounts=1)
    assert of(found, "slurm_jobs_left_out") == {(): 1}
    assert {key[1] for key in of(found, "slurm_job_info")} == {"1539", "1541"}, "those with GPUs"
    assert {key[1] for key in of(found, "slurm_job_gpu")} == {"1539", "1541"}
    assert of(found, "slurm_jobs")[("running",)] == 3
    assert of(found, "slurm_accounts_left_out") == {(): 1}
    assert of(found, "slurm_account_gpus_allocated") == {("physics", "bob"): 1, (OTHERS, OTHERS): 3}
    assert sum(of(found, "slurm_account_jobs").values()) == 41


def test_a_job_on_a_node_that_slurm_does_not_know_has_no_series_there():
    slurm = FakeSlurm.of("busy")
    slurm.answers["nodes"] = slurm.answers["nodes"].splitlines()[0]
    found = samples(Collector(Settings("x"), slurm, Clock()).metrics())
    assert {key[1] for key in of(found, "slurm_job_gpus")} == {"worker1"}


@pytest.mark.proof
def test_ten_thousand_jobs_on_a_thousand_nodes():
    """Takes some 1 s of a core and 4 MB of text; the bounds are five times that."""
    slurm = large_site(10_000, 1_000)
    collector = Collector(Settings("x"), slurm, Clock())
    for _ in range(10):
        collector.metrics()
    gc.collect()
    begin = time.process_time()
    text = collector.metrics()
    assert time.process_time() - begin < 5
    assert slurm.asked["details"] == 10, "1,000 jobs at a time"
    assert len(text) < 20e6
    found = samples(text)
    assert of(found, "slurm_jobs_without_details") == {(): 0}
    assert len(of(found, "slurm_job_gpu")) == 8_000
    assert len(of(found, "slurm_job_info")) == 10_000
    tracemalloc.start()
    collector.metrics()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 300e6


def test_a_collection_takes_work_in_proportion_to_its_jobs():
    """Executed lines are counted, which no busy machine changes: twice the jobs and nodes, about twice the lines."""

    def lines(jobs):
        collector = Collector(Settings("x"), large_site(jobs, jobs // 10), Clock())
        collector.metrics()
        count = 0

        def trace(frame, event, argument):
            nonlocal count
            count += 1
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            collector.metrics()
        finally:
            sys.settrace(before)
        return count

    assert lines(200) < 2.2 * lines(100)


def test_the_command_line(monkeypatch):
    told = []
    monkeypatch.setattr(program, "run", told.append)
    program.main(
        ["--output=/run/x", "--interval=10", "--timeout=3", "--accounting-interval=0", "--max-jobs=5"]
    )
    assert told == [Settings("/run/x", 10, 3, 0, 5)]
    program.main(["--output=/run/x"])
    assert told[1] == Settings("/run/x")


def test_collections_begin_an_interval_apart(monkeypatch, tmp_path):
    """However long one took; and never at once after a long one."""
    slept, clock = [], Clock(100.0)
    took = iter((2.0, 29.5, 95.0))

    class Slow:
        def __init__(self, *_):
            pass

        def metrics(self):
            clock.now += next(took)
            return b"figures\n"

    def sleep(seconds):
        slept.append(seconds)
        if len(slept) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr(program, "Collector", Slow)
    monkeypatch.setattr(program.time, "monotonic", clock)
    monkeypatch.setattr(program.time, "sleep", sleep)
    monkeypatch.setattr(program.collected, "__defaults__", (clock,))
    with pytest.raises(KeyboardInterrupt):
        program.run(Settings(str(tmp_path / "metrics"), interval=30))
    assert slept == [28.0, 1.0, 1.0]
    assert (tmp_path / "metrics").read_bytes().endswith(b"figures\n")
