"""The command line: what is chosen, exit statuses, and how an interruption ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from datetime import UTC, datetime, timedelta

import pytest
from typer.testing import CliRunner

from tests.proof import __main__ as command
from tests.proof import pages
from tests.proof.ledger import Ledger, save
from tests.proof.runner import ROOT
from tests.proof.suites import Tier, named
from tests.unit.proof.records import record


@pytest.fixture
def here(repository, make_suite, monkeypatch):
    """The command over the repository of the test, with three suites; runs are noted, and `b` fails."""
    ran: list[tuple[str, str, bool]] = []
    suites = tuple(make_suite(name=name, paths=(name,)) for name in ("a", "b", "c"))

    def run(self, suite, tier, lock, *, again=False):
        ran.append((suite.name, str(tier), again))
        return suite.name != "b"

    monkeypatch.setattr(command, "ROOT", repository.root)
    monkeypatch.setattr(command, "SUITES", suites)
    monkeypatch.setattr(command, "named", lambda names: named(names, suites))
    monkeypatch.setattr(command.Runner, "run", run)
    monkeypatch.setattr(command, "_interruptible", lambda: None)
    monkeypatch.setattr(pages, "update", lambda root: ran.append(("pages", "", False)))
    return ran


def _invoke(*arguments: str):
    return CliRunner().invoke(command.app, arguments)


def test_a_failure_does_not_stop_the_next_suite(here):
    done = _invoke("run")
    assert done.exit_code == 1
    assert [name for name, *_ in here] == ["a", "pages", "b", "pages", "c", "pages"]
    assert "proof: 2 of 3 suites passed (full)" in done.output
    assert "b: see .cache/proof/b.full.log" in done.output


def test_suites_tier_and_again_are_passed_on(here):
    assert _invoke("run", "c", "a", "--smoke", "--again").exit_code == 0
    assert here == [("a", "smoke", True), ("pages", "", False), ("c", "smoke", True), ("pages", "", False)]


def test_since_chooses_what_a_change_touches(here, repository):
    done = _invoke("run", "--since", "HEAD")
    assert done.exit_code == 0
    assert "depend on what changed since HEAD: no suite" in done.output
    repository.write("c/new", "")
    assert _invoke("run", "--since", "HEAD").exit_code == 0
    assert here == [("c", "full", False), ("pages", "", False)]


def test_status_has_the_age_of_each_result(here, repository, make_suite):
    (repository.root / "docs").mkdir(exist_ok=True)
    old = record(suite="a", date=datetime.now(UTC) - timedelta(days=3, hours=1))
    save(repository.root / pages.LEDGER, Ledger().with_record(old, Tier.SMOKE))
    lines = [line.split() for line in _invoke("status").output.splitlines()]
    assert lines[1:3] == [
        ["a", "full", "not", "run"],
        ["a", "smoke", "passed", "3", "days", "changed", "since"],
    ]


def _program(*arguments: str, **options):
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return [sys.executable, "-m", "tests.proof", *arguments], {"env": environment, "cwd": ROOT, **options}


@pytest.mark.slow
def test_an_unknown_suite_and_an_unknown_ref_are_usage_errors():
    for arguments, words in (
        (("run", "dkmz"), ("error: There is no proof suite dkmz.", "hint: known suites: dkms")),
        (
            ("run", "--since", "no-such-ref"),
            ("error: git knows no commit 'no-such-ref'.", "hint: `git fetch`"),
        ),
    ):
        argv, options = _program(*arguments, capture_output=True, text=True, timeout=60)
        done = subprocess.run(argv, check=False, **options)
        assert done.returncode == 64
        assert all(word in done.stderr for word in words)


_INTERRUPTED = """\
import sys
from pathlib import Path
from tests.proof import __main__ as command, pages, suites
root = Path(sys.argv.pop(1))
suite = suites.Suite(name="engine", proves="It holds.", paths=("long",), tests=("long",), smoke=("long",))
command.ROOT, command.named, pages.update = root, lambda names: (suite,), lambda root: None
command.main()
"""


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interruption_stops_pytest_and_the_same_command_continues(repository, number):
    repository.write("ran.log", "")
    repository.write(
        "long/test_long.py",
        "import pathlib, time\n"
        "def test_a(): pathlib.Path('ran.log').open('a').write('a')\n"
        "def test_b():\n"
        "    again = 'b' in pathlib.Path('ran.log').read_text()\n"
        "    pathlib.Path('ran.log').open('a').write('b')\n"
        "    again or time.sleep(60)\n"
        "def teardown_module(): pathlib.Path('ran.log').open('a').write('!')\n",
    )
    (repository.root / "docs").mkdir(exist_ok=True)
    argv, options = _program()
    argv = [sys.executable, "-c", _INTERRUPTED, str(repository.root), "run"]
    # as a shell starts a background job: with SIGINT ignored
    options |= {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    options["preexec_fn"] = lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)
    with subprocess.Popen(argv, **options) as process:
        deadline = time.monotonic() + 60
        while "b" not in (repository.root / "ran.log").read_text():
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(number)
        said = process.communicate(timeout=60)[1]
    assert process.returncode == 130, said
    assert "proof: interrupted; the same command continues where it stopped" in said
    assert not (repository.root / pages.LEDGER).exists()
    done = subprocess.run(argv, timeout=60, check=False, **{**options, "stderr": subprocess.STDOUT})
    assert done.returncode == 0
    assert (repository.root / "ran.log").read_text() == "ab!b!"
