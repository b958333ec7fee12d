"""The program on a machine in memory, with a Slurm in memory: what it drains, remembers and refuses."""

from __future__ import annotations

import errno
import json

import pytest

from rackwright.health.guard import places
from rackwright.health.guard.memory import Policy
from rackwright.workload.slurm.output import node_state
from rackwright.workload.states import HEALTH_PREFIX
from tests.unit.guard.machine import Machine, silence
from tests.unit.guard.test_installed import Installed
from tests.unit.health.fake_node import NOW


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def test_a_healthy_node_sends_slurm_next_to_nothing(machine):
    for _ in range(6):
        assert not machine.run()
    assert machine.slurm.asked == [["scontrol", "show", "node", "gpu001", "-o"]], (
        "once, after the first clean row"
    )
    last = machine.read(places.LAST)
    assert (last["outcome"], last["step"], last["why"]) == ("clean", "keep", "clean")


def test_seven_of_eight_is_drained_and_comes_back_after_three_clean_passes(machine):
    machine.breaks()
    machine.run()
    assert machine.slurm.reason.startswith(f"{HEALTH_PREFIX}gpu-count")
    assert "nvidia-smi lists 7 of 8 declared GPUs" in machine.slurm.reason
    machine.run()
    machine.heals()
    for expected in ({"IDLE", "DRAIN"}, {"IDLE", "DRAIN"}, {"IDLE"}):
        machine.run()
        assert machine.slurm.words == expected
    assert machine.read(places.MEMORY)["drained"] is False


def test_a_slow_answer_now_and_then_sends_slurm_nothing_either(machine):
    for _ in range(3):
        machine.run()
    machine.slurm.asked.clear()
    for _ in range(5):
        machine.breaks(silence)
        machine.run()
        machine.heals()
        for _ in range(4):
            machine.run()
    assert machine.slurm.asked == []


def test_a_pass_that_is_killed_after_its_drain_does_not_strand_the_node(machine, monkeypatch):
    for _ in range(4):
        machine.run()
    machine.breaks()
    with monkeypatch.context() as killed:
        killed.setattr("rackwright.health.guard.main.Guard._remember", _killed)
        with pytest.raises(KeyboardInterrupt):
            machine.run()
    assert machine.slurm.words == {"IDLE", "DRAIN"}
    machine.heals()
    for _ in range(3):
        machine.run()
    assert machine.slurm.words == {"IDLE"}


def _killed(*_):
    raise KeyboardInterrupt


def test_a_slurm_that_was_silent_is_asked_again(machine):
    machine.slurm.silent = True
    for _ in range(5):
        machine.run()
    assert len(machine.slurm.asked) == 3
    machine.slurm.silent = False
    machine.run()
    machine.slurm.asked.clear()
    machine.run()
    assert machine.slurm.asked == []


def test_a_full_disk_does_not_leave_the_node_drained_for_ever(machine, monkeypatch):
    """What could not be remembered must not be contradicted by an old memory."""
    for _ in range(6):
        machine.run()
    with monkeypatch.context() as full:
        full.setattr("os.fsync", no_space)
        machine.breaks()
        machine.run()
        assert machine.slurm.words == {"IDLE", "DRAIN"}
    machine.heals()
    for expected in ({"IDLE", "DRAIN"}, {"IDLE", "DRAIN"}, {"IDLE"}):
        machine.run()
        assert machine.slurm.words == expected


def no_space(_):
    raise OSError(errno.ENOSPC, "No space left on device")


def test_a_human_drain_stays_whatever_is_found(machine):
    machine.slurm.human(drain=True)
    for change in (machine.breaks, machine.heals):
        change()
        for _ in range(5):
            machine.run()
        assert (machine.slurm.words, machine.slurm.reason) == ({"IDLE", "DRAIN"}, "a fan")


def test_a_human_who_takes_our_drain_over_keeps_it(machine):
    machine.breaks()
    machine.run()
    machine.slurm.human(drain=True)
    machine.heals()
    for _ in range(5):
        machine.run()
    assert machine.slurm.reason == "a fan"


def test_who_resumes_a_node_excuses_the_kernel_log_before_and_nothing_else(machine):
    machine.breaks(
        lambda node: node.log("NVRM: Xid (PCI:0000:1b:00): 79, pid=1, GPU has fallen off the bus.")
    )
    machine.run()
    assert "xid-hardware" in machine.slurm.reason
    machine.slurm.human(drain=False)
    assert not machine.run("prolog"), "a job may start at once"
    assert machine.slurm.words == {"IDLE"}
    assert machine.read(places.MEMORY)["excused_until"] == NOW
    machine.breaks()
    machine.run()
    assert "gpu-count" in machine.slurm.reason


def test_past_the_share_an_alert_is_raised_and_jobs_start(tmp_path):
    machine = Machine(tmp_path, others=1)
    machine.breaks()
    assert not machine.run("prolog")
    assert machine.slurm.words == {"IDLE"}
    assert (
        "1 of 10 nodes of main are already drained by health checks" in machine.read(places.MEMORY)["alert"]
    )
    text = machine.metrics()
    assert "\nrackwright_health_alert 1\n" in text
    assert '\nrackwright_health_failed{check="gpu-count",action="reboot"} 1\n' in text


def test_a_prolog_drains_with_our_reason_before_it_refuses(machine):
    machine.breaks()
    assert machine.run("prolog")
    assert machine.slurm.reason.startswith(HEALTH_PREFIX)
    assert machine.run("prolog"), "and again, though it is drained already"


def test_a_prolog_that_knows_too_little_lets_the_job_start(machine):
    machine.breaks(silence)
    assert not machine.run("prolog")
    assert machine.slurm.words == {"IDLE"}


def test_a_prolog_looks_twice_where_unknown_drains(machine):
    machine.wants(Policy(act=True, unknown="drain"))
    machine.run()
    machine.put(places.GPUS, "")
    machine.breaks(silence)
    machine.source.asked.clear()
    assert machine.run("prolog")
    assert machine.source.asked.count("nvidia-smi -q -x") == 2
    assert "UNKNOWN" in machine.slurm.reason


def test_unknown_drains_no_node_on_which_the_check_never_passed(tmp_path):
    machine = Machine(tmp_path, Policy(act=True, unknown="drain"))
    machine.breaks(silence)
    for _ in range(5):
        assert not machine.run()
        assert not machine.run("prolog")
    assert machine.slurm.words == {"IDLE"}
    assert machine.read(places.MEMORY)["alert"].startswith("UNKNOWN in 3 passes in a row: gpu-count")


def test_unknown_that_lasts_raises_one_alert(machine, monkeypatch):
    said = []
    monkeypatch.setattr(
        "rackwright.health.guard.main.log", lambda text, urgent=False: said.append((text, urgent))
    )
    machine.breaks(silence)
    machine.heals()
    machine.run()
    machine.breaks(silence)
    for _ in range(6):
        machine.run()
        machine.run("prolog")  # it knows the GPUs from the kept query, and ends no row
    assert [urgent for _, urgent in said] == [True]
    assert said[0][0].startswith("alert: UNKNOWN in 3 passes in a row: gpu-")
    assert machine.slurm.words == {"IDLE"}
    assert "\nrackwright_health_alert 1\n" in machine.metrics()
    machine.heals()
    machine.run()
    assert "\nrackwright_health_alert 0\n" in machine.metrics()


def test_another_declaration_or_driver_forgets_what_has_passed(machine):
    machine.run()
    assert "gpu-count" in machine.read(places.MEMORY)["passed"]
    before = machine.read(places.MEMORY)["basis"]
    machine.breaks(lambda node: (silence(node), node.drop("/proc/driver/nvidia/version")))
    machine.run()
    assert machine.read(places.MEMORY)["basis"] == before, "a driver that does not answer is not another one"
    machine.breaks(lambda node: (silence(node), node.edit("/proc/driver/nvidia/version", " 5", " 6")))
    machine.run()
    assert "gpu-count" not in machine.read(places.MEMORY)["passed"]


def test_prologs_and_epilogs_count_no_clean_pass(machine):
    machine.breaks()
    machine.run("epilog")
    assert machine.slurm.words == {"IDLE", "DRAIN"}
    machine.heals()
    for _ in range(9):
        machine.run("prolog")
        machine.run("epilog")
    assert machine.slurm.words == {"IDLE", "DRAIN"}


def test_a_slurm_that_does_not_answer_leaves_everything_and_is_told_later(machine):
    machine.breaks()
    machine.slurm.silent = True
    machine.run()
    assert "gave no answer" in machine.read(places.MEMORY)["alert"]
    assert machine.run("prolog"), "a job must not start on a failing node"
    machine.slurm.silent = False
    machine.run()
    assert machine.slurm.words == {"IDLE", "DRAIN"}


def test_kill_switches_of_the_node(machine):
    machine.breaks()
    machine.put(f"{places.DISABLED}/gpu-count", "the eighth is at the vendor's\n")
    machine.put(f"{places.DISABLED}/gpu-cuont", "")
    machine.run()
    last = machine.read(places.LAST)
    found = {one["check"]: one for one in last["results"]}
    assert found["gpu-count"]["status"] == "DISABLED"
    assert found["gpu-count"]["evidence"] == "switched off: on this node: the eighth is at the vendor's"
    assert found["kill-switch"]["evidence"].endswith("gpu-cuont: unknown health check gpu-cuont")
    assert "gpu-count" not in machine.slurm.reason


@pytest.mark.parametrize("damaged", ["", "{}", '{"node": 1}', "[]"])
@pytest.mark.parametrize("path", [places.EXPECTED, places.MEMORY])
def test_damaged_files_are_unknown_or_nothing_remembered(machine, path, damaged):
    machine.put(path, damaged)
    for _ in range(3):
        assert not machine.run()
        assert not machine.run("prolog")
    assert machine.slurm.words == {"IDLE"}
    blind = "UNKNOWN in 3 passes in a row: declaration: what this node should be cannot be read"
    alert = machine.read(places.MEMORY)["alert"]
    assert (alert or "").startswith(blind) is (path == places.EXPECTED)


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    return Installed(tmp_path_factory.mktemp("installed"))


def test_the_program_without_its_files_is_unknown(installed):
    done = installed.run("show")
    told = json.loads(done.stdout)
    assert (done.returncode, told["outcome"], done.stderr) == (4, "unknown", "")
    assert places.POLICY in told["why"]


def test_the_program_refuses_a_mode_it_does_not_know(installed):
    done = installed.run("drain")
    assert (done.returncode, done.stderr) == (64, "usage: health-check [prolog|epilog|show]\n")


def test_what_slurm_shows_of_our_drain_is_ours():
    assert node_state("IDLE+DRAIN", HEALTH_PREFIX + "x").drained_by_health
    assert not node_state("IDLE", HEALTH_PREFIX + "x").drained_by_health
