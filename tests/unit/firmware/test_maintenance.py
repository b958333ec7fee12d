"""Nodes out of service and back: who may be touched, what is left drained, when a run stops."""

from __future__ import annotations

import pytest

from rackwright.bmc.interface import Power
from rackwright.engine.boots import Before, NotBooted
from rackwright.errors import BmcError, FirmwareError, WorkloadError
from rackwright.firmware.asking import Tempo
from rackwright.firmware.maintenance import Maintenance, exit_code, was_interrupted, waves
from rackwright.firmware.service import Service
from rackwright.model.types import NodeRole
from rackwright.workload.states import ROLLOUT_PREFIX, DrainedBy, NodeState
from tests.factories import RunsSlurm, make_cluster, make_node

RUN = "firmware-20261127T120000Z-abcdef"
SLURM = {"options": {"slurm": RunsSlurm()}}
CLUSTER = make_cluster(
    make_node("head1", 10, NodeRole.HEAD, **SLURM),
    *(make_node(f"worker{number}", 10 + number, **SLURM) for number in range(1, 4)),
)
WORKERS = [CLUSTER.by_name[f"worker{number}"] for number in range(1, 4)]
IDLE = NodeState("IDLE", frozenset({"IDLE"}))


def drained(reason, *, busy=False):
    by = DrainedBy.ROLLOUT if reason.startswith(ROLLOUT_PREFIX) else DrainedBy.PERSON
    return NodeState("DRAIN", frozenset({"DRAIN"}), drained=True, busy=busy, reason=reason, drained_by=by)


class Manager:
    """A workload manager that does what it is asked."""

    name = "Slurm"

    def __init__(self):
        self.known = {node.name: IDLE for node in WORKERS}
        self.busy = set()
        self.silent = False
        self.ignores = set()
        self.calls = []

    def states(self):
        if self.silent:
            raise WorkloadError("Slurm does not answer on head1.")
        return self.known

    def drain(self, nodes, run, deadline_seconds):
        self.calls += [("drain", name) for name in nodes]
        if refused := [name for name in nodes if name in self.busy]:
            return dict.fromkeys(refused, f"its jobs did not end within {deadline_seconds:g} s")
        for name in nodes:
            if self.known[name].in_service and name not in self.ignores:
                self.known[name] = drained(ROLLOUT_PREFIX + run)
        return {}

    def resume(self, nodes, run):
        mine = [name for name in nodes if self.known[name].reason == ROLLOUT_PREFIX + run]
        self.calls += [("resume", name) for name in mine]
        self.known |= dict.fromkeys(mine, IDLE)
        return mine

    @staticmethod
    def resume_command(node):
        return f"put back {node}"


class Client:
    """A BMC that only knows the power."""

    def __init__(self, power):
        self._power = power

    def power(self):
        return self._power

    def close(self): ...


@pytest.fixture
def run():
    """Run(change, ...): outcomes by node; what the parts were asked is on the function."""

    def call(change=lambda node, hands: ("bios 2",), nodes=WORKERS[:1], at_once=1, **given):
        manager = given.get("manager", Manager())
        before = given.get("before", {})
        service = Service(
            CLUSTER,
            manager,
            RUN,
            lambda names: {name: before.get(name, Before("boot")) for name in names},
            lambda cluster, names: {name: given.get("bad", {}).get(name) for name in names},
        )
        call.manager, call.journal, call.booted = manager, [], []
        maintenance = Maintenance(
            service,
            change,
            lambda node: Client(given.get("power", Power.ON)),
            lambda node, asking, on: call.booted.append((node.name, on)),
            record=lambda event, data: call.journal.append((event, data)),
            broken_off=lambda: given.get("broken_off"),
            tempo=Tempo(poll=0.01, away=0.05),
        )
        return maintenance.run(nodes, at_once)

    return call


def test_a_node_is_drained_changed_and_put_back(run):
    (outcome,) = run()
    assert (outcome.ok, outcome.changed, outcome.resume) == (True, ("bios 2",), None)
    assert run.manager.calls == [("drain", "worker1"), ("resume", "worker1")]
    assert [event for event, _ in run.journal] == ["firmware", "node"]


def test_a_node_whose_jobs_do_not_end_is_not_touched(run):
    manager = Manager()
    manager.busy = {"worker1"}
    (outcome,) = run(pytest.fail, manager=manager)
    assert outcome.error == "its jobs did not end within 3600 s; it was not changed."
    assert outcome.resume is None


def test_a_node_that_the_manager_keeps_in_service_is_not_touched(run):
    manager = Manager()
    manager.ignores = {"worker1"}
    (outcome,) = run(pytest.fail, manager=manager)
    assert outcome.error == "Slurm did not drain it: IDLE."


def test_a_manager_that_does_not_answer_is_no_free_node(run):
    manager = Manager()
    manager.silent = True
    (outcome,) = run(pytest.fail, manager=manager)
    assert outcome.error == "Slurm does not answer on head1."


@pytest.mark.parametrize(
    ("before", "why"),
    [
        (Before("boot", busy=True), "a job is running on it"),
        (Before(never="Cannot connect to worker1"), "Cannot connect to worker1"),
    ],
)
def test_what_the_node_itself_says_counts_too(run, before, why):
    (outcome,) = run(pytest.fail, before={"worker1": before})
    assert outcome.error == f"it must not be rebooted: {why}; it was not changed."
    assert run.manager.calls == [("drain", "worker1"), ("resume", "worker1")]  # in service again


@pytest.mark.parametrize(
    "error",
    [
        FirmwareError("failed: no signature."),
        BmcError("It refuses."),
        NotBooted("it did not return", gone=True),
        RuntimeError("x"),
    ],
)
def test_a_node_that_fails_stays_drained_and_ends_the_run(run, error):
    def fail(node, hands):
        raise error

    first, second = run(fail, WORKERS[:2])
    assert (first.ok, first.resume) == (False, "put back worker1")
    assert run.manager.known["worker1"].reason == f"rackwright: {RUN}"
    assert (second.begun, second.error) == (False, "not started: worker1 failed")
    assert run.manager.known["worker2"] is IDLE
    assert exit_code((first, second)) == 1


def test_a_node_that_does_not_pass_its_checks_stays_drained(run):
    (outcome,) = run(bad={"worker1": "health: GPU 3 is missing: FAIL"})
    assert outcome.error == "its checks fail: health: GPU 3 is missing: FAIL."
    assert outcome.resume == "put back worker1"


def test_what_an_earlier_firmware_run_left_drained_is_put_back(run):
    manager = Manager()
    manager.known["worker1"] = drained("rackwright: firmware-20261126T120000Z-000000")
    (outcome,) = run(manager=manager)
    assert (outcome.ok, manager.known["worker1"]) == (True, IDLE)


def test_what_a_person_drained_stays_so(run):
    manager = Manager()
    manager.known["worker1"] = drained("fan replaced on Monday")
    (outcome,) = run(manager=manager)
    assert outcome.ok
    assert manager.known["worker1"].reason == "fan replaced on Monday"


def test_a_node_that_is_off_stays_out_of_service(run):
    (outcome,) = run(power=Power.OFF, before={"worker1": Before(never="Cannot connect")})
    assert (outcome.ok, outcome.resume) == (True, "put back worker1")


def test_an_unknown_power_is_not_touched(run):
    (outcome,) = run(pytest.fail, power=Power.UNKNOWN)
    assert outcome.error == "its power is unknown; it was not changed."
    assert run.manager.calls == []


def test_a_boot_knows_whether_the_node_was_on(run):
    run(lambda node, hands: hands.boot() or ())
    assert run.booted == [("worker1", True)]


def test_some_at_once_and_heads_alone():
    nodes = [CLUSTER.by_name["head1"], *WORKERS]
    assert [[node.name for node in wave] for wave in waves(nodes, 2)] == [
        ["worker1", "worker2"],
        ["worker3"],
        ["head1"],
    ]


def test_nodes_at_once_each_end(run):
    def change(node, hands):
        if node.name == "worker1":
            raise FirmwareError("failed.")
        return ()

    outcomes = run(change, WORKERS, at_once=2)
    assert [(one.ok, one.begun) for one in outcomes] == [(False, True), (True, True), (False, False)]


def test_a_run_that_lost_its_lock_begins_nothing(run):
    (outcome,) = run(pytest.fail, broken_off="the run lost its lock")
    assert (outcome.begun, outcome.error) == (False, "not started: the run lost its lock")


def test_ctrl_c_while_jobs_end_puts_the_node_back(run):
    manager = Manager()

    def before(names):
        raise KeyboardInterrupt

    service = Service(CLUSTER, manager, RUN, before, lambda cluster, names: {})
    with pytest.raises(KeyboardInterrupt):
        service.take(WORKERS[0], on=True)
    assert manager.known["worker1"] is IDLE


def test_ctrl_c_during_an_update_leaves_it_drained(run):
    def change(node, hands):
        raise KeyboardInterrupt

    first, second = run(change, WORKERS[:2])
    assert (first.error, first.resume) == ("interrupted", "put back worker1")
    assert second.error == "not started: the run was interrupted"
    assert was_interrupted((first, second))
