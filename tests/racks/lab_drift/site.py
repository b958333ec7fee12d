"""A cluster file of two nodes, the rack booted from it, and a copy of the program to run on both sides."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rackwright.lab import names, network
from rackwright.lab.rack import Rack

REPO = Path(__file__).resolve().parents[2]
HEAD = "/opt/rackwright/bin/python3"
"""Where the head has rackwright, once it was shipped there."""
NODES = ("head1", "worker1")
_FILE = """\
version: 1
cluster: {{name: {name}, domain: lab.test}}
defaults: {{os: debian-13, platform: container, sku: lab-node, lab: {{cpus: 2, memory_mib: 1024}}}}
networks:
  management: {{purpose: management, cidr: 10.77.0.0/24, gateway: 10.77.0.1}}
ssh: {{user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}}
mirrors: {{apt_proxy: "http://10.77.0.1:3142"}}
nodes:
  - {{nodes: head1, roles: [head], os: debian-12, addresses: {{management: 10.77.0.10}}}}
  - {{nodes: worker1, roles: [worker], addresses: {{management: 10.77.0.11}}}}
roles:
  base: {{}}
  access: {{users: [{{name: ada, uid: 3000}}]}}
  tuning: {{drift: repair}}
  time: {{drift: repair}}
"""
_DEVELOPERS = ("mypy", "*mypyc*", "ruff*", "pip", "virtualenv", "setuptools", "*.pth", "pre_commit")


@dataclass(frozen=True)
class Ran:
    """One finished command."""

    status: int
    out: str
    err: str

    def __str__(self) -> str:
        return f"exit status {self.status}\n--- stdout\n{self.out[-6000:]}\n--- stderr\n{self.err[-3000:]}"


class Site:
    """What the tests need of the rack. The program is a copy: a change of code moves every digest."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.name = f"drift{os.getpid()}"
        self.file = folder / "cluster.yaml"
        self.file.write_text(_FILE.format(name=self.name))
        self.code = folder / "code"
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(REPO / "rackwright", self.code / "rackwright", ignore=ignored)
        self.environment = {
            **{key: value for key, value in os.environ.items() if not key.startswith("XDG_")},
            "XDG_STATE_HOME": str(folder / "state"),
            "XDG_CONFIG_HOME": str(folder / "config"),
            "PYTHONPATH": str(self.code),
            "COLUMNS": "160",
        }

    @property
    def rack(self) -> Rack:
        return Rack.named(self.name)

    def cli(self, *arguments: str, expect: int | None = 0, stdin: str = "") -> Ran:
        """Run the program here; AssertionError with all it said on another exit status."""
        done = subprocess.run(
            [sys.executable, "-m", "rackwright", *arguments],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=900,
            check=False,
            cwd=self.folder,
            env=self.environment,
        )
        ran = Ran(done.returncode, done.stdout, done.stderr)
        assert expect is None or ran.status == expect, (
            f"rackwright {' '.join(arguments)}: wanted {expect}, {ran}"
        )
        return ran

    def runs(self) -> list[dict[str, Any]]:
        """What `rackwright runs` lists."""
        listed: list[dict[str, Any]] = json.loads(self.cli("runs", "--json").out)
        return listed

    def kill_amid(self, *arguments: str) -> None:
        """Run the program, and kill -9 it once its journal says that it changed something."""
        known = len(self.runs())
        process = subprocess.Popen(
            [sys.executable, "-m", "rackwright", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=self.folder,
            env=self.environment,
        )
        journals = self.folder / "state" / "rackwright" / self.name / "runs"
        try:
            while process.poll() is None:
                written = sorted(journals.glob("*.jsonl"))[known:]
                if written and '"changed"' in written[0].read_text():
                    break
                time.sleep(0.02)
        finally:
            process.kill()
        assert process.wait() == -signal.SIGKILL, "it ended before it could be killed"

    def drift(self, *arguments: str, expect: int | None = 0, stdin: str = "") -> Ran:
        """`rackwright drift WORD FILE ...`."""
        return self.cli("drift", arguments[0], str(self.file), *arguments[1:], expect=expect, stdin=stdin)

    def on(self, node: str, script: str, timeout: float = 120) -> str:
        """Run a shell script as root on a node, past ssh; LabError if it fails."""
        return self.rack.run(node, ["bash", "-ec", script], timeout)

    def inside(self, *command: str, stdin: bytes = b"") -> Ran:
        """Run a program of this machine inside the rack's network."""
        done = subprocess.run(
            network.inside(names.namespace(self.name), command),
            input=stdin,
            capture_output=True,
            timeout=120,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def send(self, node: str, folder: Path, *tar: str, to: str) -> None:
        """Unpack files of this machine on a node."""
        packed = subprocess.run(
            ["tar", "ch", "-C", str(folder), *tar], capture_output=True, check=True, timeout=60
        )
        command = self.rack.ssh_command(node, ("sudo", "sh", "-c", f"'mkdir -p {to} && tar x -C {to}'"))
        done = subprocess.run(command, input=packed.stdout, capture_output=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr

    def ship(self) -> None:
        """Give the head this program, as an administrator would with pip; the rack has no internet."""
        self.on("head1", "python3 -m venv --without-pip /opt/rackwright")
        packages = "/opt/rackwright/lib/python3.11/site-packages"
        without = ["--exclude=__pycache__", "--anchored", *(f"--exclude=./{name}" for name in _DEVELOPERS)]
        self.send("head1", Path(sysconfig.get_path("purelib")), *without, ".", to=packages)
        self.send("head1", self.code, "rackwright", to=packages)
