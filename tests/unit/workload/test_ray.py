"""Ray as a workload manager, over a shell that behaves as its head does."""

from __future__ import annotations

import ast
import shlex

import pytest

from rackwright.errors import ConnectionFailed, WorkloadError
from rackwright.model.types import NodeRole
from rackwright.roles.ray.options import RayOptions
from rackwright.roles.ray.places import WITH_RAY
from rackwright.roles.site_ca.options import SiteCaOptions
from rackwright.workload.lookup import declared_on, manager_of
from rackwright.workload.protocol import Job, JobStep
from rackwright.workload.ray import control
from rackwright.workload.ray.control import Ray
from rackwright.workload.states import DrainedBy
from tests.factories import make_cluster, make_node
from tests.unit.workload.fake_ray import FakeRay

WORKERS = ("w1", "w2", "w3")
OPTIONS = {"ray": RayOptions(), "site_ca": SiteCaOptions()}
CLUSTER = make_cluster(
    make_node("head1", 10, NodeRole.HEAD, options=OPTIONS),
    *(make_node(name, 20 + number, options=OPTIONS) for number, name in enumerate(WORKERS)),
)


@pytest.fixture
def backend(monkeypatch):
    monkeypatch.setattr(control, "_POLL_SECONDS", 0.01)
    return FakeRay(*WORKERS)


@pytest.fixture
def ray(backend):
    return Ray(CLUSTER, backend)


def reasons(backend):
    return {name: drain["reason"] for name, drain in backend.drains.items()}


def test_it_is_found_by_the_role(backend):
    assert isinstance(manager_of(CLUSTER, backend), Ray)
    assert declared_on(CLUSTER.by_name["w1"]) is Ray
    assert Ray.services(CLUSTER.by_name["head1"]) == (
        "redis-server@rackwright-ray.service",
        "ray-head.service",
    )
    assert Ray.services(CLUSTER.by_name["w1"]) == ()
    assert Ray.resume_command("w1") == f"{WITH_RAY} nodes.py resume w1"
    assert Ray(CLUSTER, backend).version() == "2.60.0"


def test_workers_are_known_and_the_head_is_none(ray):
    states = ray.states()
    assert set(states) == set(WORKERS)
    assert all(state.ready and state.in_service for state in states.values())


def test_only_the_nodes_asked_for_are_drained_and_come_back(ray, backend):
    assert ray.drain(["w1", "w3"], "R1", 1) == {}
    assert reasons(backend) == {"w1": "rackwright: R1", "w3": "rackwright: R1"}
    states = ray.states()
    assert [states[name].in_service for name in WORKERS] == [False, True, False]
    assert (states["w1"].drained_by, states["w1"].run, states["w1"].down) == (DrainedBy.ROLLOUT, "R1", False)
    assert ray.resume(["w1", "w2", "w3"], "R2") == []
    assert ray.resume(["w1", "w2", "w3"], "R1") == ["w1", "w3"]
    assert backend.drains == {}
    assert all(state.ready for state in ray.states().values())


def test_a_node_that_is_out_already_is_never_touched(ray, backend):
    ray.drain_by_hand("w1", "bad DIMM")
    backend.nodes["w2"].broken = True
    assert ray.drain(["w1", "w2"], "R1", 1) == {}
    assert ray.resume(["w1", "w2"], "R1") == []
    assert reasons(backend) == {"w1": "bad DIMM"}
    states = ray.states()
    assert (states["w1"].drained_by, states["w1"].run) == (DrainedBy.PERSON, None)
    assert (states["w2"].down, states["w2"].reason) == (True, "missed heartbeats")


def test_work_is_waited_for(ray, backend):
    backend.nodes["w1"].jobs.append("train")
    backend.polls_until_free = 3
    assert ray.drain(["w1"], "R1", 5) == {}
    assert not ray.state("w1").busy


def test_at_the_deadline_a_busy_node_goes_back_into_service(ray, backend):
    backend.nodes["w1"].jobs.append("train")
    assert ray.drain(["w1", "w2"], "R1", 0.05) == {"w1": "its tasks and actors did not end within 0.05 s"}
    assert reasons(backend) == {"w2": "rackwright: R1"}


def test_work_is_ended_only_where_asked_for(ray, backend):
    backend.nodes["w1"].jobs, backend.nodes["w2"].jobs = ["train"], ["other"]
    assert ray.drain(["w1"], "R1", 1, kill_jobs=True) == {}
    assert backend.nodes["w2"].jobs == ["other"]
    drained = backend.commands.index(("w1", "systemctl restart ray-worker.service"))
    assert any(" drain w1 " in command for _, command in backend.commands[:drained]), "first the drain"


def test_a_head_that_does_not_answer_drains_nothing_and_is_no_empty_list(ray, backend):
    backend.silent = True
    assert ray.drain(["w1"], "R1", 1) == {}
    with pytest.raises(WorkloadError, match=r"Ray does not answer on head1: nodes\.py exited 1: RpcError"):
        ray.states()
    backend.silent = False
    assert ray.resume(["w1"], "R1") == []


@pytest.mark.parametrize(
    "garbled",
    ["", "no JSON", "[]", '{"nodes": 1, "drains": {}}', '{"nodes": {"w1": {}}, "drains": {}, "work": null}'],
)
def test_an_answer_in_another_form_is_no_empty_list(ray, backend, garbled):
    backend.garbled = garbled
    with pytest.raises(WorkloadError, match="Ray's list of nodes cannot be read"):
        ray.states()


def test_tasks_and_actors_are_jobs(ray, backend):
    backend.nodes["w2"].jobs.append("train")
    assert ray.running() == {"w2": (Job("t1", "job 01", "task train"),)}
    assert ray.jobs("w2") == (Job("t1", "job 01", "task train"),)
    assert ray.jobs("w1") == ()


def test_drains_by_hand(ray, backend):
    ray.drain_by_hand("w1", "ticket 4711: GPU 3")
    assert ray.state("w1").reason == "ticket 4711: GPU 3"
    with pytest.raises(WorkloadError, match="w1 is out of service already"):
        ray.drain_by_hand("w1", "again and again")
    with pytest.raises(WorkloadError, match="w1 is drained for another reason by now"):
        ray.resume_by_hand("w1", "other")
    ray.resume_by_hand("w1", "ticket 4711: GPU 3")
    assert ray.state("w1").ready
    with pytest.raises(WorkloadError, match="does not know w9"):
        ray.state("w9")


def test_what_ray_drained_itself_is_no_persons_drain(ray, backend):
    backend.nodes["w1"].draining, backend.nodes["w1"].jobs = True, ["train"]
    state = ray.state("w1")
    assert (state.drained_by, state.reason) == (DrainedBy.MANAGER, "drained through Ray itself")


def test_mpi_programs_are_refused(ray):
    with pytest.raises(WorkloadError, match="Ray starts no MPI program"):
        ray.run(JobStep(("w1",), 1, ("true",), 60))


def test_a_driver_runs_on_the_head_and_its_status_is_the_steps(ray, backend):
    backend.reply = "a line\n# Ray's driver exit status 3\n"
    step = JobStep(("w1",), 1, ("-c", "print(1)"), 60, environment={"A": "b c"}, start="driver")
    output = ray.run(step)
    assert (output.text.strip(), output.exit_status) == ("a line", 3)
    assert output.problem == "Ray's driver exited 3"
    (node, line) = backend.commands[-1]
    assert node == "head1"
    words = shlex.split(line)
    assert words[1:3] == ["env", 'RACKWRIGHT_STEP_ENVIRONMENT={"A": "b c"}']
    assert words[3:10] == ["timeout", "-k", "10", "120", WITH_RAY, "-c", "print(1)"]
    assert words[10].startswith("rackwright-burnin-")


def test_separate_tasks_are_a_driver_of_their_own(ray, backend):
    backend.reply = "# Ray's driver exit status 0\n"
    step = JobStep(("w1", "w2"), 2, ("sh", "-c", "echo 'a b'"), 60, output_filter="{ print }", start="each")
    assert ray.run(step).problem is None
    line = backend.commands[-1][1]
    assert line.endswith("\n{ print }'")
    words = shlex.split(line)
    program = words[words.index("-c") + 1]
    ast.parse(program)
    assert (
        """NODES, TASKS, COMMAND, START_SECONDS, SECONDS = ["w1", "w2"], 2, ["sh", "-c", "echo 'a b'"], 60, 60"""
        in program
    )


@pytest.mark.parametrize("reply", ["no status\n", ConnectionFailed("head1 is gone")])
def test_a_driver_that_is_given_up_is_ended_by_its_name(ray, backend, reply):
    backend.reply = reply
    step = JobStep(("w1",), 1, ("-c", "print(1)"), 60, start="driver")
    if isinstance(reply, str):
        assert ray.run(step).exit_status is None
    else:
        with pytest.raises(ConnectionFailed):
            ray.run(step)
    name = shlex.split(backend.commands[-2][1])[10]
    assert backend.commands[-1] == ("head1", f"pkill -TERM -f '[r]{name[1:].rstrip(';')}'")
