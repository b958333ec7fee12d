"""The program on a machine in memory, with a Slurm in memory: what it drains, remembers and refuses."""

from __future__ import annotations

import errno
import json
import time
from dataclasses import asdict, replace

import pytest

from rackwright.health.guard import places
from rackwright.health.guard.main import Guard
from rackwright.health.guard.policy import Policy, condemned
from rackwright.workload.slurm.on_node import SlurmOnNode
from rackwright.workload.slurm.output import node_state
from rackwright.workload.states import HEALTH_PREFIX, NoAnswer
from tests.unit.guard.test_installed import Installed
from tests.unit.health.bases import BASES
from tests.unit.health.fake_node import HANGS, NOW
from tests.unit.health.faults import drop_gpu

FULL = BASES["full"]
EXPECTED = replace(FULL.expected, node="gpu001")


class SlurmInMemory(SlurmOnNode):
    """One partition of ten nodes; `others` are drained by health checks already."""

    settle_seconds = 0.0

    def __init__(self, others=0):
        super().__init__("gpu001", self.answer)
        self.words, self.reason, self.by, self.asked = {"IDLE"}, "none", "", []
        self.others, self.silent = others, False

    def answer(self, command):
        self.asked.append(command)
        if self.silent:
            raise NoAnswer("`scontrol` gave no answer within 15 s")
        if command[0] == "sinfo":
            rows = [("gpu001", "drained" if "DRAIN" in self.words else "idle", self.reason)]
            rows += [(f"gpu{n:03}", "drained", HEALTH_PREFIX + "x") for n in range(2, 2 + self.others)]
            rows += [(f"gpu{n:03}", "idle", "none") for n in range(2 + self.others, 11)]
            return "".join(f"main|{name}|{state}|root|2026|{reason}\n" for name, state, reason in rows)
        if command[1] == "show":
            return f"NodeName=gpu001 State={'+'.join(sorted(self.words))} Reason={self.reason} [{self.by or 'root@x'}]\n"
        told = dict(word.split("=", 1) for word in command[2:])
        if told.get("State") == "DRAIN":
            self.words.add("DRAIN")
        if told.get("State") == "RESUME":
            self.words.discard("DRAIN")
        self.reason = told.get("Reason", self.reason if "DRAIN" in self.words else "none")
        return ""

    def human(self, *, drain):
        self.words, self.reason, self.by = (
            ({"IDLE", "DRAIN"}, "a fan", "ada@x") if drain else ({"IDLE"}, "none", "")
        )


class Machine:
    """A node's disk, its hardware, its Slurm."""

    def __init__(self, root, policy=None, others=0):
        self.root, self.slurm, self.node = root, SlurmInMemory(others), FULL.node
        for folder in (places.DISABLED, places.STATE):
            (root / folder.strip("/")).mkdir(parents=True)
        self.put(places.EXPECTED, json.dumps(EXPECTED.to_json()))
        patient = {**asdict(policy or Policy()), "fast_seconds": 60}  # a busy machine is no fault
        self.put(places.POLICY, json.dumps(patient))

    def put(self, path, text):
        (self.root / path.strip("/")).write_text(text)

    def read(self, path):
        return json.loads((self.root / path.strip("/")).read_text())

    def run(self, mode="check"):
        """One pass; whether a job would be refused."""
        guard = Guard(str(self.root), self.slurm, self.node)
        found, decision = guard.pass_(mode, time.monotonic())
        return condemned(guard.policy, decision.memory, found) and not decision.past_share

    def breaks(self, mutate=None):
        self.node = FULL.node.with_fault(mutate or drop_gpu(3))

    def heals(self):
        self.node = FULL.node


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


def silence(node):
    node.commands["nvidia-smi -q -x"] = HANGS


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
    before = machine.node
    journal = next(key for key in before.commands if key.startswith("journalctl"))
    since = journal.rpartition("@")[0] + f"@{NOW:.0f}"  # journald itself leaves out what came before
    machine.breaks(lambda node: node.commands.update({since: FULL.node.commands[journal]}))
    assert not machine.run("prolog"), "a job may start at once"
    assert machine.slurm.words == {"IDLE"}
    assert machine.read(places.MEMORY)["excused_until"] == NOW
    drop_gpu(3)(machine.node)
    machine.run()
    assert "gpu-count" in machine.slurm.reason


def test_past_the_share_an_alert_is_raised_and_jobs_start(tmp_path):
    machine = Machine(tmp_path, others=1)
    machine.breaks()
    assert not machine.run("prolog")
    assert machine.slurm.words == {"IDLE"}
    assert "1 of 10 nodes of main are drained by health checks" in machine.read(places.MEMORY)["alert"]
    text = (tmp_path / f"{places.STATE}/{places.METRICS}".strip("/")).read_text()
    assert "\nrackwright_health_alert 1\n" in text
    assert '\nrackwright_health_failed{check="gpu-count",action="reboot"} 1\n' in text


def test_a_prolog_drains_with_our_reason_before_it_refuses(machine):
    machine.breaks()
    assert machine.run("prolog")
    assert machine.slurm.reason.startswith(HEALTH_PREFIX)
    assert machine.run("prolog"), "and again, though it is drained already"


def test_a_prolog_looks_twice_where_too_little_is_known(machine):
    machine.breaks(silence)
    assert machine.run("prolog")
    assert "UNKNOWN" in machine.slurm.reason
    kept = Machine(machine.root / "other", Policy(unknown="keep"))
    kept.breaks(silence)
    assert not kept.run("prolog")


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
    assert found["kill-switch"]["evidence"].endswith("gpu-cuont names no check")
    assert "gpu-count" not in machine.slurm.reason


@pytest.mark.parametrize("damaged", ["", "{}", '{"node": 1}', "[]"])
@pytest.mark.parametrize("path", [places.EXPECTED, places.MEMORY])
def test_damaged_files_are_unknown_or_nothing_remembered(machine, path, damaged):
    machine.put(path, damaged)
    for _ in range(3):
        machine.run()
    drained = machine.slurm.words == {"IDLE", "DRAIN"}
    assert drained is (path == places.EXPECTED)
    assert not drained or "declaration UNKNOWN" in machine.slurm.reason


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
