"""Measuring a command from outside: wall, CPU of it and its children, memory, and what the nodes spent."""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import threading
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any


@dataclass
class Measured:
    """One run. CPU in seconds, memory in MiB; executions are counted from sudo's log on the first node."""

    wall: float
    control_cpu: float
    node_cpu: float
    executions: float
    memory: float
    exit_status: int

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def pace() -> float:
    """CPU seconds of a fixed piece of Python: what one of them was worth just now (best of three)."""
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        sum(number * number for number in range(2_000_000))
        best = min(best, time.process_time() - began)
    return best


def node_cpu(rack: str) -> float:
    """CPU seconds all nodes of a rack have used so far, from the cgroup v2 the lab puts them in."""
    for root in (Path("/sys/fs/cgroup/unified"), Path("/sys/fs/cgroup")):
        file = root / "rackwright" / rack / "cpu.stat"
        if file.is_file():
            return int(file.read_text().split()[1]) / 1e6
    raise FileNotFoundError(f"rack {rack} has no group below /sys/fs/cgroup")


def middle(runs: list[Measured]) -> dict[str, Any]:
    """The median of each figure, how many rounds it is of, and every exit status seen."""
    keys = ("wall", "control_cpu", "node_cpu", "executions", "memory")
    reported: dict[str, Any] = {
        key: round(statistics.median(getattr(run, key) for run in runs), 3) for key in keys
    }
    return {**reported, "rounds": len(runs), "exit_status": sorted({run.exit_status for run in runs})}


def measure(
    argv: list[str], rack: str, executions: Any, *, env: dict[str, str], cwd: Path, timeout: float, log: Path
) -> Measured:
    """Run a command once. `executions` is called before and after, and returns a count."""
    nodes_before, runs_before = node_cpu(rack), executions()
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    with log.open("ab") as out:
        process = subprocess.Popen(argv, stdout=out, stderr=out, env={**os.environ, **env}, cwd=cwd)
        peak = [0.0]
        watcher = threading.Thread(target=_watch, args=(process, peak), daemon=True)
        watcher.start()
        try:
            status = process.wait(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            status = 124
    wall = time.monotonic() - began
    watcher.join(timeout=2)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Measured(wall, cpu, node_cpu(rack) - nodes_before, executions() - runs_before, peak[0], status)


def _watch(process: subprocess.Popen[bytes], peak: list[float]) -> None:
    while process.poll() is None:
        total = sum(_memory(pid) for pid in _family(process.pid))
        peak[0] = max(peak[0], total)
        time.sleep(0.1)


def _family(pid: int) -> list[int]:
    found, queue = [], [pid]
    while queue:
        current = queue.pop()
        found.append(current)
        try:
            for task in Path(f"/proc/{current}/task").iterdir():
                queue += [int(child) for child in (task / "children").read_text().split()]
        except OSError:
            continue
    return found


def _memory(pid: int) -> float:
    """Proportional set size: shared pages are counted once for all processes."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) / 1024
    except OSError:
        pass
    return 0.0
