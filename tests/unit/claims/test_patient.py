"""A little Python on a node that may hang: run for real, with its deadline."""

from __future__ import annotations

import subprocess
import time
from types import SimpleNamespace

import pytest

from rackwright.claims import patient
from rackwright.claims.check import CheckContext, Undetermined
from rackwright.model.options import RoleOptions
from tests.factories import make_cluster


class Here:
    """Runs commands on this machine."""

    def run(self, command, *arguments):
        import shlex

        line = command % tuple(map(shlex.quote, arguments)) if arguments else command
        done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, timeout=60, check=False)
        return SimpleNamespace(rc=done.returncode, stdout=done.stdout, stderr=done.stderr)


def context(host=None):
    cluster = make_cluster()
    return CheckContext(cluster, cluster.primary, RoleOptions(), host or Here(), lambda name: host or Here())


def run(text, *arguments, seconds=20.0, host=None):
    return patient.run(context(host), "/mnt", text, *arguments, seconds=seconds)


def test_what_it_says_comes_back():
    assert run("reading = {'arguments': arguments}", "a b", "'c") == {"arguments": ["a b", "'c"]}
    assert len(run("reading = 'x' * 300000")) == 300000  # more than a pipe holds


def test_one_that_hangs_is_left_behind():
    began = time.monotonic()
    with pytest.raises(Undetermined, match=r"^/mnt does not answer within 0.5 s$"):
        run("import time\ntime.sleep(30)", seconds=0.5)
    assert time.monotonic() - began < 15


def test_an_error_has_its_name():
    with pytest.raises(patient.AnswerError, match="ENOENT") as raised:
        run("import os\nos.stat('/nowhere/at/all')")
    assert raised.value.name == "ENOENT"
    with pytest.raises(patient.AnswerError, match="KeyError"):
        run("reading = {}['x']")
    with pytest.raises(patient.AnswerError, match="the child process ended"):
        run("import os\nos._exit(3)")


@pytest.mark.parametrize("printed", ["", "[]", "{}", "not JSON"])
def test_what_cannot_be_read_is_unknown(printed):
    host = SimpleNamespace(run=lambda *_: SimpleNamespace(rc=0, stdout=printed, stderr=""))
    with pytest.raises(Undetermined, match="cannot parse"):
        run("reading = 1", host=host)


def test_without_python_it_is_unknown():
    host = SimpleNamespace(run=lambda *_: SimpleNamespace(rc=127, stdout="", stderr="sh: python3: not found"))
    with pytest.raises(Undetermined, match="python3"):
        run("reading = 1", host=host)
