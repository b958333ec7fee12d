"""What every workload manager promises, kept by Slurm and Kubernetes (over shells that behave as they do) and by a fake."""

from __future__ import annotations

import pytest

from rackwright.errors import ConnectionFailed, WorkloadError
from rackwright.model.types import NodeRole
from rackwright.workload.kubernetes.control import Kubernetes
from rackwright.workload.protocol import JobStep, Manager
from rackwright.workload.slurm.control import Slurm
from rackwright.workload.slurm_in_pods.control import SlurmInPods
from rackwright.workload.states import DrainedBy
from tests.factories import RunsKube, RunsSlurm, make_cluster, make_node
from tests.unit.workload.fake_kubernetes import BY, REASON, FakeKubernetes
from tests.unit.workload.fake_manager import MemoryManager
from tests.unit.workload.fake_slurm import FakeSlurm
from tests.unit.workload.fake_slurm_in_pods import SlurmAndKubernetes, slurm_in_pods

WORKERS = ("w1", "w2", "w3")


def cluster_of(role, options):
    return make_cluster(
        make_node("head1", 10, NodeRole.HEAD, options={role: options}),
        *(make_node(name, 20 + number) for number, name in enumerate(WORKERS)),
    )


CLUSTER = cluster_of("slurm", RunsSlurm())
STEP = JobStep(("w1", "w2"), 1, ("true",), 60)


class SlurmWorld:
    """Slurm, and what others do to it. A world's `backend` has the switches: silent, reply, ..."""

    ids, odd = ("7", "8"), "a|b"
    """Of the first two jobs of w1; a name of a job that is hard to read."""

    def __init__(self) -> None:
        self.backend = FakeSlurm(*WORKERS)
        self.manager: Manager = Slurm(CLUSTER, self.backend)

    def person_drains(self, node, reason):
        self.backend.nodes[node].drained = True
        self.backend.nodes[node].reason, self.backend.nodes[node].user = reason, "ada"

    def reason(self, node):
        found = self.backend.nodes[node]
        return found.reason if found.drained else None


class KubernetesWorld:
    """The same of Kubernetes."""

    ids, odd = ("ada/train", "ada/eval"), "a-b"

    def __init__(self) -> None:
        self.backend = FakeKubernetes(*WORKERS)
        self.manager: Manager = Kubernetes(cluster_of("kubernetes", RunsKube()), self.backend)

    def person_drains(self, node, reason):
        found = self.backend.nodes[node]
        found.unschedulable, found.owned = True, False
        found.annotations |= {REASON: reason, BY: "ada@2026-11-22T10:00:00Z"}

    def reason(self, node):
        found = self.backend.nodes[node]
        return found.annotations[REASON] if found.unschedulable else None


class SlurmInPodsWorld(SlurmWorld):
    """The same of Slurm whose slurmctld is a pod: its commands travel through kubectl."""

    def __init__(self) -> None:
        self.backend = SlurmAndKubernetes(*WORKERS)
        self.manager = SlurmInPods(slurm_in_pods(*WORKERS), self.backend)


class MemoryWorld:
    """The same of the manager in memory."""

    ids, odd = ("7", "8"), "a|b"

    def __init__(self) -> None:
        self.manager = self.backend = MemoryManager(CLUSTER)
        del self.backend.nodes["head1"]

    def person_drains(self, node, reason):
        self.backend.nodes[node].reason, self.backend.nodes[node].by = reason, "ada@now"

    def reason(self, node):
        return self.backend.nodes[node].reason


@pytest.fixture(
    params=[SlurmWorld, KubernetesWorld, SlurmInPodsWorld, MemoryWorld],
    ids=["slurm", "kubernetes", "slurm-in-pods", "memory"],
)
def world(request, monkeypatch):
    monkeypatch.setattr("rackwright.workload.slurm.control._POLL_SECONDS", 0.001)
    monkeypatch.setattr("rackwright.workload.kubernetes.draining.POLL_SECONDS", 0.001)
    monkeypatch.setattr("rackwright.workload.kubernetes.steps.POLL_SECONDS", 0.001)
    return request.param()


def reasons(world):
    return {node: world.reason(node) for node in WORKERS}


def test_only_the_nodes_asked_for_are_drained_and_come_back(world):
    assert world.manager.drain(["w1", "w3"], "R1", 1) == {}
    assert reasons(world) == {"w1": "rackwright: R1", "w2": None, "w3": "rackwright: R1"}
    states = world.manager.states()
    assert [states[node].in_service for node in WORKERS] == [False, True, False]
    assert (states["w1"].drained_by, states["w1"].run, states["w1"].busy) == (DrainedBy.ROLLOUT, "R1", False)
    assert world.manager.resume(["w1", "w2", "w3"], "R1") == ["w1", "w3"]
    assert reasons(world) == dict.fromkeys(WORKERS)
    assert all(state.ready for state in world.manager.states().values())


def test_a_node_that_is_out_already_is_never_touched(world):
    world.person_drains("w1", "bad DIMM")
    world.backend.nodes["w2"].down = True
    assert world.manager.drain(["w1", "w2"], "R1", 1) == {}
    assert world.manager.resume(["w1", "w2"], "R1") == []
    assert world.reason("w1") == "bad DIMM"
    states = world.manager.states()
    assert (states["w1"].drained_by, states["w1"].run) == (DrainedBy.PERSON, None)
    assert (states["w2"].down, states["w2"].in_service) == (True, False)


def test_only_the_run_that_drained_a_node_resumes_it(world):
    world.manager.drain(["w1"], "R1", 1)
    world.manager.resume(WORKERS, "R2")
    world.manager.resume(WORKERS, "R")
    assert world.reason("w1") == "rackwright: R1"
    assert world.manager.drain(["w1"], "R2", 1) == {}
    assert world.reason("w1") == "rackwright: R1"
    world.manager.resume(["w1"], "R1")
    assert world.reason("w1") is None


def test_jobs_are_waited_for(world):
    world.backend.nodes["w1"].jobs.append("train")
    world.backend.polls_until_free = 3
    assert world.manager.drain(["w1", "w2"], "R1", 5) == {}
    assert world.reason("w1") == "rackwright: R1"
    assert world.backend.nodes["w1"].jobs == []


def test_at_the_deadline_a_busy_node_goes_back_into_service(world):
    world.backend.nodes["w1"].jobs.append("train")
    assert world.manager.drain(["w1", "w2"], "R1", 0.05) == {"w1": "its jobs did not end within 0.05 s"}
    assert reasons(world) == {"w1": None, "w2": "rackwright: R1", "w3": None}


def test_jobs_are_cancelled_only_where_asked_for_and_once_no_other_can_begin(world):
    world.backend.nodes["w1"].jobs, world.backend.nodes["w2"].jobs = ["sim", "train"], ["other"]
    seen = []
    world.backend.on_look = lambda: seen.append((world.reason("w1"), list(world.backend.nodes["w1"].jobs)))
    assert world.manager.drain(["w1"], "R1", 1, kill_jobs=True) == {}
    assert world.backend.nodes["w2"].jobs == ["other"]
    assert ("rackwright: R1", []) in seen
    assert (None, []) not in seen, "first the drain"
    assert reasons(world) == {"w1": "rackwright: R1", "w2": None, "w3": None}


def test_at_the_deadline_a_drain_of_a_person_stays(world):
    world.person_drains("w1", "bad DIMM")
    world.backend.nodes["w1"].jobs.append("train")
    assert list(world.manager.drain(["w1"], "R1", 0.05)) == ["w1"]
    assert world.reason("w1") == "bad DIMM"


def test_a_drain_that_a_person_takes_over_meanwhile_is_not_given_back(world):
    world.backend.nodes["w1"].jobs.append("train")

    def take_over():
        if world.reason("w1") == "rackwright: R1":
            world.person_drains("w1", "bad DIMM")

    world.backend.on_look = take_over
    assert list(world.manager.drain(["w1"], "R1", 0.05)) == ["w1"]
    assert world.reason("w1") == "bad DIMM"


def test_nodes_it_does_not_know_are_left_alone(world):
    assert world.manager.drain(["stranger", "w1"], "R1", 1) == {}
    world.manager.resume(["stranger", "w1"], "R1")
    assert reasons(world) == dict.fromkeys(WORKERS)
    assert set(world.manager.states()) == set(WORKERS)
    for question in (world.manager.state, world.manager.jobs):
        with pytest.raises(WorkloadError):
            question("stranger")


def test_a_manager_that_does_not_run_holds_nothing_up_and_is_not_asked_to_resume(world):
    world.backend.silent = True
    assert world.manager.drain(["w1"], "R1", 1) == {}
    assert world.manager.resume(["w1"], "R1") == []
    with pytest.raises(WorkloadError):
        world.manager.resume(["w2"], "R1")  # another run's: it may be drained
    world.backend.silent = False
    assert reasons(world) == dict.fromkeys(WORKERS)


def test_no_answer_is_not_no_jobs(world):
    world.backend.nodes["w1"].jobs.append("train")
    world.backend.silent = True
    for question in (
        lambda: world.manager.resume(["w1"], "R1"),
        lambda: world.manager.jobs("w1"),
        lambda: world.manager.state("w1"),
        world.manager.states,
    ):
        with pytest.raises(WorkloadError):
            question()
    assert reasons(world) == dict.fromkeys(WORKERS)


def test_an_answer_that_ends_while_jobs_are_waited_for_frees_no_node(world):
    world.backend.nodes["w1"].jobs.append("train")
    world.backend.silent_after = 2
    with pytest.raises(WorkloadError):
        world.manager.drain(["w1"], "R1", 5)
    world.backend.silent, world.backend.silent_after = False, -1
    world.manager.resume(["w1"], "R1")  # what it could not give back itself is still this run's to give back
    assert world.reason("w1") is None


def test_jobs_and_the_state_of_a_node(world):
    world.backend.nodes["w1"].jobs += ["train", "eval"]
    assert [(job.id, job.user, job.name) for job in world.manager.jobs("w1")] == [
        (world.ids[0], "ada", "train"),
        (world.ids[1], "ada", "eval"),
    ]
    assert world.manager.jobs("w2") == ()
    state = world.manager.state("w1")
    assert (state.busy, state.ready, state.in_service, state.drained_by) == (True, False, True, None)


def test_a_step_ends_with_its_output_and_status(world):
    output = world.manager.run(STEP)
    assert (output.text.strip(), output.exit_status, output.problem) == ("hello", 0, None)
    world.backend.reply = ("error: no such program\n", 2)
    output = world.manager.run(STEP)
    assert output.exit_status == 2
    assert "exited 2: error: no such program" in output.problem
    assert not world.backend.steps


@pytest.mark.parametrize("fault", [KeyboardInterrupt(), ConnectionFailed("lost")])
def test_a_step_that_is_given_up_is_cancelled(world, fault):
    world.backend.reply = fault
    with pytest.raises(type(fault)):
        world.manager.run(STEP)
    assert not world.backend.steps
    world.manager.cancel()


def test_what_it_is_called_and_how_an_operator_resumes_a_node(world):
    assert world.manager.version()
    assert world.manager.name
    assert world.manager.agent
    assert "w1" in world.manager.resume_command("w1")
    assert all(unit.endswith(".service") for unit in world.manager.services(CLUSTER.primary))
    assert set(world.manager.hooks) <= {"prolog", "epilog", "task_prolog"}


def test_a_job_that_the_manager_does_not_know_has_no_trace(world):
    with pytest.raises(WorkloadError, match="does not know job 4711"):
        world.manager.trace("4711")


def test_an_operator_drains_a_node_whose_jobs_go_on(world):
    world.backend.nodes["w1"].jobs.append("train")
    world.manager.drain_by_hand("w1", "  ada: ticket 4711, ECC errors on GPU 3 ")
    state = world.manager.states()["w1"]
    assert (state.in_service, state.busy, state.drained_by) == (False, True, DrainedBy.PERSON)
    assert state.reason == "ada: ticket 4711, ECC errors on GPU 3"


def test_a_node_that_is_out_keeps_its_reason_from_an_operator(world):
    world.manager.drain(["w1"], "R1", 1)
    with pytest.raises(WorkloadError, match=r"w1 is out of service already: .*, rackwright: R1"):
        world.manager.drain_by_hand("w1", "ada: bad DIMM")
    assert world.reason("w1") == "rackwright: R1"


@pytest.mark.parametrize(
    "reason",
    [
        "",
        "ab",
        "x" * 121,
        "it's broken",
        'a "quoted" one',
        "a\nb",
        "$(reboot)",
        "rackwright: R1",
        "rackwright-health: gpu",
    ],
)
def test_a_reason_that_cannot_be_written_drains_nothing(world, reason):
    with pytest.raises(WorkloadError):
        world.manager.drain_by_hand("w1", reason)
    assert world.reason("w1") is None


def test_an_operator_resumes_what_a_person_drained(world):
    world.person_drains("w1", "bad DIMM")
    world.manager.resume_by_hand("w1", "bad DIMM")
    assert world.manager.states()["w1"].in_service


def test_an_operator_resumes_nothing_else(world):
    world.person_drains("w1", "bad DIMM, and a new one ordered")
    world.manager.drain(["w2"], "R1", 1)
    world.backend.nodes["w3"].down = True
    for node, reason, said in (
        ("w1", "bad DIMM", "w1 is drained for another reason by now: bad DIMM, and a new one ordered"),
        ("w2", "rackwright: R1", "w2 is drained by a run of rackwright: rackwright resume R1 puts it back."),
        ("w3", "", "no person drained it"),
        ("w9", "", "does not know w9"),
    ):
        with pytest.raises(WorkloadError) as caught:
            world.manager.resume_by_hand(node, reason)
        assert said in caught.value.message
    assert reasons(world)["w1"] == "bad DIMM, and a new one ordered"
    assert reasons(world)["w2"] == "rackwright: R1"
    world.manager.resume(["w2"], "R1")
    with pytest.raises(WorkloadError, match="w2 is in service"):
        world.manager.resume_by_hand("w2", "rackwright: R1")


def test_the_jobs_of_all_nodes_at_once(world):
    world.backend.nodes["w1"].jobs.append("train")
    world.backend.nodes["w3"].jobs += [world.odd, "c"]
    running = world.manager.running()
    assert {node: [job.name for job in jobs] for node, jobs in running.items()} == {
        "w1": ["train"],
        "w3": [world.odd, "c"],
    }
    world.backend.silent = True
    with pytest.raises(WorkloadError):
        world.manager.running()
