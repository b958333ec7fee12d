"""Commands fetched ahead: one execution per node, and never an answer that hides something."""

import time
from collections import Counter

import pytest

from rackwright.claims.check import Check, each, fail
from rackwright.command import CommandResult
from rackwright.status import Status
from rackwright.verify import ahead, verify


@pytest.fixture
def world(make_cluster, local_shell, tmp_path, monkeypatch):
    """`verify` on three nodes that are this machine; `ran` says what each run executed, by node."""
    monkeypatch.setattr(ahead, "FRESH_SECONDS", 3600.0)  # however slow this machine is
    monkeypatch.setattr(ahead, "_SLOW_SECONDS", 240.0)
    monkeypatch.setattr(ahead, "_BATCH_SECONDS", 480.0)

    class World:
        folder = tmp_path
        shell = local_shell()

        def verify(self, *checks, **selection):
            self.shell.ran.clear()
            report = verify(
                make_cluster(),
                shell=self.shell,
                checks_of=lambda role: checks if role == "alpha" else (Check("is there", lambda c: "yes"),),
                **selection,
            )
            return {
                (one.node, one.check): (one.status, one.evidence)
                for one in report.results
                if one.role == "alpha"
            }

        def executions(self):
            return Counter(node for node, _ in self.shell.ran)

    return World()


def reads(name, *commands, **declared):
    return Check(name, lambda c: "|".join(c.host.run(line).stdout for line in commands), **declared)


def test_the_second_run_is_one_execution_per_node_and_says_the_same(world):
    checks = [
        reads("many", *(f"printf {number}" for number in range(5))),
        reads("to the letter", r"printf 'a\r\n\n b'", "printf '\\377\\n'", "echo out; echo err >&2; exit 3"),
        Check("status", lambda c: f"{c.host.run('echo x; exit 7').rc} {c.host.run('echo y >&2').stderr!r}"),
    ]
    first = world.verify(*checks)
    assert min(world.executions().values()) > 5
    assert world.verify(*checks) == first
    assert world.executions() == {"head": 1, "w1": 1, "w2": 1}


def test_what_changed_since_the_last_run_is_seen(world):
    file = world.folder / "file"
    file.write_text("good")

    def holds(context):
        for line in ("echo 1", "echo 2"):
            context.output(line)
        return "good" if context.output(f"cat {file}") == "good" else fail("it changed")

    for _ in range(2):
        assert world.verify(Check("holds", holds))["w1", "holds"] == (Status.PASS, "good")
    file.write_text("bad")
    assert world.verify(Check("holds", holds))["w1", "holds"] == (Status.FAIL, "it changed")
    assert world.executions()["w1"] == 1


def test_a_check_that_asks_again_or_waits_gets_a_new_answer(world):
    count = world.folder / "count"
    ticks = f"flock {count} sh -c 'echo x >>{count}; wc -l <{count}'"

    def twice(context):
        first, second = context.output(ticks), context.output(ticks)
        for line in ("echo 1", "echo 2"):
            context.output(line)
        return "moved" if int(second) > int(first) else fail("the same answer twice")

    for _ in range(2):
        assert world.verify(Check("twice", twice))["w1", "twice"] == (Status.PASS, "moved")

    flag = world.folder / "flag"

    def comes_true(context):
        for line in ("echo 1", "echo 2"):
            context.output(line)
        if "there" in context.host.run(f"cat {flag}; echo there >{flag}").stdout:
            return "there"
        return fail("not yet")

    check = Check("comes true", comes_true, settle_seconds=240)
    world.verify(check)
    flag.unlink()
    assert world.verify(check, limit="w1")["w1", "comes true"] == (Status.PASS, "there")
    assert world.executions()["w1"] == 4  # the batch, and the second attempt's three commands


def test_what_acts_and_what_crosses_nodes_is_always_run(world):
    def crosses(context):
        return context.output("echo elsewhere", host=context.on("w2"))

    checks = [
        reads("reads", "echo 1", "echo 2", "echo 3"),
        reads("acts", "echo 4", "echo 5", "echo 6", live=True),
        Check("crosses", crosses, applies=lambda node, _: node.name == "w1"),
        reads("whole", "echo 7", "echo 8", scope="cluster"),
    ]
    for _ in range(2):
        world.verify(*checks)
    ran = [(node, command) for node, command in world.shell.ran if "python3" not in command]
    assert Counter(node for node, _ in ran) == {"head": 5, "w1": 3, "w2": 4}
    assert all(any(f"echo {word}" in line for word in ("4", "5", "6", "7", "8", "else")) for _, line in ran)


def test_a_check_declared_live_later_is_not_asked_ahead_any_more(world):
    for _ in range(2):
        world.verify(reads("one", "echo 1", "echo 2", "echo 3"))
    world.verify(reads("one", "echo 1", "echo 2", "echo 3", live=True))
    assert not any("python3" in command for _, command in world.shell.ran)


def test_a_run_of_some_roles_forgets_nothing_of_the_others(world, monkeypatch):
    check = reads("one", "echo 1", "echo 2", "echo 3")
    world.verify(check)
    world.verify(check, roles=frozenset({"beta"}))
    world.verify(check, roles=frozenset({"alpha"}))
    assert world.executions() == {"head": 1, "w1": 1, "w2": 1}


def test_an_old_answer_is_not_used(world, monkeypatch):
    check = reads("one", "echo 1", "echo 2", "echo 3")
    world.verify(check)
    monkeypatch.setattr(ahead, "FRESH_SECONDS", 0.0)
    assert world.verify(check)["w1", "one"][0] is Status.PASS
    assert world.executions()["w1"] == 4


def test_a_node_without_python_is_asked_one_by_one(world):
    check = reads("one", "echo 1", "echo 2", "echo 3")
    first = world.verify(check)
    run = world.shell.run

    def without(node, command, *, stdin=None, timeout):
        if command.startswith("python3"):
            world.shell.ran.append((node, command))
            return CommandResult(command, 127, "", "sh: 1: python3: not found")
        return run(node, command, stdin=stdin, timeout=timeout)

    world.shell.run = without
    assert world.verify(check) == first
    assert world.executions()["w1"] == 5  # the batch that failed, `true`, and the three


def test_a_command_that_hangs_in_the_batch_is_run_by_itself(world, monkeypatch):
    file = world.folder / "slow"
    file.write_text("0")
    commands = f"sleep $(cat {file}); echo 1", "echo 2", "echo 3"
    world.verify(reads("one", *commands), limit="w1")
    file.write_text("300")
    monkeypatch.setattr(ahead, "_SLOW_SECONDS", 0.5)
    began = time.monotonic()
    found = world.verify(reads("one", *commands, timeout_seconds=1), limit="w1")
    status, evidence = found["w1", "one"]
    assert (status, "did not end" in evidence) == (Status.UNKNOWN, True)
    assert time.monotonic() - began < 120


def test_each_keeps_order_and_the_checks_time_limit(world):
    def wide(context):
        names = [node.name for node in context.cluster.nodes]
        meet = f"touch {world.folder}/met.$1; until ls {world.folder} | grep -c met | grep -q 3; do sleep 0.02; done"

        def come(name):
            return context.output(f"set {name}; {meet}; echo {name}", host=context.on(name))

        return "".join(each(come, names)).split() == names and "in order"

    def too_long(context):
        each(lambda name: context.output("sleep 300", host=context.on(name)), ["w1", "w2"])

    found = world.verify(
        Check("wide", wide, scope="cluster"), Check("long", too_long, scope="cluster", timeout_seconds=1)
    )
    assert found["head", "wide"] == (Status.PASS, "in order")
    assert found["head", "long"][0] is Status.UNKNOWN
