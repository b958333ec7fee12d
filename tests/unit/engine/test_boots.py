"""Which boot a node is in, who may be rebooted, and what a node that does not come back is reported as."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from rackwright.command import CommandResult
from rackwright.engine import boots as boots_module
from rackwright.engine import console
from rackwright.engine.boots import Boots
from rackwright.errors import ConnectionFailed
from rackwright.model.types import NodeRole, Platform
from tests.factories import RunsSlurm, make_cluster, make_node

OLD, NEW, OWN = (f"{letter * 8}-0000-4000-8000-000000000000" for letter in "abc")
VM = {"platform": Platform.VM}
CLUSTER = make_cluster(
    make_node("head1", 10, NodeRole.HEAD, **VM),
    make_node("worker1", 11, options={"slurm": RunsSlurm()}, **VM),
    make_node("worker2", 12),
)


class Shell:
    """Answers what `before` asks, by node."""

    def __init__(self, **answers):
        self.answers = answers

    def run(self, node, command, *, stdin=None, timeout):
        answer = self.answers[node]
        if isinstance(answer, Exception):
            raise answer
        return CommandResult(command, 0, answer, "")


@pytest.fixture
def made(tmp_path, monkeypatch):
    """Boots whose node answers each question with the next of `answers`; the last is repeated."""
    (tmp_path / "boot_id").write_text(f"{OWN}\n")

    def make(shell=None, answers=(), seconds=0.5):
        left = list(answers)
        asked = []

        def run(client, command, **_):
            asked.append(command)
            answer = left.pop(0) if len(left) > 1 else left[0]
            if isinstance(answer, Exception):
                raise answer
            return CommandResult(command, 0, answer, "")

        monkeypatch.setattr(boots_module, "run", run)
        client = SimpleNamespace(close=lambda: None)
        found = Boots(
            CLUSTER, shell, seconds, dial=lambda *_: client, here=tmp_path / "boot_id", poll_seconds=0.01
        )
        return found, asked

    return make


def test_only_the_machine_below_and_platforms_without_a_kernel_are_refused_for_good(made):
    boots, _ = made(Shell(head1=f"{OWN}\ninit\n", worker1=f"{OLD}\ninit\nslurmstepd infinity\n"))
    before = boots.before(["head1", "worker1", "worker2"])
    assert before["head1"].never == (
        "rackwright is running on it and would end with it; run it from another machine"
    )
    assert (before["worker1"].boot, before["worker1"].why_not) == (OLD, None)
    assert before["worker2"].never == (
        "out of scope: a container shares its host's kernel and can set only namespaced settings"
    )


def test_a_worker_on_which_a_job_runs_is_not_rebooted(made):
    boots, _ = made(Shell(worker1=f"{OLD}\ninit\nslurmstepd: [17.batch]\n"))
    (before,) = boots.before(["worker1"]).values()
    assert (before.never, before.why_not) == (None, "a job is running on it")


def test_a_node_that_does_not_say_which_boot_it_is_in_is_not_rebooted(made):
    boots, _ = made(Shell(worker1="\x1b[2Jhello\n", head1=ConnectionFailed("Cannot connect to head1.")))
    before = boots.before(["worker1", "head1"])
    assert before["worker1"].never == r"it does not report its boot id: \x1b[2Jhello"
    assert before["head1"].never == "Cannot connect to head1"


@pytest.mark.parametrize("state", ["running\n", "degraded\n"])
def test_a_new_boot_that_ends_is_a_reboot(made, state):
    gone = ConnectionFailed("Cannot connect.")
    boots, asked = made(answers=["", f"{OLD}\n", gone, gone, f"{NEW}\n", "starting\n", gone, state])
    assert boots.reboot({"worker1": OLD}) == {"worker1": None}
    assert "systemctl reboot" in asked[0]
    assert sum("systemctl reboot" in command for command in asked) == 1, "it is rebooted once"


@pytest.mark.parametrize(
    ("answers", "said", "gone"),
    [
        (["", f"{OLD}\n"], "it did not reboot within 0.5 s: it still answers from the same boot", False),
        (
            ["", ConnectionFailed("Cannot connect to worker1.", hint="x")],
            "it did not return within 0.5 s: Cannot connect to worker1",
            True,
        ),
        (["", f"{NEW}\n", "maintenance\n"], "its boot ended in the state maintenance", False),
        (
            ["", f"{NEW}\n", "starting\n"],
            "it has a new boot, which did not finish within 0.5 s: systemd reports starting",
            False,
        ),
        (["", "nonsense\n"], "it did not reboot within 0.5 s: it still answers from the same boot", False),
    ],
)
def test_a_node_that_does_not_come_back_is_named_with_its_console(made, monkeypatch, answers, said, gone):
    monkeypatch.setattr(boots_module, "last_lines", lambda cluster, node: f"console of {node.name}")
    boots, _ = made(answers=answers)
    problem = boots.reboot({"worker1": OLD})["worker1"]
    assert (str(problem), problem.gone) == (f"{said}; console of worker1", gone)


def test_the_console_of_a_lab_machine_is_read_and_made_printable(tmp_path, monkeypatch):
    monkeypatch.setattr(console, "log_of", lambda cluster, node: tmp_path / "console.log")
    node = CLUSTER.nodes[0]
    assert "cannot read its serial console" in console.last_lines(CLUSTER, node)
    lines = "".join(f"line {number}\r\n" for number in range(40))
    (tmp_path / "console.log").write_bytes(
        b"x" * 100_000 + lines.encode() + b"\x1b[0;31mKernel panic\x1b[0m\x07\r\n50%\r100%\n\n"
    )
    text = console.last_lines(CLUSTER, node).splitlines()
    assert text[0] == "last lines of its serial console:"
    assert text[-3:] == ["line 39", r"Kernel panic\x07", "100%"]
    assert len(text) == console.LINES + 1
    (tmp_path / "console.log").write_bytes(b"\n\n")
    assert console.last_lines(CLUSTER, node) == "its serial console is silent"


def test_without_a_declared_console_the_message_says_so():
    assert console.last_lines(CLUSTER, CLUSTER.nodes[1]) == "no serial console of worker1 is declared"
