"""A cluster file, the rack booted from it, and the program run on it as a person would run it."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from ClusterShell.NodeSet import NodeSet

from rackwright.engine.plan_document import check_plan
from rackwright.lab import names, network
from rackwright.lab.rack import Rack

REPO = Path(__file__).resolve().parents[2]
LAB = REPO / "inventory" / "lab.yaml"
NODES = ("head1", "worker1", "worker2")
Operations = set[tuple[str, str, str]]
"""(node, role, operation), as plans and journals name them."""


@dataclass(frozen=True)
class Ran:
    """One finished command of the program."""

    status: int
    out: str
    err: str
    seconds: float

    def json(self) -> Any:
        return json.loads(self.out)

    def __str__(self) -> str:
        return f"exit status {self.status}\n--- stdout\n{self.out[-6000:]}\n--- stderr\n{self.err[-3000:]}"


class Running:
    """A command of the program that is still at work."""

    def __init__(self, site: Site, arguments: tuple[str, ...]) -> None:
        self._began = time.monotonic()
        self._paths = site.output_paths(arguments)
        with self._paths[0].open("w") as out, self._paths[1].open("w") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "rackwright", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                cwd=site.folder,
                env=site.environment,
            )

    def workers(self) -> list[int]:
        """Process ids of what it started."""
        try:
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        except OSError:
            return []  # it has ended
        return [int(pid) for pid in children.split()]

    @staticmethod
    def is_worker(pid: int) -> bool:
        try:
            return b"rackwright.engine.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False

    def kill(self, *, workers: bool) -> None:
        """kill -9 of the program, or of everything it started as well."""
        for pid in self.workers() if workers else []:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.kill()

    def wait(self, timeout: float = 900) -> Ran:
        """Its result; a program that does not end is killed, and the test fails."""
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"no end within {timeout} s: {self._paths[0].read_text()[-4000:]}") from None
        seconds = time.monotonic() - self._began
        return Ran(status, self._paths[0].read_text(), self._paths[1].read_text(), seconds)


class Site:
    """Everything a test needs; all outputs of all commands stay in `outputs`."""

    def __init__(self, folder: Path, name: str, declared: dict[str, Any] | None = None) -> None:
        self.folder = folder
        self.name = name
        self.file = folder / "cluster.yaml"
        self.outputs = folder / "outputs"
        self.state = folder / "state"
        self.config = folder / "config"
        for made in (self.outputs, self.state, self.config):
            made.mkdir(exist_ok=True)
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("XDG_")},
            "XDG_STATE_HOME": str(self.state),
            "XDG_CONFIG_HOME": str(self.config),
            "COLUMNS": "160",
        }
        self._ran = 0
        self.declared: dict[str, Any] = declared or yaml.safe_load(LAB.read_text())
        self.declare(_enrich if declared is None else lambda _: None)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of all nodes, in file order."""
        return tuple(name for entry in self.declared["nodes"] for name in NodeSet(entry["nodes"]))

    @property
    def rack(self) -> Rack:
        return Rack.named(self.name)

    def declare(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Write the cluster file anew after a change to its content."""
        self.declared["cluster"]["name"] = self.name
        change(self.declared)
        self.file.write_text(yaml.safe_dump(self.declared, sort_keys=False))

    # The program

    def output_paths(self, arguments: tuple[str, ...]) -> tuple[Path, Path]:
        self._ran += 1
        stem = f"{self._ran:03}-{'-'.join(word for word in arguments[:2] if '/' not in word)}"
        return self.outputs / f"{stem}.out", self.outputs / f"{stem}.err"

    def start(self, *arguments: str) -> Running:
        """Run the program and go on at once."""
        return Running(self, arguments)

    def cli(self, *arguments: str, expect: int | None = 0, timeout: float = 900) -> Ran:
        """Run the program to its end; AssertionError with all it said on another exit status."""
        ran = self.start(*arguments).wait(timeout)
        assert expect is None or ran.status == expect, (
            f"rackwright {' '.join(arguments)}: wanted {expect}, {ran}"
        )
        return ran

    def plan(self, expect: int, *options: str) -> dict[str, Any]:
        """The plan as its JSON document."""
        plan: dict[str, Any] = self.cli("plan", str(self.file), "--json", *options, expect=expect).json()
        check_plan(plan)
        return plan

    def apply(self, expect: int = 0, *options: str) -> Ran:
        return self.cli("apply", str(self.file), "--yes", *options, expect=expect)

    def tool(self, *command: str, name: str, inside: bool = False, timeout: float = 900) -> Ran:
        """Run another program, inside the rack's network if asked to; its output is kept as well."""
        out, err = self.output_paths((name,))
        began = time.monotonic()
        done = subprocess.run(
            network.inside(names.namespace(self.name), command) if inside else list(command),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
        )
        out.write_text(done.stdout)
        err.write_text(done.stderr)
        return Ran(done.returncode, done.stdout, done.stderr, time.monotonic() - began)

    # Journals of runs

    def runs(self) -> list[dict[str, Any]]:
        listed: list[dict[str, Any]] = self.cli("runs", "--json").json()
        return listed

    def changed_by(self, run: str) -> Operations:
        """What a run changed, as its journal has it."""
        events = self.cli("runs", run, "--json").json()["events"]
        return {
            (event["node"], event["role"], event["name"])
            for event in events
            if event["event"] == "finish" and event["outcome"] == "changed"
        }

    def wait_for_event(self, running: Running, timeout: float = 300, **wanted: str) -> None:
        """Until the journal of a running command has an event like this one."""
        deadline = time.monotonic() + timeout
        ended = False
        while not any(wanted.items() <= event.items() for event in self._events_of(running.process.pid)):
            assert not ended, f"it ended without {wanted}: {running.wait()}"
            ended = running.process.poll() is not None
            assert time.monotonic() < deadline, f"no event {wanted} within {timeout} s"
            time.sleep(0.05)

    def _events_of(self, pid: int) -> Iterator[dict[str, Any]]:
        for path in sorted((self.state / "rackwright" / self.name / "runs").glob("*.jsonl"))[-1:]:
            lines = path.read_text().splitlines(keepends=True)
            events = [json.loads(line) for line in lines if line.endswith("\n")]
            if events and events[0]["pid"] == pid:
                yield from events

    # Nodes

    def on(self, node: str, script: str, timeout: float = 120) -> str:
        """Run a shell script as root on a node, past ssh; LabError if it fails."""
        return self.rack.run(node, ["sh", "-ec", script], timeout)

    def fault(self, node: str, kind: str) -> None:
        self.cli("lab", "fault", "--file", str(self.file), node, kind)

    def heal(self, node: str) -> None:
        self.cli("lab", "heal", "--file", str(self.file), node)


def operations(plan: dict[str, Any]) -> Operations:
    """Everything a plan would do."""
    return {
        (node["node"], operation["role"], operation["name"])
        for node in plan["nodes"]
        for operation in node["operations"]
    }


def _enrich(declared: dict[str, Any]) -> None:
    """The lab's file with more to drift: an admin with a key, QOS, a second account."""
    roles = declared["roles"]
    blob = base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0 " + bytes(range(32))).decode()
    bob = {"name": "bob", "uid": 3001, "sudo": True, "authorized_keys": [f"ssh-ed25519 {blob} bob@example"]}
    roles["access"]["users"].append(bob)
    # What the tests break, the nodes' own health checks find as well: they come back soon after the repair.
    roles["health"]["drain"] = {"clean_passes": 1}
    roles["health"]["fast_seconds"] = 30  # a busy machine is no fault of the node
    roles["slurm"]["health_check"] = {"interval_seconds": 15}
    declared["burnin"]["floor_busbw_gbs"] = (
        0.005  # of a machine whose CPU is somebody else's most of the time
    )
    roles["slurm"]["qos"] = {"urgent": {"priority": 100}}
    roles["slurm"]["accounts"]["teaching"] = {"fairshare": 2}
