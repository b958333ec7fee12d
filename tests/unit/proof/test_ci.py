"""What CI runs: .ci/timed notes what a part took, .ci/run prints it however `make test` ends."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
_TIMED = ROOT / ".ci" / "timed"
_MAKE = """\
#!/bin/sh
case $1 in
setup) exit 0 ;;
test) exec .ci/timed racks {command} ;;
esac
"""
_LONG = "python3 long.py"
_LONG_PROGRAM = """\
import pathlib, sys, time
try:
    pathlib.Path("started").touch()
    time.sleep(600)
except KeyboardInterrupt:
    print("racks are down")
    sys.exit(2)
"""


@pytest.mark.parametrize("status", [0, 7])
def test_timed_keeps_the_status_and_appends_a_line(tmp_path, status):
    durations = tmp_path / "durations"
    durations.write_text("earlier 1.0 1.0 0\n")
    done = subprocess.run(
        [_TIMED, "a-part", "sh", "-c", f'echo "$1 said"; exit {status}', "sh", "two words"],
        env={**os.environ, "RACKWRIGHT_DURATIONS": str(durations)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert (done.returncode, done.stdout, done.stderr) == (status, "two words said\n", "")
    assert re.fullmatch(rf"earlier 1.0 1.0 0\na-part \d+\.\d \d+\.\d {status}\n", durations.read_text())
    assert list(tmp_path.iterdir()) == [durations]


def test_timed_counts_the_cpu_time_of_children(tmp_path):
    durations = tmp_path / "durations"
    loop = "import time\nwhile time.process_time() < 0.3: pass"
    subprocess.run(
        [_TIMED, "loop", "sh", "-c", f"python3 -c '{loop}'; true"],
        env={**os.environ, "RACKWRIGHT_DURATIONS": str(durations)},
        check=True,
        timeout=60,
    )
    assert float(durations.read_text().split()[2]) >= 0.2


def test_timed_runs_without_a_file():
    environment = {key: value for key, value in os.environ.items() if key != "RACKWRIGHT_DURATIONS"}
    done = subprocess.run([_TIMED, "part", "sh", "-c", "exit 5"], env=environment, check=False, timeout=60)
    assert done.returncode == 5


@pytest.fixture
def start(tmp_path, monkeypatch):
    """Starts .ci/run in a folder where `make test` is a command of the test's choice."""
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".venv" / "bin").mkdir(parents=True)
    (tmp_path / "bin").mkdir()
    (tmp_path / "long.py").write_text(_LONG_PROGRAM)
    shutil.copy(_TIMED, tmp_path / ".ci")
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:{os.environ['PATH']}")

    def start(command: str, limit: int = 4800) -> subprocess.Popen[str]:
        script = (ROOT / ".ci" / "run").read_text()
        assert "\nlimit=4800 " in script
        files = {
            ".ci/run": script.replace("\nlimit=4800 ", f"\nlimit={limit} "),
            ".ci/bootstrap": "#!/bin/sh\n",
            ".venv/bin/rackwright": '#!/bin/sh\necho "rackwright $*"\n',
            "bin/make": _MAKE.format(command=command),
        }
        for name, text in files.items():
            path = tmp_path / name
            path.write_text(text)
            path.chmod(0o755)
        return subprocess.Popen(
            ["bash", ".ci/run"],
            cwd=tmp_path,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    return start


def _table(said: str) -> dict[str, str]:
    """Status by part."""
    table = said.partition("part   ")[2]
    return dict(re.findall(r"^(\S+) +\d+\.\d +\d+\.\d  (.+)$", table, re.MULTILINE))


@pytest.mark.slow
@pytest.mark.parametrize(("status", "word"), [(0, "passed"), (3, "failed (3)")])
def test_run_prints_the_parts_and_keeps_the_status(start, status, word):
    with start(f"sh -c 'exit {status}'") as process:
        said = process.communicate(timeout=60)[0]
    assert process.returncode == status, said
    assert _table(said) == {"system": "passed", "setup": "passed", "lab-down": "passed", "racks": word}
    assert re.search(
        r"^everything: \d+ s; the machine: [\d.]+ CPU seconds busy, [\d.]+% of its CPU time stolen$",
        said,
        re.MULTILINE,
    )
    assert said.count("rackwright lab down --all") == 1


@pytest.mark.slow
def test_run_stops_tests_that_take_too_long_and_takes_their_racks_down(start):
    with start(_LONG, limit=2) as process:
        said = process.communicate(timeout=120)[0]
    assert process.returncode == 124, said
    assert _table(said)["racks"].startswith("failed")
    assert said.count("rackwright lab down --all") == 2


@pytest.mark.slow
@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_run_prints_the_parts_when_it_is_stopped(start, tmp_path: Path, number, status):
    with start(_LONG) as process:
        deadline = time.monotonic() + 60
        while not (tmp_path / "started").exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(number)
        said = process.communicate(timeout=120)[0]
    assert process.returncode == status, said
    assert "racks are down" in said
    assert _table(said)["racks"] == "failed (2)"
    assert said.count("rackwright lab down --all") == 2
