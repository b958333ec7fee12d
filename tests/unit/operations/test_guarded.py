"""Guarded changes: kept, landed, put in force, and put back by the node unless a new connection confirms them."""

from __future__ import annotations

import contextlib
import getpass
import os
import signal
import subprocess
import time

import pytest

from rackwright.command import CommandResult
from rackwright.errors import ConnectionFailed
from rackwright.facts import rollback
from rackwright.operations import guarded
from rackwright.operations.confirming import Armed, Outcome, outcome, parse_state
from tests.unit.pyinfra_driver.local import LocalShell

pytestmark = pytest.mark.slow
# Runs what it is given, detached as systemd would; a timer is a process that can be stopped by its name.
_SYSTEMD_RUN = """#!/bin/sh
here=$(dirname "$0"); delay=0; unit=once
while :; do
  case $1 in
  --unit=*) unit=${1#--unit=} ;;
  --on-active=*) delay=${1#--on-active=}; delay=${delay%s} ;;
  --*) ;;
  *) break ;;
  esac
  shift
done
echo "$unit $delay $*" >>"$here/units"
[ ! -e "$here/broken" ] || exit 1
setsid sh -c 'sleep "$0"; exec "$@"' "$delay" "$@" 9>&- >/dev/null 2>&1 </dev/null &
echo $! >"$here/$unit.pid"
"""
_SYSTEMCTL = """#!/bin/sh
here=$(dirname "$0")
case $1 in stop) unit=${2%.*}; [ ! -e "$here/$unit.pid" ] || kill "$(cat "$here/$unit.pid")" 2>/dev/null ;; esac
echo "$*" >>"$here/systemctl.log"
"""


class Node:
    """This machine, with folders and a systemd of its own."""

    def __init__(self, one, folder, monkeypatch):
        self.run, self.folder, self.tools = one, folder, folder / "tools"
        self.tools.mkdir()
        for name, text in (
            ("systemd-run", _SYSTEMD_RUN),
            ("systemctl", _SYSTEMCTL),
            ("logger", "#!/bin/sh\n"),
        ):
            (self.tools / name).write_text(text)
            (self.tools / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(self.tools), prepend=":")
        self.state = folder / "rollback"
        self.program = folder / "rackwright-rollback"
        monkeypatch.setattr(rollback, "FOLDER", str(self.state))
        monkeypatch.setattr(guarded, "PROGRAM", str(self.program))
        monkeypatch.setattr(guarded, "UNIT", str(folder / "rackwright-rollback.service"))
        monkeypatch.setattr(guarded, "OWNER", getpass.getuser())
        self.etc = folder / "etc"
        self.etc.mkdir()
        self.conf = self.etc / "conf"
        self.live = folder / "live"

    def deploy(self, text="new\n", **given):
        options = {
            "key": "demo",
            "files": {
                str(self.conf): text,
                str(self.etc / "gone"): None,
                str(self.etc / "sub/other"): "more\n",
            },
            "activate": f"cat {self.conf} >{self.live}",
            "seconds": 8,
            **given,
        }
        return f"from rackwright.operations import guarded\nguarded.change(name='Change it', **{options!r})\n"

    def apply(self, **given):
        return self.run.apply(self.deploy(**given))["node1"]

    def program_runs(self, *arguments):
        return subprocess.run([self.program, *arguments], check=True, capture_output=True, text=True).stdout

    def old(self):
        self.conf.write_text("old\n")
        self.conf.chmod(0o640)
        (self.etc / "gone").write_text("was here\n")
        self.live.write_text("old\n")

    def is_old(self):
        there = {path.name: path.read_text() for path in self.etc.iterdir() if path.is_file()}
        mode = self.conf.stat().st_mode & 0o777
        return (
            there == {"conf": "old\n", "gone": "was here\n"}
            and mode == 0o640
            and self.live.read_text() == "old\n"
        )

    def is_new(self):
        there = {path.name: path.read_text() for path in self.etc.rglob("*") if path.is_file()}
        return there == {"conf": "new\n", "other": "more\n"} and self.live.read_text() == "new\n"

    def wait_until(self, condition, seconds=10):
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, self.program_runs("state", "demo")
            time.sleep(0.1)


@pytest.fixture
def node(one, tmp_path, monkeypatch):
    made = Node(one, tmp_path, monkeypatch)
    yield made
    for timer in made.tools.glob("*.pid"):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(int(timer.read_text()), signal.SIGKILL)


def test_a_plan_shows_files_and_the_live_state_and_runs_nothing(node):
    node.old()
    plan = node.run.plan(node.deploy(live=(f"cat {node.live}", "new")))["node1"]
    (operation,) = plan.operations
    assert [(change.kind, change.target, change.after) for change in operation.changes] == [
        ("file", str(node.conf), f"file 644 {getpass.getuser()}:{getpass.getuser()}"),
        ("file", str(node.etc / "gone"), None),
        ("file", str(node.etc / "sub/other"), f"file 644 {getpass.getuser()}:{getpass.getuser()}"),
        ("setting", "demo in force", "new"),
    ]
    assert operation.changes[0].diff[-2:] == ("-old", "+new")
    assert node.is_old()
    assert not node.program.exists()


def test_a_change_lands_is_in_force_and_is_confirmed_once(node):
    node.old()
    assert node.apply(probe=f"grep -q new {node.live}", live=(f"cat {node.live}", "new")).error is None
    assert node.is_new()
    assert "phase confirmed\nresult 0\n" in node.program_runs("state", "demo")
    assert not list(node.state.glob("*/old"))
    assert not list(node.state.glob("*/armed"))
    again = node.run.plan(node.deploy(live=(f"cat {node.live}", "new")))["node1"]
    assert again.operations == ()
    assert "stop rackwright-rollback-demo.timer" in (node.tools / "systemctl.log").read_text()


def test_only_the_live_state_differs(node):
    node.old()
    node.apply(live=(f"cat {node.live}", "new"))
    node.live.write_text("by hand\n")
    outcome = node.apply(live=(f"cat {node.live}", "new"))
    assert [change.target for change in outcome.operations[0].changes] == ["demo in force"]
    assert node.is_new()


def test_a_probe_that_fails_is_repeated_and_then_all_is_put_back(node):
    node.old()
    done = node.apply(probe=f"echo once >>{node.folder}/probes; echo no neighbour; exit 1")
    assert not done.ok
    assert "the probe failed: no neighbour" in done.error
    assert "restored itself after " in done.error
    assert str(node.conf) in done.error
    assert len((node.folder / "probes").read_text().splitlines()) > 1
    assert node.is_old()


def test_what_cannot_be_put_in_force_is_put_back_at_once(node):
    node.old()
    began = time.monotonic()
    done = node.apply(
        activate=f"cat {node.conf} >{node.live}; echo bad file; grep -q old {node.conf}", seconds=60
    )
    assert "activating it failed with status 1: bad file" in done.error
    assert time.monotonic() - began < 30
    assert node.is_old()


def test_the_check_sees_the_new_files_before_anything_changes(node):
    node.old()
    done = node.apply(check=f"cat %s{node.conf}; exit 3")
    assert not done.ok
    assert "exited 3" in done.error
    assert "new" in done.error
    assert node.is_old()
    assert not list(node.state.glob("*/armed"))
    assert not (node.tools / "units").exists()


def test_without_a_timer_nothing_is_changed(node):
    node.old()
    (node.tools / "broken").touch()
    assert "systemd-run failed: nothing was changed" in node.apply().error
    assert node.is_old()


def test_a_control_side_that_is_killed_leaves_the_node_as_it_was(node, monkeypatch):
    """Nothing confirms; the timer on the node puts everything back, and the next run sees the same difference."""
    node.old()
    monkeypatch.setattr(guarded, "confirm", lambda state, host, armed: True)
    node.apply(seconds=3)
    node.wait_until(lambda: node.conf.read_text() == "new\n")
    # its report is the last thing that it writes
    node.wait_until(lambda: "why unconfirmed" in node.program_runs("state", "demo"), seconds=30)
    assert node.is_old()
    monkeypatch.undo()


def test_a_run_that_comes_before_the_timer_goes_back_first(node, monkeypatch):
    node.old()
    with monkeypatch.context() as patched:
        patched.setattr(guarded, "confirm", lambda state, host, armed: True)
        node.apply(seconds=120)
        node.wait_until(node.is_new)
    plan = node.run.plan(node.deploy())["node1"]
    assert [change.target for change in plan.operations[0].changes] == ["unconfirmed change of demo"]
    assert node.apply(probe="exit 1", seconds=5).error is not None
    assert node.is_old()


def test_a_power_cut_while_armed_restores_at_boot_before_the_services_start(node, monkeypatch):
    node.old()
    with monkeypatch.context() as patched:
        patched.setattr(guarded, "confirm", lambda state, host, armed: True)
        node.apply(seconds=120)
        node.wait_until(node.is_new)
    subprocess.run([node.tools / "systemctl", "stop", "rackwright-rollback-demo.timer"], check=True)
    node.live.write_text("old\n")  # as the services make it from the old files
    landing = node.etc / "sub/other.rackwright-new"
    landing.write_text("ne")  # the power went while a file landed
    node.program_runs("boot")
    assert node.is_old()
    assert not landing.exists()
    assert not list(node.state.glob("*/armed"))
    said = node.program_runs("state", "demo")
    assert "why boot" in said
    assert "seconds" not in said, "of two boots"
    node.conf.write_text("since\n")
    node.program_runs("boot")
    assert node.conf.read_text() == "since\n"


def test_a_restore_that_was_cut_off_is_finished_at_boot(node, monkeypatch):
    node.old()
    with monkeypatch.context() as patched:
        patched.setattr(guarded, "confirm", lambda state, host, armed: True)
        node.apply(seconds=120)
        node.wait_until(node.is_new)
    (node.state / "demo/phase").write_text("restoring\n")
    node.live.write_text("old\n")
    node.program_runs("boot")
    assert node.is_old()


def test_two_keys_are_armed_at_once(node, monkeypatch):
    node.old()
    with monkeypatch.context() as patched:
        patched.setattr(guarded, "confirm", lambda state, host, armed: True)
        node.apply(seconds=120)
        node.wait_until(node.is_new)
    other = node.etc / "second"
    done = node.apply(key="second", files={str(other): "second\n"}, activate="true")
    assert done.error is None
    assert other.read_text() == "second\n"
    assert "phase armed" in node.program_runs("state", "demo")
    node.program_runs("restore", "demo")
    assert node.conf.read_text() == "old\n"
    assert other.read_text() == "second\n"


class Broken:
    """A node that no new connection reaches, or only the first; what it says is scripted."""

    def __init__(self, run):
        self._run = run

    def run(self, command, stdin, timeout):
        return self._run(command, stdin)

    def close(self):
        pass


def test_no_new_connection_means_no_confirmation(node, monkeypatch):
    node.old()
    real, began = LocalShell.another, time.monotonic()

    def another(self, timeout):
        if time.monotonic() - began < 9:
            raise ConnectionFailed("Cannot connect to node1: no answer within 1 s.")
        return real(self, timeout)

    monkeypatch.setattr(LocalShell, "another", another)
    done = node.apply(seconds=4)
    assert "not confirmed (Cannot connect to node1" in done.error
    assert "restored itself after 4 s" in done.error or "restored itself after 5 s" in done.error
    assert node.is_old()


def test_a_connection_that_carries_no_large_packets_confirms_nothing(node, monkeypatch):
    node.old()
    real = LocalShell.another

    def another(self, timeout):
        def run(command, stdin):
            if command == "cat":
                return CommandResult(command, 124, stdin[:1000], "no end within 3 s")
            return real(self, timeout).run(command, stdin, timeout)

        return Broken(run)

    monkeypatch.setattr(LocalShell, "another", another)
    done = node.apply(seconds=4)
    assert "128 KiB did not get through and back: check the MTU" in done.error
    assert node.is_old()


def test_a_confirmation_whose_answer_is_lost_counts(node, monkeypatch):
    node.old()
    real, lost = LocalShell.another, []

    def another(self, timeout):
        def run(command, stdin):
            done = real(self, timeout).run(command, stdin, timeout)
            if " confirm " in command and not lost:
                lost.append(command)
                raise ConnectionFailed("The connection was lost.")
            return done

        return Broken(run)

    monkeypatch.setattr(LocalShell, "another", another)
    assert node.apply(seconds=30).error is None
    assert lost
    assert node.is_new()


def test_a_node_that_stays_away_is_said_to_be_away():
    armed = Armed("demo", 60, ("/etc/conf",), "/usr/local/sbin/rackwright-rollback", None)
    assert outcome(armed, "no answer", None) == (
        "the change of demo was not confirmed (no answer), and the node is unreachable, so the result is unknown. It should have restored /etc/conf 60 s after the change began; on its console run: /usr/local/sbin/rackwright-rollback state demo"
    )
    bad = Outcome(
        "restored", "0", "unconfirmed", "61", "4", ("/etc/conf could not be put back",), (), ("no device",)
    )
    assert outcome(armed, "no answer", bad).endswith(
        "the node restored itself after 61 s: /etc/conf. Not restored: /etc/conf could not be put back. Activating the "
        "old files failed with status 4: no device"
    )
    cut = Outcome("restored", why="boot")
    assert outcome(armed, "no answer", cut).endswith("; the node restored itself when it booted: /etc/conf")


def test_what_a_node_prints_is_read_and_made_printable():
    state = parse_state("phase restored\nresult 0\nseconds 61\noutput one\noutput \x1b[2Jtwo\nother thing\n")
    assert (state.phase, state.result, state.seconds) == ("restored", "0", "61")
    assert state.output[0] == "one"
    assert "\x1b" not in state.output[1]


@pytest.mark.parametrize("path", ["relative/conf", "/etc/a b", "/etc/../etc/conf", "/conf"])
def test_a_path_that_cannot_be_read_back_is_refused(node, path):
    plan = node.run.plan(node.deploy(files={path: "x"}))["node1"]
    assert "is not an absolute path without spaces" in plan.error


def test_the_programs_are_shell_that_parses(node):
    for _, text, _ in guarded._own_files():
        if text.startswith("#!"):
            subprocess.run(["sh", "-n"], input=text, text=True, check=True)
        else:
            assert f"ConditionPathExistsGlob={node.state}/*/armed" in text
