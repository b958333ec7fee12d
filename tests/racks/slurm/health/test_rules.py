"""What a health check may not do: touch a human's drain, drain too many, let jobs start, reboot for ever."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator

import pytest

from rackwright.errors import LabError
from rackwright.health.guard import places
from rackwright.workload.states import HEALTH_PREFIX
from tests.racks.watch import PATIENCE, Watch

pytestmark = pytest.mark.lab


def test_a_drain_made_by_a_human_stays(watch: Watch):
    watch.on("head1", "scontrol update NodeName=worker2 State=DRAIN Reason='a fan rattles'")
    try:
        watch.fault("worker2", "gpu:ecc")
        watch.passes("worker2", 2)
        assert watch.rows()["worker2"].reason == "a fan rattles"
        assert watch.why("worker2").parts[0].data["drained_by"] == "person"
        watch.heal("worker2")
        watch.passes("worker2", 3)
        row = watch.rows()["worker2"]
        assert (row.state, row.reason) == ("drained", "a fan rattles")
    finally:
        watch.on("head1", "scontrol update NodeName=worker2 State=RESUME")


def test_only_one_of_two_is_drained_and_the_other_raises_an_alert(watch: Watch):
    watch.fault("worker1", "gpu:throttle")
    watch.fault("worker2", "gpu:throttle")
    deadline = time.monotonic() + PATIENCE
    while not any(watch.metric(node, "alert") for node in ("worker1", "worker2")):
        assert time.monotonic() < deadline, "no alert is raised"
        time.sleep(0.5)
    watch.passes("worker1", 2)
    watch.passes("worker2", 2)
    ours = [name for name, row in watch.rows().items() if row.drained_by_health]
    assert len(ours) == 1
    [other] = {"worker1", "worker2"} - set(ours)
    assert (
        "1 of 2 nodes of main are already drained by health checks, at most 1 may be"
        in watch.last(other)["memory"]["alert"]
    )
    assert "alert: " in watch.on(other, "journalctl -q -t rackwright-health -p crit --no-pager")
    watch.heal(ours[0])
    watch.drained(other, "gpu-throttle")  # once there is room for it
    watch.heal(other)


def test_a_kill_switch_on_the_node_keeps_one_check_quiet(watch: Watch):
    watch.on("worker1", f"echo 'hot aisle is open' > {places.DISABLED}/gpu-throttle")
    try:
        watch.passes("worker1", 1)  # one that began earlier knows nothing of the switch
        watch.fault("worker1", "gpu:throttle")
        last = watch.passes("worker1", 2)[-1]
        found = next(one for one in last["results"] if one["check"] == "gpu-throttle")
        assert (found["status"], "hot aisle is open" in found["evidence"]) == ("DISABLED", True)
        assert watch.rows()["worker1"].state == "idle"
        report = json.loads(watch.site.cli("verify", str(watch.site.file), "--role", "health", "--json").out)
        assert {result["status"] for result in report["results"]} == {"PASS", "WARN"}
    finally:
        watch.heal("worker1")
        watch.on("worker1", f"rm -f {places.DISABLED}/gpu-throttle")


def test_unknown_neither_drains_at_once_nor_resumes(watch: Watch):
    watch.fault("worker1", "gpu:ecc")
    watch.drained("worker1", "gpu-ecc-uncorrected")
    documents = "/usr/local/share/rackwright-lab-gpus/nvidia-smi"
    watch.on(
        "worker1", f"mkdir -p /tmp/none && mount --bind /tmp/none {documents}"
    )  # nvidia-smi knows nothing
    try:
        assert {one["outcome"] for one in watch.passes("worker1", 3)} == {"unknown"}
        assert watch.rows()["worker1"].drained_by_health
    finally:
        watch.on("worker1", f"umount -l {documents}")  # it may contain a pass
    watch.heal("worker1")
    watch.in_service("worker1")


@pytest.fixture
def unwatched(watch: Watch) -> Iterator[Watch]:
    """Slurm never looks, and may reboot nodes: what happens is a prolog's or a test's doing."""
    # A container has the uptime of its host, so Slurm accepts a reboot only when its time for one is over.
    reboot = "RebootProgram=\\/sbin\\/reboot\\nResumeTimeout=30\\n"
    change = f"sed -i '/^HealthCheck/d; /^ResumeTimeout/d; s/^ProctrackType/{reboot}&/'"
    for node in ("head1", "worker1", "worker2"):
        watch.on(node, f"cp -p /etc/slurm/slurm.conf /root/slurm.conf; {change} /etc/slurm/slurm.conf")
    watch.on("head1", "scontrol reconfigure")
    for node in ("worker1", "worker2"):  # a pass that Slurm began before may still be at work
        watch.on(node, "sleep 2; while pgrep -f '[h]ealth-check' >/dev/null; do sleep 0.2; done")
    yield watch
    for node in ("head1", "worker1", "worker2"):
        watch.on(node, "cp -p /root/slurm.conf /etc/slurm/slurm.conf")
    watch.on("head1", "scontrol reconfigure")
    for node in ("worker1", "worker2"):
        watch.heal(node)
        watch.in_service(node)


def test_no_job_starts_on_a_failing_node(unwatched: Watch):
    """The prolog queries no GPU; what it reads each time is the kernel's log."""
    watch = unwatched
    watch.fault("worker2", "gpu:xid:79")
    job = watch.on(
        "head1", "sbatch --parsable -A burnin -w worker2 --gres=gpu:1 --mem=16 -o /tmp/ran --wrap 'echo ran'"
    ).strip()
    row = watch.drained("worker2", "xid-hardware")
    assert row.reason.startswith(HEALTH_PREFIX), "not Slurm's own 'Prolog error', which no check would lift"
    assert watch.last("worker2")["mode"] in ("prolog", "epilog")  # slurmd runs it after a prolog that failed
    _wait_for(watch, job, "JobState=PENDING", "Restarts=1")
    watch.heal("worker2")
    watch.on("worker2", "systemctl is-system-running --wait || :")
    _looks_until_in_service(watch, "worker2")
    watch.on(
        "head1", f"scontrol update JobId={job} StartTime=now"
    )  # Slurm lets a requeued job wait two minutes
    _wait_for(watch, job, "JobState=COMPLETED")


def test_a_job_that_leaves_a_broken_gpu_is_followed_by_a_drain(unwatched: Watch):
    """The job starts on the query that was kept; the epilog queries again."""
    watch = unwatched
    watch.on("worker1", places.PROGRAM)
    watch.fault("worker1", "gpu:pcie-width")
    job = watch.on(
        "head1", "sbatch --parsable -A burnin -w worker1 --gres=gpu:1 --mem=16 -o /tmp/ran --wrap 'sleep 3'"
    ).strip()
    watch.drained("worker1", "gpu-pcie-width")
    _wait_for(watch, job, "JobState=COMPLETED")
    watch.heal("worker1")
    _looks_until_in_service(watch, "worker1")


def test_a_node_that_observes_drains_nothing_and_records_it(unwatched: Watch):
    watch = unwatched
    watch.on("worker1", f"""sed -i 's/"act": true/"act": false/' {places.POLICY}""")
    try:
        watch.fault("worker1", "gpu:ecc")
        for mode in ("", "prolog", "epilog"):
            watch.on("worker1", f"{places.PROGRAM} {mode}")
        assert watch.rows()["worker1"].state == "idle"
        ran = watch.site.cli(
            "health", str(watch.site.file), "--would", "--limit", "worker1", "--json", expect=3
        )
        record = json.loads(ran.out)["nodes"][0]["record"]
        assert (record["acts"], record["current"]["passes"]) == (False, 3)
        assert "gpu-ecc-uncorrected" in record["current"]["checks"]
        lines = watch.why("worker1").parts[1].lines
        assert any(line.startswith("it would have been drained since ") for line in lines), lines
    finally:
        watch.heal("worker1")
        watch.on("worker1", f"""sed -i 's/"act": false/"act": true/' {places.POLICY}""")
    _looks_until_in_service(watch, "worker1")


def _wait_for(watch: Watch, job: str, *words: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not all(word in (reported := watch.on("head1", f"scontrol show job {job} -o")) for word in words):
        assert time.monotonic() < deadline, f"no {words}: {reported}"
        time.sleep(0.5)


@pytest.mark.proof  # it waits for Slurm for a minute and more
def test_a_reboot_that_does_not_help_is_not_repeated_for_ever(unwatched: Watch):
    watch = unwatched
    boot = "cat /proc/sys/kernel/random/boot_id"
    before = watch.on("worker1", boot)
    watch.on("worker1", f"""sed -i 's/"reboots_a_day": 0/"reboots_a_day": 1/' {places.POLICY}""")
    watch.fault("worker1", "gpu:pcie-width")
    watch.on("worker1", places.PROGRAM)
    watch.drained("worker1", "gpu-pcie-width FAIL reboot")
    watch.on("worker1", places.PROGRAM)
    deadline = time.monotonic() + PATIENCE
    while not node_is_up(watch, "worker1") or _asked(watch, "worker1", boot) in ("", before):
        assert time.monotonic() < deadline, "no reboot"
        time.sleep(1)
    watch.on("worker1", "systemctl is-system-running --wait || :")
    watch.drained("worker1", "gpu-pcie-width")  # a reboot does not lift it
    watch.on("worker1", places.PROGRAM)
    assert "1 reboots within 24 h did not help" in watch.last("worker1")["memory"]["alert"]
    assert watch.metric("worker1", "reboots_24h") == 1
    watch.heal("worker1")
    _looks_until_in_service(watch, "worker1")


def _looks_until_in_service(watch: Watch, node: str) -> None:
    """Twice if nothing is starting up any more: a unit that is makes a pass unknown."""
    deadline = time.monotonic() + PATIENCE
    while watch.rows()[node].state not in ("idle", "mixed", "allocated"):
        assert time.monotonic() < deadline, f"{node} does not resume itself: {watch.last(node)['why']}"
        watch.on(node, f"{places.PROGRAM} || :")
    watch.in_service(node)


def _asked(watch: Watch, node: str, script: str) -> str:
    """Its answer; nothing if it goes down meanwhile."""
    try:
        return watch.on(node, script)
    except (LabError, OSError):
        return ""


def node_is_up(watch: Watch, node: str) -> bool:
    """Whether it answers ssh."""
    return next(one.state for one in watch.site.rack.status().nodes if one.name == node) == "ready"
