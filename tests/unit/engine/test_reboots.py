"""Reboots in waves: who is drained, rebooted, planned again, verified and resumed, and when the waves stop."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from rackwright.cli.progress import step_text
from rackwright.clusterfile.load import load_cluster
from rackwright.engine import reboot_run, rollout
from rackwright.engine.boots import Before, NotBooted
from rackwright.engine.journal import Journal, read_run
from rackwright.engine.reboots import Asked, Reboots, not_passed
from rackwright.engine.rollout import Rollout
from rackwright.engine.waves import plan_waves
from rackwright.errors import ExitCode, RackwrightError
from rackwright.model.settings import Waves
from rackwright.model.types import NodeRole
from rackwright.plan.changes import Change
from rackwright.plan.moved import moved_since
from rackwright.plan.node_plan import NodeOutcome, NodePlan, PlannedOperation, PlanResult
from tests.factories import make_cluster, make_node
from tests.unit.workload.fake_manager import MemoryManager

CLUSTER = make_cluster()
ASKED = Asked(60)
CALM = PlannedOperation("base", "x", (Change("file", "/etc/motd", "a", "b"),), ())
LATE = PlannedOperation("persistence", "Run it", (Change("unit", "x.service", "inactive", "running"),), ())
DUE = Change("reboot", "running kernel", "6.12.1", "6.12.107", disruptive=True)


class Session:
    """Applies everything it is given; `after` is what nodes are planned with once they were rebooted."""

    interrupted = False
    stopped = None

    def __init__(self, world):
        self.world = world

    def apply(self, nodes):
        self.world.log.append(("apply", list(nodes)))
        return {
            name: NodeOutcome(name, True, (CALM,), reboot=() if name in self.world.rebooted else self.world.due.get(name, ()))
            for name in nodes
        }  # fmt: skip

    @contextmanager
    def again(self, nodes):
        self.nodes = list(nodes)
        yield self

    def plan(self):
        self.world.log.append(("plan", self.nodes))
        turn = {name: self.world.after.get(name, []) for name in self.nodes}
        plans = {name: turn[name].pop(0) if turn[name] else NodePlan(name) for name in self.nodes}
        return PlanResult("test", "c.yaml", "0" * 64, plans)


class World:
    """Nodes, their reboots and their checks, played; `log` has what was done in order."""

    def __init__(self):
        self.log, self.rebooted = [], []
        self.due, self.before, self.problems, self.failing, self.after = {}, {}, {}, {}, {}
        self.on_reboot = lambda names: None

    def boots(self, cluster, shell, timeout):
        world = self

        class Boots:
            def before(self, names):
                return {name: world.before.get(name, Before("old")) for name in names}

            def reboot(self, boots):
                world.log.append(("reboot", list(boots)))
                world.on_reboot(list(boots))
                world.rebooted += boots
                return {name: world.problems.get(name) for name in boots}

        return Boots()

    def verified(self, cluster, names):
        names = list(names)
        self.log.append(("verify", names))
        return {name: self.failing.get(name) for name in names}


@pytest.fixture
def world(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    found = World()
    monkeypatch.setattr(rollout, "Boots", found.boots)

    class Verified(Reboots):
        def __init__(self, *given, **named):
            super().__init__(*given, **named, verified=found.verified)

    monkeypatch.setattr(rollout, "Reboots", Verified)
    return found


@pytest.fixture
def carried_out(world, monkeypatch):
    """(rollout, result, events) of a plan: {node: (operations, reboot due)}."""

    def make(plans, manager=None, *, asked=ASKED, cluster=CLUSTER, **policy):
        world.manager = manager
        world.due = {name: reboot for name, (_, reboot) in plans.items()}
        monkeypatch.setattr(rollout, "manager_of", lambda cluster, shell: manager)
        plan = PlanResult(
            "test", "c.yaml", "0" * 64,
            {name: NodePlan(name, operations, reboot=reboot) for name, (operations, reboot) in plans.items()},
        )  # fmt: skip
        policy = Waves(drain_deadline_seconds=1, pause_seconds=0, **policy)
        with Journal("test", Path("c.yaml"), limit=None, roles=None) as journal:
            one = Rollout(Session(world), cluster, plan, policy, journal, reboots=asked)
            result = one.run()
        return one, result, read_run(journal.run)

    return make


def test_a_due_reboot_is_reported_and_left_without_the_flag(world, carried_out):
    _, result, _ = carried_out({"worker1": ((CALM,), (DUE,))}, MemoryManager(CLUSTER), asked=None)
    assert world.log == [("apply", ["worker1"])]
    assert result.exit_code is ExitCode.CHANGES_PENDING
    assert result.nodes["worker1"].reboot == (DUE,)
    assert not result.nodes["worker1"].as_declared


def test_a_worker_is_drained_applied_rebooted_once_planned_again_verified_and_resumed(world, carried_out):
    manager = MemoryManager(CLUSTER)
    world.after["worker1"] = [NodePlan("worker1", (LATE,))]
    states = []
    world.on_reboot = lambda names: states.append(manager.nodes["worker1"].reason)
    one, result, run = carried_out({"worker1": ((CALM,), (DUE,))}, manager)
    assert world.log == [
        ("apply", ["worker1"]), ("reboot", ["worker1"]), ("plan", ["worker1"]), ("apply", ["worker1"]),
        ("plan", ["worker1"]), ("verify", ["worker1"]),
    ]  # fmt: skip
    assert states == [f"rackwright: {run.run}"], "drained while it boots"
    assert manager.nodes["worker1"].reason is None
    assert (result.exit_code, one.stopped) == (ExitCode.CLEAN, None)
    kinds = ("drain", "drained", "reboot", "rebooted", "verified", "resume")
    assert [event["event"] for event in run.events if event["event"] in kinds] == list(kinds)
    assert run.state == "finished"


def test_a_boot_of_a_run_raises_no_alert_afterwards(world, carried_out, monkeypatch):
    booted = []
    monkeypatch.setattr(rollout.Silencer, "expect_boots", lambda self, names: booted.append(list(names)))
    carried_out({"worker1": ((), (DUE,)), "worker2": ((CALM,), ())}, MemoryManager(CLUSTER))
    assert booted == [["worker1"]]


def test_heads_reboot_alone_and_before_workers_where_nothing_else_is_declared(world, carried_out):
    heads = [make_node(f"head{n}", n, NodeRole.HEAD) for n in (1, 2)]
    workers = [make_node(f"worker{n}", n + 10) for n in (1, 2)]
    nodes = [*heads, *workers]
    cluster = make_cluster(*nodes)
    carried_out({node.name: ((), (DUE,)) for node in nodes}, MemoryManager(cluster), cluster=cluster)
    assert [names for what, names in world.log if what == "reboot"] == [
        ["head1"],
        ["head2"],
        ["worker1", "worker2"],
    ]
    order = Waves(order="workers-first", size=1)
    waves = plan_waves(nodes, order, heads_alone=True)
    assert waves == [("worker1",), ("worker2",), ("head1",), ("head2",)]
    assert plan_waves(nodes, Waves(order="heads-first")) == [("head1", "head2"), ("worker1", "worker2")]


def test_a_worker_that_does_not_pass_stays_drained_and_the_waves_stop(world, carried_out):
    manager = MemoryManager(CLUSTER)
    world.failing["worker1"] = "slurm: slurmd is running: FAIL: inactive"
    one, result, run = carried_out({"worker1": ((), (DUE,)), "worker2": ((), (DUE,))}, manager, size=1)
    assert [names for what, names in world.log if what == "reboot"] == [["worker1"]]
    assert manager.nodes["worker1"].reason == f"rackwright: {run.run}"
    assert manager.nodes["worker2"].reason is None
    said = "it did not pass after its reboot: slurm: slurmd is running: FAIL: inactive"
    assert result.nodes["worker1"].error == said
    assert result.nodes["worker2"].error == "not started: worker1 did not come back after the reboot"
    assert one.left_drained == {"worker1"}
    assert (run.left_drained, run.state, run.rebooted) == (["worker1"], "failed", {"worker1"})
    assert result.exit_code is ExitCode.ERROR


def test_a_node_that_does_not_return_is_named_and_the_waves_stop(world, carried_out):
    world.problems["worker1"] = NotBooted("it did not return within 60 s: no answer; console", gone=True)
    manager = MemoryManager(CLUSTER)
    one, result, _ = carried_out({"worker1": ((), (DUE,)), "worker2": ((), (DUE,))}, manager, size=1)
    assert result.nodes["worker1"].error == "reboot: it did not return within 60 s: no answer; console"
    assert result.nodes["worker1"].unreachable
    assert one.stopped == "worker1 did not come back after the reboot"
    assert ("verify", ["worker1"]) not in world.log
    assert one.left_drained == {"worker1"}


def test_a_reboot_that_is_due_again_is_not_done_twice(world, carried_out):
    world.after["worker1"] = [NodePlan("worker1", reboot=(DUE,))]
    _, result, _ = carried_out({"worker1": ((), (DUE,))}, MemoryManager(CLUSTER))
    assert [what for what, _ in world.log] == ["reboot", "plan"]
    assert result.nodes["worker1"].error == (
        "it was rebooted, and a reboot is due again: running kernel 6.12.1 -> 6.12.107"
    )


def test_what_never_comes_to_rest_ends_after_two_applies(world, carried_out):
    world.after["worker1"] = [NodePlan("worker1", (LATE,)) for _ in range(9)]
    _, result, _ = carried_out({"worker1": ((), (DUE,))}, MemoryManager(CLUSTER))
    assert [what for what, _ in world.log].count("apply") == 2
    assert result.nodes["worker1"].error == (
        "it was rebooted, and after 2 applies something is still to be changed: persistence: Run it"
    )


def test_the_machine_below_is_applied_to_and_keeps_its_reboot(world, carried_out):
    world.before["worker1"] = Before("own", "rackwright runs on it")
    one, result, _ = carried_out({"worker1": ((CALM,), (DUE,))}, MemoryManager(CLUSTER))
    assert world.log == [("apply", ["worker1"])]
    assert one.notes == ["worker1: not rebooted: rackwright runs on it."]
    assert result.exit_code is ExitCode.CHANGES_PENDING


def test_a_worker_whose_jobs_do_not_end_is_left_as_it_is(world, carried_out):
    manager = MemoryManager(CLUSTER)
    manager.nodes["worker1"].jobs = ["sim"]
    _, result, _ = carried_out({"worker1": ((CALM,), (DUE,))}, manager)
    assert world.log == []
    assert result.nodes["worker1"].error == "its jobs did not end within 1 s; it was not changed"
    assert (manager.nodes["worker1"].jobs, manager.nodes["worker1"].reason) == (["sim"], None)
    assert manager.killed == []


def test_jobs_are_killed_only_where_asked_for_and_only_on_nodes_that_reboot(world, carried_out):
    manager = MemoryManager(CLUSTER)
    manager.nodes["worker1"].jobs, manager.nodes["worker2"].jobs = ["sim"], ["train"]
    disruptive = PlannedOperation(
        "s", "y", (Change("unit", "u", "running", "restarted", disruptive=True),), ()
    )
    _, result, _ = carried_out(
        {"worker1": ((), (DUE,)), "worker2": ((disruptive,), ())}, manager, asked=Asked(60, kill_jobs=True)
    )
    assert manager.killed == ["sim"]
    assert result.nodes["worker1"].ok
    assert result.nodes["worker2"].error == "its jobs did not end within 1 s; it was not changed"


def test_a_job_that_no_manager_knows_of_keeps_its_node(world, carried_out):
    world.before["worker1"] = Before("old", busy=True)
    one, _, _ = carried_out({"worker1": ((), (DUE,))}, MemoryManager(CLUSTER))
    assert world.log == []
    assert one.notes == ["worker1: not rebooted: a job is running on it."]


def test_a_worker_is_drained_for_a_reboot_even_where_waves_drain_nothing(world, carried_out):
    manager = MemoryManager(CLUSTER)
    _, _, run = carried_out({"worker1": ((), (DUE,))}, manager, drain=False)
    assert "drain" in [event["event"] for event in run.events]


def test_a_run_killed_while_nodes_boot_leaves_them_known_as_drained_and_rebooted(world, carried_out):
    def killed(names):
        raise KeyboardInterrupt

    world.on_reboot = killed
    manager = MemoryManager(CLUSTER)
    with pytest.raises(KeyboardInterrupt):
        carried_out({"worker1": ((), (DUE,))}, manager)
    name = manager.nodes["worker1"].reason.removeprefix("rackwright: ")
    run = read_run(name)
    assert (run.state, run.left_drained, run.rebooted) == ("interrupted", ["worker1"], {"worker1"})


def test_plans_with_reboots_are_written_read_and_compared():
    plan = PlanResult(
        "test", "c.yaml", "0" * 64,
        {"worker1": NodePlan("worker1", reboot=(DUE,), after_reboot=("persistence: Run it",))}, "1" * 64,
    )  # fmt: skip
    assert PlanResult.from_json(plan.to_json()) == plan
    assert plan.exit_code is ExitCode.CHANGES_PENDING
    assert not plan.nodes["worker1"].as_declared
    other = PlanResult("test", "c.yaml", "0" * 64, {"worker1": NodePlan("worker1")}, "1" * 64)
    assert moved_since(plan, other) == [
        "worker1: a reboot is due for another reason: running kernel 6.12.1 -> 6.12.107, now nothing"
    ]


def test_a_reviewed_operation_that_would_change_something_else_says_what():
    def planned(*changes):
        operations = (PlannedOperation("storage_layout", "Make the array", changes, ()),)
        return PlanResult("c", "f", "0", {"worker1": NodePlan("worker1", operations)})

    reviewed = planned(Change("disk", "/dev/nvme1n1 (serial A)", "ext4", "member"))
    now = planned(Change("disk", "/dev/nvme2n1 (serial A)", "ext4", "member"))
    (why,) = moved_since(reviewed, now)
    assert why == (
        "worker1: `storage_layout: Make the array` would change something else: "
        "/dev/nvme2n1 (serial A) ext4 -> member"
    )


class NoLock:
    """A head lock that is had."""

    def __init__(self, *_, **__):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def send(self, run, line):
        pass

    def confirm(self):
        pass


@pytest.fixture
def command(world, monkeypatch):
    """`reboot` on a cluster that is played."""
    manager = MemoryManager(CLUSTER)
    world.due = {}
    for module in (rollout, reboot_run):
        monkeypatch.setattr(module, "manager_of", lambda cluster, shell: manager)
    monkeypatch.setattr(reboot_run, "Boots", world.boots)
    monkeypatch.setattr(reboot_run, "HeadLock", NoLock)
    monkeypatch.setattr(reboot_run, "jobs_on", lambda cluster, names: {})
    world.manager = manager
    return lambda limit, **given: reboot_run.reboot(
        CLUSTER, limit, Asked(60, whether_due_or_not=True), **given
    )


def test_reboot_shows_its_waves_and_applies_nothing(world, command):
    seen = []
    done = command("head1,worker1", agree=lambda shown: seen.append(shown.waves) or True)
    assert seen == [(("head1",), ("worker1",))]
    assert world.log == [
        ("reboot", ["head1"]),
        ("verify", ["head1"]),
        ("reboot", ["worker1"]),
        ("verify", ["worker1"]),
    ]
    assert done.result.exit_code is ExitCode.CLEAN
    run = read_run(done.run)
    assert (run.begin["deploy"], run.state, run.left_drained) == ("reboot", "finished", [])


def test_who_watches_is_told_of_every_step(world, command):
    told = []
    command("head1,worker1", watch=lambda event: told.append(step_text(event)))
    assert [text for text in told if text is not None] == [
        "wave 1 of 2: head1",
        "head1: rebooting",
        "head1: back after the reboot",
        "head1: all checks passed",
        "wave 2 of 2: worker1",
        "worker1: draining; running jobs are waited for",
        "worker1: drained",
        "worker1: rebooting",
        "worker1: back after the reboot",
        "worker1: all checks passed",
        "worker1: back in service",
    ]


def test_checks_that_need_a_job_wait_until_the_node_is_back(monkeypatch):
    made = []

    def verify(cluster, *, limit, checks_of, drained):
        made.extend(check.name for check in checks_of("slurm"))
        return SimpleNamespace(results=())

    monkeypatch.setattr("rackwright.verify.runner.verify", verify)
    cluster = load_cluster(Path(__file__).resolve().parents[3] / "inventory" / "lab.yaml")
    assert "none of its roles" in str(not_passed(cluster, ["worker1"])["worker1"])
    assert "slurmd is running" in made
    assert "each job has a private /tmp" not in made
    assert "an MPI job spans the workers" not in made


def test_reboot_refuses_before_anything_is_done(world, command):
    world.before["head1"] = Before("own", "rackwright runs on it")
    with pytest.raises(RackwrightError, match=r"Nothing was rebooted: head1: rackwright runs on it\."):
        command("head1,worker1")
    assert world.log == []


def test_a_declined_reboot_does_nothing(world, command):
    assert command("worker1", agree=lambda shown: False) is None
    assert world.log == []


def test_a_worker_that_became_busy_is_left_and_named(world, command):
    world.before["worker1"] = Before("old", busy=True)
    done = command("worker1,worker2")
    assert done.result.nodes["worker1"].error == "not rebooted: a job is running on it; it was not changed"
    assert done.result.nodes["worker2"].ok
    assert world.manager.nodes["worker1"].reason is None


def test_a_continued_reboot_puts_back_what_the_first_had_drained(world, command):
    first = "20261123T074215Z-0a1b2c"
    world.manager.nodes["worker1"].reason = f"rackwright: {first}"
    done = command("worker1", resumed=first)
    assert done.notes == (f"worker1: back in service, drained by run {first}",)
    assert world.manager.nodes["worker1"].reason is None
