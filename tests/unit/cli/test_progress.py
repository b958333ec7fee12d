"""Progress of long work: live on a terminal, line by line elsewhere, and nothing of it left at the end."""

from __future__ import annotations

import io
import itertools
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import pytest

from rackwright.cli.progress import Progress, Waiting
from rackwright.cli.terminal import Console

HIDE, SHOW = "\x1b[?25l", "\x1b[?25h"


class Kept:
    """A history in memory."""

    def __init__(self, **seconds):
        self.seconds = {step.replace("_", " "): taken for step, taken in seconds.items()}

    def of(self, step):
        return self.seconds.get(step, [])

    def record(self, step, seconds):
        self.seconds.setdefault(step, []).append(seconds)


def _text(waiting):
    stream = io.StringIO()
    Console(file=stream, width=120).print(waiting._table())
    return [line.rstrip() for line in stream.getvalue().splitlines()]


def test_without_a_terminal_each_step_is_a_line():
    stream = io.StringIO()
    with Waiting(Console(file=stream), Kept(making_a_disk=[100.0, 90.0, 110.0])) as waiting:
        waiting.step("installing")
        waiting.step("making a disk")
        waiting.print("a line that stays")
    assert stream.getvalue() == "installing\nmaking a disk (usually 1 min 40 s)\na line that stays\n"


@pytest.fixture
def clock(monkeypatch):
    """Goes on by two seconds at each look."""
    ticks = itertools.count(1000.0, 2.0)
    monkeypatch.setattr(time, "monotonic", lambda: next(ticks))


def test_what_had_nothing_to_do_is_not_recorded():
    history = Kept()
    with Waiting(Console(file=io.StringIO()), history) as waiting:
        waiting.step("one")
    assert history.seconds == {}


def test_what_ended_well_is_recorded(clock):
    history = Kept()
    with Waiting(Console(file=io.StringIO()), history) as waiting:
        waiting.begin("all", "the rack", "3 nodes")
        waiting.step("one")
        waiting.step("two")
    assert {step: len(taken) for step, taken in history.seconds.items()} == {"one": 1, "two": 1, "3 nodes": 1}


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_what_was_broken_off_is_not(error, clock):
    history = Kept()

    def work():
        with Waiting(Console(file=io.StringIO()), history) as waiting:
            waiting.step("one")
            waiting.step("two")
            raise error

    with pytest.raises(error):
        work()
    assert list(history.seconds) == ["one"]


def test_a_step_shows_how_long_it_has_taken_and_usually_takes(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    waiting = Waiting(Console(file=io.StringIO()), Kept(two=[100.0, 100.0], three=[7.0]))
    waiting.begin("a", "one")
    waiting.begin("b", "two")
    waiting.begin("c", "three")
    now += 2
    assert _text(waiting) == ["one", "two    usually 1 min 40 s", "three  last time 7 s"]
    now += 60
    assert _text(waiting) == [
        "one    1 min 2 s",
        "two    1 min 2 s, usually 1 min 40 s",
        "three  1 min 2 s, last time 7 s",
    ]


def test_of_many_the_first_are_shown():
    waiting = Waiting(Console(file=io.StringIO()))
    for number in range(12):
        waiting.begin(str(number), f"node{number}")
    assert _text(waiting)[-1] == "and 4 more"


def test_a_run_says_how_long_such_runs_take(monkeypatch):
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    stream = io.StringIO()
    progress = Progress(3, Console(file=stream), Kept(changes_on_1_nodes=[300.0, 320.0]))
    for name, operations in (("n1", ["x"]), ("n2", []), ("n3", [])):
        progress({"event": "planned", "plan": {"node": name, "operations": operations}})
    progress({"event": "wave", "number": 1, "of": 1, "nodes": ["n1"]})
    progress({"event": "started", "node": "n1", "role": "slurm", "name": "Install Slurm"})
    now += 65
    assert _text(progress) == [
        "planned 3/3  applied 0  1 min 5 s, usually 5 min 10 s",
        "n1  slurm: Install Slurm  1 min 5 s",
    ]
    progress({"event": "applied", "outcome": {"node": "n1", "ok": True, "seconds": 65.0}})
    assert stream.getvalue() == "n1: done after 65.0 s\n"
    assert _text(progress) == ["planned 3/3  applied 1  1 min 5 s, usually 5 min 10 s"]


PROGRAM = """
import sys, time
from rackwright.cli import main
import types
from rackwright.cli import _COMMANDS
from rackwright.cli.progress import Waiting
from rackwright.cli.terminal import Console
module = types.ModuleType("rackwright.cli.probe")
def probe_command() -> None:
    with Waiting(Console(stderr=True)) as waiting:
        waiting.step("waiting for a thing")
        print("ready", flush=True)
        time.sleep(600 if sys.argv[2:] != [] else 0.6)
        1 / 0
sys.modules[module.__name__] = module
module.probe_command = lambda kind="": probe_command()
def command(kind: str = "") -> None:
    probe_command()
module.probe_command = command
_COMMANDS["probe"] = "x"
main()
"""


def _on_a_terminal(*arguments, interrupt):
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "probe", *arguments],
        stdin=slave, stdout=slave, stderr=slave, env={**os.environ, "TERM": "xterm"}, start_new_session=True,
    )  # fmt: skip
    os.close(slave)
    seen, deadline, sent = "", time.monotonic() + 120, False
    while time.monotonic() < deadline:
        if select.select([master], [], [], 0.2)[0]:
            try:
                seen += os.read(master, 4096).decode()
            except OSError:
                break
        if interrupt and not sent and "waiting for a thing" in seen and "ready" in seen:
            process.send_signal(signal.SIGINT)
            sent = True
    os.close(master)
    return process.wait(), seen


@pytest.mark.slow
@pytest.mark.parametrize(
    ("arguments", "interrupt", "status", "last"),
    [(["--kind", "long"], True, 130, "interrupted"), ([], False, 1, "ZeroDivisionError")],
)
def test_the_terminal_is_clean_however_it_ends(arguments, interrupt, status, last):
    ended, seen = _on_a_terminal(*arguments, interrupt=interrupt)
    assert ended == status, seen
    assert HIDE in seen
    assert seen.rindex(SHOW) > seen.rindex(HIDE), "the cursor is shown again"
    after = seen[seen.rindex(SHOW) :]
    assert "waiting for a thing" not in re.split(r"Traceback", after)[0]
    assert last in after
