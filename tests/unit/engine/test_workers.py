"""A worker process that dies or writes nonsense concerns its own nodes."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any, TextIO

import pytest

from rackwright.engine import workers
from rackwright.engine.session import Session
from rackwright.plan.node_plan import NodePlan
from tests.factories import make_cluster

PLANNED = json.dumps({"event": "planned", "plan": NodePlan("NODE", evaluated=3).to_json()})
_SCRIPT = """
import json, sys
job = json.loads(sys.stdin.readline())
for name in job["nodes"]:
    if name == "worker1":
        sys.stdout.write({broken!r})
        sys.stdout.flush()
        {then}
    print({planned!r}.replace("NODE", name), flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch, tmp_path) -> Iterator[Callable[[str, str], Session]]:
    """Makes a session of three nodes, each with a worker; that of worker1 writes what it is given."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr(workers, "EVALUATED_PER_WORKER", 1)
    monkeypatch.setattr("rackwright.engine.session.EVALUATED_PER_WORKER", 1)
    monkeypatch.setattr("rackwright.engine.workers.os.cpu_count", lambda: 3)

    def made(broken: str, then: str) -> Session:
        script = _SCRIPT.format(broken=broken, then=then, planned=PLANNED)

        def start(errors: TextIO) -> subprocess.Popen[str]:
            return subprocess.Popen(
                [sys.executable, "-c", script],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
            )

        monkeypatch.setattr(workers, "start_process", start)
        return Session(make_cluster())

    return made


@pytest.mark.parametrize(
    "then", ["sys.exit(1)", "pass", "sys.stdin.read()"], ids=["dies", "goes on", "hangs"]
)
@pytest.mark.parametrize(
    "broken",
    [
        '{"event": "planned", "pl',
        "Traceback\n",
        "[]\n",
        "{}\n",
        '{"event": "planned"}\n',
        '{"event": "planned", "plan": {"node": "worker1", "operations": 5}}\n',
        '{"event": "applied", "outcome": {"operations": [], "bogus": 1}}\n',
        "[" * 100_000 + "\n",
    ],
)
def test_a_broken_line_loses_no_other_plan(session: Any, broken: str, then: str) -> None:
    if not broken.endswith("\n") and then != "sys.exit(1)":
        broken += "\n"
    with session(broken, then) as running:
        plan = running.plan()
    assert [plan.nodes[name] for name in ("head1", "worker2")] == [
        NodePlan("head1", evaluated=3),
        NodePlan("worker2", evaluated=3),
    ]
    assert plan.nodes["worker1"].error.startswith("its worker process ended (status ")


def test_a_worker_s_log_is_printable(session: Any) -> None:
    with session("", r"print('\x1b[2Jforged', file=sys.stderr); sys.exit(1)") as running:
        plan = running.plan()
    assert plan.nodes["worker1"].error.endswith("\n    \\x1b[2Jforged")


def test_a_worker_runs_nothing_of_the_current_folder(tmp_path, monkeypatch):
    """Operators run rackwright wherever their cluster file is."""
    monkeypatch.chdir(tmp_path)
    for module in ("json", "yaml"):
        (tmp_path / f"{module}.py").write_text("open('ran', 'w')\n")
    with (tmp_path / "log").open("w") as errors:
        process = workers.start_process(errors)
        process.communicate("", timeout=60)
    assert not (tmp_path / "ran").exists(), (tmp_path / "log").read_text()
