"""A cluster file, the rack booted from it, and rackwright run on it: the one helper of all rack tests.

What a test is about goes through the program as a user runs it (`cli`, `start`, `apply`). What it only needs
to know (is everything as declared again? what did that run change?) is asked in this process (`plan`,
`converge`, `runs`): each start of the program costs half a CPU-second, and there are hundreds of such questions.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from ClusterShell.NodeSet import NodeSet

from rackwright.clusterfile.load import load_cluster
from rackwright.drift.install import update_digests
from rackwright.engine import journal, workers
from rackwright.engine.journal_lines import Run
from rackwright.engine.run import Applied, apply, plan
from rackwright.lab import names, network
from rackwright.lab.rack import Rack
from rackwright.model.cluster import Cluster
from rackwright.plan.document import check_plan
from tests.racks import warm
from tests.racks.program import Ran, Running

REPO = Path(__file__).resolve().parents[2]
Operations = set[tuple[str, str, str]]
"""(node, role, operation), as plans and journals name them."""


class Site:
    """A rack and the folder with its cluster file; all outputs of all commands stay in `outputs`."""

    def __init__(self, folder: Path, name: str, declared: dict[str, Any]) -> None:
        """`name` begins the rack's name; the process id makes it this session's own."""
        self.folder = folder
        self.name = f"{name}{os.getpid()}"
        self.file = folder / "cluster.yaml"
        self.outputs = folder / "outputs"
        self.state = folder / "state"
        self.config = folder / "config"
        for made in (self.outputs, self.state, self.config):
            made.mkdir(exist_ok=True)
        self._own = {"XDG_STATE_HOME": str(self.state), "XDG_CONFIG_HOME": str(self.config)}
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("XDG_")},
            **self._own,
            "COLUMNS": "160",
        }
        self._ran = 0
        self.declared = declared
        self.declare(lambda _: None)

    @property
    def nodes(self) -> tuple[str, ...]:
        """Names of all nodes, in file order."""
        return tuple(name for entry in self.declared["nodes"] for name in NodeSet(entry["nodes"]))

    @property
    def rack(self) -> Rack:
        return Rack.named(self.name)

    @property
    def cluster(self) -> Cluster:
        return load_cluster(self.file)

    @contextmanager
    def booted(self) -> Iterator[Site]:
        """The rack, up and bare; always taken down in the end."""
        try:
            self.cli("lab", "up", str(self.file))
            yield self
        finally:
            if self.name in Rack.names():
                self.rack.down()

    def declare(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Write the cluster file anew after a change to its content."""
        self.declared["cluster"]["name"] = self.name
        change(self.declared)
        self.file.write_text(yaml.safe_dump(self.declared, sort_keys=False))

    @contextmanager
    def declaring(self, change: Callable[[dict[str, Any]], None]) -> Iterator[None]:
        """Another declaration for a while; the nodes are not touched."""
        before = yaml.safe_dump(self.declared, sort_keys=False)
        self.declare(change)
        try:
            yield
        finally:
            self.declared = yaml.safe_load(before)
            self.declare(lambda _: None)

    # The program

    def output_paths(self, arguments: tuple[str, ...]) -> tuple[Path, Path]:
        self._ran += 1
        stem = f"{self._ran:03}-{'-'.join(word for word in arguments[:2] if '/' not in word)}"
        return self.outputs / f"{stem}.out", self.outputs / f"{stem}.err"

    def start(self, *arguments: str, stdin: str | None = "") -> Running:
        """Run the program and go on at once."""
        return Running(arguments, self.output_paths(arguments), self.folder, self.environment, stdin)

    def cli(self, *arguments: str, expect: int | None = 0, timeout: float = 1800, stdin: str = "") -> Ran:
        """Run the program to its end; AssertionError with its output on another exit status."""
        ran = self.start(*arguments, stdin=stdin).wait(timeout)
        assert expect is None or ran.status == expect, (
            f"rackwright {' '.join(arguments)}: wanted {expect}, {ran}"
        )
        return ran

    def apply(self, expect: int = 0, *options: str) -> Ran:
        """`rackwright apply FILE --yes`."""
        return self.cli("apply", str(self.file), "--yes", *options, expect=expect)

    def tool(
        self, *command: str, name: str, inside: bool = False, timeout: float = 1800, stdin: bytes = b""
    ) -> Ran:
        """Run another program, inside the rack's network if asked to; its output is kept as well."""
        out, err = self.output_paths((name,))
        began = time.monotonic()
        done = subprocess.run(
            network.inside(names.namespace(self.name), command) if inside else list(command),
            input=stdin,
            capture_output=True,
            timeout=timeout,
            check=False,
            cwd=self.folder,
            env=self.environment,
        )
        out.write_bytes(done.stdout)
        err.write_bytes(done.stderr)
        return Ran(done.returncode, out.read_text(), err.read_text(), time.monotonic() - began)

    # The engine and its journals, asked in this process

    @contextmanager
    def here(self) -> Iterator[None]:
        """This process has the state and the secrets that the program has, and workers that start quickly."""
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(workers, "start_process", warm.start_process)
            for key, value in self._own.items():
                patch.setenv(key, value)
            yield

    def plan(self, expect: int, *, role: str | None = None, full: bool = False) -> dict[str, Any]:
        """The plan as its JSON document; AssertionError where `rackwright plan` would exit otherwise."""
        with self.here():
            planned = plan(self.cluster, roles=frozenset({role}) if role else None, full=full)
        document: dict[str, Any] = planned.to_json()
        check_plan(document)
        assert planned.exit_code == expect, json.dumps(document, indent=1)[:9000]
        return document

    def converge(self) -> Applied:
        """Apply, and find that nothing is left to change."""
        with self.here():
            applied = apply(self.cluster)
            update_digests(self.cluster, applied)
        assert not applied.plan.failed, applied.plan.failed
        assert applied.result is None or not applied.result.failed, applied.result
        assert operations(self.plan(0)) == set()
        return applied

    def runs(self) -> list[Run]:
        """Journals of all runs, oldest first."""
        with self.here():
            return journal.runs(self.name)

    def latest_events(self) -> tuple[str, list[dict[str, Any]]]:
        """The name of the newest run and what its journal has so far; cheap enough to be asked in a loop."""
        folder = self.state / "rackwright" / self.name / "runs"
        try:
            newest = max(name for name in os.listdir(folder) if name.endswith(".jsonl"))
        except (FileNotFoundError, ValueError):
            return "", []
        lines = (folder / newest).read_text().splitlines(keepends=True)
        return newest.removesuffix(".jsonl"), [json.loads(line) for line in lines if line.endswith("\n")]

    def wait_for_event(self, running: Running, timeout: float = 600, **wanted: str) -> None:
        """Until the journal of a running command has an event like this one."""
        deadline = time.monotonic() + timeout
        ended = False
        while not any(wanted.items() <= event.items() for event in self._events_of(running.process.pid)):
            assert not ended, f"it ended without {wanted}: {running.wait()}"
            ended = running.process.poll() is not None
            assert time.monotonic() < deadline, f"no event {wanted} within {timeout} s"
            time.sleep(0.05)

    def _events_of(self, pid: int) -> list[dict[str, Any]]:
        _, events = self.latest_events()
        return events if events and events[0].get("pid") == pid else []

    # Nodes

    def on(self, node: str, script: str, timeout: float = 300) -> str:
        """Run a shell script as root on a node, past ssh; LabError if it fails."""
        return self.rack.run(node, ["bash", "-ec", script], timeout)

    def send(self, node: str, folder: Path, *tar: str, to: str) -> None:
        """Unpack files of this machine on a node; `tar` names them below the folder, after tar's options."""
        packed = subprocess.run(
            ["tar", "ch", "-C", str(folder), *tar], capture_output=True, check=True, timeout=240
        )
        command = self.rack.ssh_command(node, ("sudo", "sh", "-c", f"'mkdir -p {to} && tar xo -C {to}'"))
        done = subprocess.run(command, input=packed.stdout, capture_output=True, timeout=480, check=False)
        assert done.returncode == 0, done.stderr

    def fault(self, node: str, kind: str) -> None:
        self.rack.fault(node, kind)

    def heal(self, node: str) -> None:
        self.rack.heal(node)


def operations(plan: dict[str, Any]) -> Operations:
    """Everything a plan would do."""
    return {
        (node["node"], operation["role"], operation["name"])
        for node in plan["nodes"]
        for operation in node["operations"]
    }


def changed_by(run: Run) -> Operations:
    """What a run changed, as its journal has it."""
    return {
        (event["node"], event["role"], event["name"])
        for event in run.events
        if event["event"] == "finish" and event["outcome"] == "changed"
    }
