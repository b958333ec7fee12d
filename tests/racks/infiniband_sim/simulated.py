"""A simulated InfiniBand fabric (ibsim), and nodes on it that run programs with umad2sim in front.

Every process is ended by its number, and no program is waited for longer than a limit.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.unit.roles.fake_host import Reply

DEVICE = "ibsim0"
"""As umad2sim names the only device of a node."""
SYSFS = f"/sys/class/infiniband/{DEVICE}/ports/1"
LIMIT_SECONDS = 20
_LIBRARIES = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/lib")


def preloaded() -> Path:
    """The library that takes programs to the simulator; the packages ibsim-utils and opensm have to be installed."""
    found = [Path(folder) / "umad2sim/libumad2sim.so" for folder in _LIBRARIES]
    return next(path for path in found if path.exists())


@dataclass
class Simulated:
    """A fabric that runs. `name`: of its sockets, so that several simulators do not meet."""

    folder: Path
    name: str
    simulator: subprocess.Popen[bytes]
    started: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def console(self, command: str) -> None:
        """A command of the simulator, e.g. `PerformanceSet "leaf1"[3] PortCounters.SymbolErrorCounter=9`."""
        assert self.simulator.stdin is not None
        self.simulator.stdin.write(f"{command}\n".encode())
        self.simulator.stdin.flush()

    def environment(self, node: str) -> dict[str, str]:
        return {
            **os.environ,
            "SIM_HOST": node,
            "IBSIM_SOCKNAME": self.name,
            "LD_PRELOAD": str(preloaded()),
        }

    def start(self, node: str, *command: str, **environment: str) -> subprocess.Popen[bytes]:
        """A program that keeps running on a node, with its log in the folder."""
        with (self.folder / f"{node}.log").open("ab") as log:
            process = subprocess.Popen(
                command,
                env={**self.environment(node), **environment},
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
        self.started.append(process)
        return process

    def host(self, node: str) -> SimulatedHost:
        """What a check asks."""
        return SimulatedHost(self, node)

    def log(self, node: str) -> str:
        return (self.folder / f"{node}.log").read_text(errors="replace")


@dataclass
class SimulatedHost:
    """A host of testinfra's kind on the simulated fabric."""

    fabric: Simulated
    node: str

    def run(self, command: str, *args: str) -> Reply:
        line = command % tuple(shlex.quote(arg) for arg in args) if args else command
        if f"cat {SYSFS}/pkeys/" in line:
            return Reply(0, self.pkeys(), "")
        if line.startswith(f"cat {SYSFS}/"):
            return Reply(0, self.sysfs(line.rpartition("/")[2]), "")
        return self.shell(line)

    def sysfs(self, file: str) -> str:
        """A file of the port: umad2sim shows sysfs to ibstat, not to cat."""
        printed = self.shell("ibstat").stdout
        if file == "lid":
            found = re.search(r"Base lid: (\d+)", printed)
            return f"{int(found[1]):#x}\n" if found else ""
        found = re.search(r"Port GUID: 0x([0-9a-f]{16})", printed)
        groups = textwrap.wrap(found[1], 4) if found else []
        return ":".join(("fe80:0000:0000:0000", *groups)) + "\n"

    def pkeys(self) -> str:
        """The table of the port, asked of the port itself."""
        rows = self.shell("smpquery -D pkeys 0 1").stdout.splitlines()
        return "\n".join(row.partition(":")[2] for row in rows if ":" in row and "0x" in row)

    def shell(self, line: str) -> Reply:
        """What a shell of the node does, within a limit."""
        try:
            done = subprocess.run(
                ["sh", "-c", line],
                env=self.fabric.environment(self.node),
                cwd=self.fabric.folder,
                capture_output=True,
                text=True,
                timeout=LIMIT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Reply(124, "", "it took too long")
        return Reply(done.returncode, done.stdout, done.stderr)


@contextmanager
def simulated(folder: Path, text: str) -> Iterator[Simulated]:
    """A simulator of the fabric in ibsim's own format; what was started on it ends with it."""
    (folder / "net").write_text(text)
    name = f"rackwright-{os.getpid()}-{folder.name}"
    environment = {**os.environ, "IBSIM_SOCKNAME": name}
    with (folder / "ibsim.log").open("wb") as log:
        simulator = subprocess.Popen(
            ["ibsim", "-s", "net"],
            env=environment,
            cwd=folder,
            stdin=subprocess.PIPE,  # it ends with its standard input
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    fabric = Simulated(folder, name, simulator)
    try:
        until(lambda: "MaxMcastCap" in (folder / "ibsim.log").read_text(errors="replace"))
        yield fabric
    finally:
        for process in (*reversed(fabric.started), simulator):
            process.kill()
            process.wait(LIMIT_SECONDS)
        if simulator.stdin is not None:
            simulator.stdin.close()


def until(true: Callable[[], bool], seconds: float = 30) -> None:
    """Wait for something to be so; AssertionError where it is not in time."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"not so after {seconds} s"
        time.sleep(0.05)
