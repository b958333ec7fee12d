"""Runs of suites of small tests: what is recorded, what is resumed, what is stopped."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from rackwright.errors import RackwrightError
from tests.proof.ledger import Ledger, Result, load, save
from tests.proof.machine import Usage
from tests.proof.process import Ended
from tests.proof.progress import Progress
from tests.proof.runner import Runner
from tests.proof.suites import Tier
from tests.proof.tree import Tree
from tests.unit.proof.records import record

_LONG = """\
import os
import pathlib
import signal
import time

def test_a():
    pathlib.Path("ran.log").open("a").write("a")

def test_b():
    pathlib.Path("ran.log").open("a").write("b")
    {inside}

def test_c(record_property):
    pathlib.Path("ran.log").open("a").write("c")
    record_property("rope", "7 m")
"""
_DIES_ONCE = """\
once = pathlib.Path("once.log")
    if not once.exists():
        once.touch()
        {how}"""


class Proof:
    """A runner over the repository of a test, and what it printed."""

    def __init__(self, repository) -> None:
        self.root = repository.root
        self.said: list[str] = []
        self.runner = Runner(
            Tree(self.root), self.root / "docs/proof.json", self.root / ".cache/proof", self.said.append, 60.0
        )

    def run(self, suite, *, again: bool = False) -> bool:
        with self.runner.alone() as lock:
            return self.runner.run(suite, Tier.FULL, lock, again=again)

    @property
    def record(self):
        return load(self.runner.ledger).record("engine", Tier.FULL)

    @property
    def ran(self) -> str:
        return (self.root / "ran.log").read_text()

    @property
    def progress_files(self) -> list[str]:
        return [path.name for path in self.runner.cache.glob("*.jsonl")]


@pytest.fixture
def proof(repository):
    return Proof(repository)


@pytest.fixture
def write_long(repository):
    """Three tests, the second of which does something."""
    return lambda inside="pass": repository.write("long/test_long.py", _LONG.format(inside=inside))


@pytest.mark.slow
def test_a_pass_is_recorded_and_not_repeated(proof, make_suite, write_long, repository, capsys):
    write_long()
    head = repository.commit("tests")
    suite = make_suite(environment={"RACKWRIGHT_TEST_ROUNDS": "3"})
    assert proof.run(suite)
    record = proof.record
    assert record.result is Result.PASSED
    assert record.reason is None
    assert record.tests.model_dump() == {"passed": 3, "failed": 0, "errors": 0, "skipped": 0}
    assert (record.commit, record.uncommitted, record.attempts) == (head, False, 1)
    assert (record.proves, record.paths) == (suite.proves, suite.paths)
    assert record.environment == {"RACKWRIGHT_TEST_ROUNDS": "3"}
    assert record.digest == proof.runner.tree.digest(suite, Tier.FULL)
    assert 0 < record.seconds < 600
    assert record.cpu_seconds > 0
    assert record.memory_mib is not None
    assert record.measured == {"rope": "7 m"}
    assert proof.progress_files == []
    assert "3 passed" in proof.runner.log(suite, Tier.FULL).read_text()
    assert "3 passed" in capsys.readouterr().out

    assert proof.run(suite)
    assert proof.ran == "abc"
    assert re.fullmatch(r"engine \(full\): skipped, it passed on \S+ on the same files .*", proof.said[-1])
    assert proof.run(suite, again=True)
    assert proof.ran == "abcabc"
    repository.write("src/engine.py", "x = 2\n")
    assert proof.run(suite)
    assert proof.ran == "abcabcabc"
    assert proof.record.uncommitted


@pytest.mark.slow
def test_a_killed_run_continues_where_it_stopped(proof, make_suite, write_long, capsys):
    write_long(_DIES_ONCE.format(how="os.kill(os.getpid(), signal.SIGKILL)"))
    assert not proof.run(make_suite())
    assert proof.record.result is Result.FAILED
    assert proof.record.reason == "pytest was killed by signal 9."
    assert proof.record.tests.passed == 1
    first = proof.record
    (file,) = proof.progress_files
    with (proof.runner.cache / file).open("a") as damaged:
        damaged.write('{"attempt": 1, "te')

    assert proof.run(make_suite())
    assert proof.ran == "abbc"
    assert "1 deselected" in capsys.readouterr().out
    assert proof.record.tests.passed == 3
    assert proof.record.attempts == 2
    assert proof.record.measured == {"rope": "7 m"}
    assert proof.record.seconds > first.seconds
    assert proof.record.cpu_seconds > first.cpu_seconds
    assert proof.record.failed_before == 0
    assert proof.progress_files == []


@pytest.mark.slow
def test_a_failed_test_is_repeated_and_that_is_recorded(proof, make_suite, write_long):
    write_long(_DIES_ONCE.format(how="raise SystemError('no')"))
    assert not proof.run(make_suite())
    assert proof.record.reason == "1 tests failed, 0 errors."
    assert proof.record.tests.model_dump() == {"passed": 2, "failed": 1, "errors": 0, "skipped": 0}
    assert proof.run(make_suite())
    assert proof.ran == "abcb"
    assert (proof.record.attempts, proof.record.failed_before) == (2, 1)


@pytest.mark.slow
def test_again_forgets_what_had_passed(proof, make_suite, write_long):
    write_long(_DIES_ONCE.format(how="raise SystemError('no')"))
    proof.run(make_suite())
    assert proof.run(make_suite(), again=True)
    assert proof.ran == "abcabc"
    assert (proof.record.attempts, proof.record.failed_before) == (1, 0)


@pytest.mark.slow
def test_a_failed_run_replaces_a_pass_and_remembers_it(proof, make_suite, write_long):
    write_long()
    proof.run(make_suite())
    passed = proof.record
    write_long("assert False")
    assert not proof.run(make_suite())
    assert proof.record.result is Result.FAILED
    assert proof.record.last_passed.date == passed.date


@pytest.fixture
def over_in_b(proof, monkeypatch):
    """The limit passes while test_b runs, however slow the machine is."""

    class Clock:
        sleep = staticmethod(time.sleep)

        def monotonic(self) -> float:
            ran = proof.root / "ran.log"
            return time.monotonic() + 3600 * ("b" in (ran.read_text() if ran.exists() else ""))

    monkeypatch.setattr("tests.proof.process.time", Clock())


@pytest.mark.slow
@pytest.mark.usefixtures("over_in_b")
def test_a_run_past_its_limit_is_stopped_and_can_clean_up(proof, make_suite, write_long):
    write_long("time.sleep(600)\n\ndef teardown_module():\n    pathlib.Path('ran.log').open('a').write('!')")
    assert not proof.run(make_suite(limit_seconds=1800))
    assert proof.ran == "ab!"
    assert proof.record.result is Result.TIMED_OUT
    assert proof.record.reason == "Stopped after 30 min, the limit of the suite."
    assert len(proof.progress_files) == 1


@pytest.mark.slow
@pytest.mark.usefixtures("over_in_b")
def test_a_run_that_ignores_sigint_is_killed(proof, make_suite, repository):
    deaf = (
        "signal.signal(signal.SIGINT, signal.SIG_IGN); pathlib.Path('pid.log').write_text(str(os.getpid()))"
    )
    text = _LONG.format(inside="time.sleep(600)").replace("def test_a():", f"def test_a():\n    {deaf}")
    repository.write("long/test_long.py", text)
    proof.runner = Runner(proof.runner.tree, proof.runner.ledger, proof.runner.cache, proof.said.append, 0.2)
    assert not proof.run(make_suite(limit_seconds=1800))
    assert proof.record.result is Result.TIMED_OUT
    assert not Path(f"/proc/{(proof.root / 'pid.log').read_text()}").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("inside", "arguments", "reason"),
    [
        ("pass", ("long", "-k", "nothing"), "No test ran; pytest ended with status 5."),
        ("pass", ("long/none.py",), "No test ran; pytest ended with status 4."),
        ("import pytest; pytest.skip('no root')", ("long",), "1 tests were skipped."),
        ("import pytest; pytest.xfail('known')", ("long",), "1 tests were skipped."),
    ],
)
def test_nothing_executed_and_something_skipped_are_no_pass(
    proof, make_suite, write_long, inside, arguments, reason
):
    write_long(inside)
    assert not proof.run(make_suite(tests=arguments))
    assert proof.record.result is Result.FAILED
    assert proof.record.reason == reason


@pytest.mark.slow
def test_errors_are_counted(proof, make_suite, write_long, repository):
    write_long()
    broken = repository.write("long/test_broken.py", "import nothing_of_that_name\n")
    assert not proof.run(make_suite())
    assert proof.record.tests.errors == 1
    broken.unlink()
    repository.write("long/conftest.py", "import pytest\n@pytest.fixture(autouse=True)\ndef no(): 1 / 0\n")
    assert not proof.run(make_suite())
    assert proof.record.tests.model_dump() == {"passed": 0, "failed": 0, "errors": 3, "skipped": 0}


@pytest.mark.slow
def test_files_that_change_during_the_run_make_it_void(proof, make_suite, write_long):
    write_long("pathlib.Path('src/engine.py').open('a').write('#')")
    assert not proof.run(make_suite())
    assert proof.record.result is Result.FAILED
    assert proof.record.reason == "Files that the suite depends on changed while it ran."
    assert proof.progress_files == []


@pytest.mark.slow
def test_a_status_no_test_explains_is_not_resumed(proof, make_suite, write_long, repository):
    write_long()
    repository.write("long/conftest.py", "def pytest_sessionfinish(session):\n    session.exitstatus = 1\n")
    assert not proof.run(make_suite())
    assert proof.record.reason == "pytest ended with status 1."
    assert proof.progress_files == []


@pytest.mark.slow
def test_the_caller_s_environment_changes_nothing(proof, make_suite, write_long, monkeypatch):
    write_long(
        "assert os.environ['RACKWRIGHT_TEST_NODES'] == '40' and 'RACKWRIGHT_TEST_SEED' not in os.environ"
    )
    monkeypatch.setenv("RACKWRIGHT_TEST_NODES", "1")
    monkeypatch.setenv("RACKWRIGHT_TEST_SEED", "1")
    monkeypatch.setenv("PYTEST_ADDOPTS", "-k test_a")
    assert proof.run(make_suite(environment={"RACKWRIGHT_TEST_NODES": "40"}))
    assert proof.record.tests.passed == 3


def test_an_interrupted_run_leaves_no_record_and_its_progress(proof, make_suite, monkeypatch):
    def interrupted(*_, **__):
        Progress(proof.runner.cache / proof.progress_files[0]).note(1, Usage(), test="a", outcome="passed")
        raise KeyboardInterrupt

    monkeypatch.setattr("tests.proof.runner.run_bounded", interrupted)
    with pytest.raises(KeyboardInterrupt):
        proof.run(make_suite())
    assert load(proof.runner.ledger) == Ledger()
    (file,) = proof.progress_files
    assert Progress(proof.runner.cache / file).summary().passed == {"a"}


def test_one_run_at_a_time(proof):
    with proof.runner.alone(), pytest.raises(RackwrightError, match="Another proof run is at work"):
        proof.runner.alone().__enter__()
    with proof.runner.alone():
        pass


def test_other_suites_keep_their_records(proof, make_suite, monkeypatch):
    proof.runner.ledger.parent.mkdir(exist_ok=True)
    save(proof.runner.ledger, Ledger().with_record(record(suite="other"), Tier.FULL))
    monkeypatch.setattr("tests.proof.runner.run_bounded", lambda *_, **__: Ended(0, timed_out=False))
    assert not proof.run(make_suite())
    assert load(proof.runner.ledger).record("other", Tier.FULL) == record(suite="other")
    assert proof.record.reason == "No test ran; pytest ended with status 0."
