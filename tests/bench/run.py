"""`make bench`: the same forty no-change operations by rackwright, pyinfra and Ansible on lab racks.

    python -m tests.bench.run [--sizes 1,10,50,100] [--rounds 3] [--endpoints 1000] [--only rackwright]
                              [--out docs/benchmarks.json]

Contestants are interleaved, round by round, so that a drifting machine hurts all alike. CPU times
too depend on what else the machine does: a loop of known work is timed before and after each size.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from rackwright import __version__
from rackwright.clusterfile.load import load_cluster
from rackwright.lab.from_cluster import load_rack_spec
from rackwright.lab.rack import Rack
from tests.bench.cases import HERE, Case, cases, executions, peers_python
from tests.bench.measure import Measured, measure, middle, pace
from tests.bench.racks import cluster_file
from tests.bench.scale import scale

ROOT = Path(__file__).resolve().parent.parent.parent
_TIMEOUT = 600.0


def bench(size: int, rounds: int, work: Path, peers: Path, only: str) -> dict[str, Any]:
    """One rack, every contestant, several rounds."""
    file = work / "bench.yaml"
    file.write_text(cluster_file("bench", size, memory_mib=1024, roles={}))
    rack = Rack(load_rack_spec(file), print)
    rack.up()
    try:
        cluster = load_cluster(file)
        contestants = [
            case
            for case in cases(cluster, work, peers)
            if size <= case.nodes_max and case.name.startswith(only)
        ]
        count = partial(executions, rack, cluster.nodes[-1].name)
        run = partial(_once, rack=cluster.name, count=count, work=work)
        ours = [sys.executable, str(HERE / "ours.py"), str(file)]
        if any(case.name.startswith("ansible") for case in contestants):
            run(Case("prepare", [*ours, "prepare"]))
        for mode in ("apply", "full", "full"):  # what they learn here is part of every later run
            run(Case(mode, [*ours, mode]))
        results: dict[str, list[Measured]] = {case.name: [] for case in contestants}
        for number in range(rounds):
            for case in contestants:
                measured = run(case)
                results[case.name].append(measured)
                print(f"{size:4} nodes, round {number + 1}: {case.name}: {measured.to_json()}", flush=True)
        return {name: middle(runs) for name, runs in results.items()}
    finally:
        rack.down()


def _once(case: Case, *, rack: str, count: Any, work: Path) -> Measured:
    env = {"XDG_STATE_HOME": str(work / "state"), "PYTHONPATH": str(ROOT), **case.env}
    return measure(
        case.argv,
        rack,
        count,
        env=env,
        cwd=work,
        timeout=_TIMEOUT,
        log=Path(tempfile.gettempdir()) / f"rackwright-bench-{case.name.split()[0]}.log",
    )


def table(document: dict[str, Any]) -> str:
    """The results as Markdown, per-node figures beside the totals."""
    lines = [
        (
            f"Measured {document['date']} on {document['machine']}, rackwright {document['rackwright']}; "
            f"medians of {document['rounds']} interleaved rounds. A loop of known work took "
            f"{min(document['pace'])} to {max(document['pace'])} CPU seconds between the sizes, load "
            f"average {min(document['load'])} to {max(document['load'])}."
        ),
        "",
        (
            "| nodes | run | wall s | control CPU s | per node ms | node CPU s per node | executions per node "
            "| memory MiB | control CPU, times rackwright's digest |"
        ),
        "|---|---|---|---|---|---|---|---|---|",
    ]
    played = {
        f"{count} endpoints": {"rackwright drift (digest)": figures}
        for count, figures in document.get("endpoints", {}).items()
    }
    for label, runs in {**document["sizes"], **played}.items():
        size = int(label.split()[0])
        base = runs.get("rackwright drift (digest)", {}).get("control_cpu", float("nan"))
        for name, figures in runs.items():
            note = "" if figures["exit_status"] == [0] else f" (exit {figures['exit_status']})"
            lines.append(
                f"| {label} | {name}{note} | {figures['wall']:.2f} | {figures['control_cpu']:.2f} "
                f"| {figures['control_cpu'] / size * 1000:.1f} | {figures['node_cpu'] / size:.3f} "
                f"| {figures['executions']:.0f} | {figures['memory']:.0f} | {figures['control_cpu'] / base:.1f} |"
            )
    return "\n".join(lines) + "\n"


def main() -> int:
    """Run, print, store."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="1,10,50,100")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--endpoints", type=int, default=1000, help="0: without the scale mode")
    parser.add_argument("--only", default="", help="contestants whose name begins so")
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "benchmarks.json")
    given = parser.parse_args()
    folder_of_peers = ROOT / ".cache" / "bench-peers"
    ours_only = given.only.startswith("rackwright")
    peers = folder_of_peers / "bin" / "python" if ours_only else peers_python(folder_of_peers)
    document: dict[str, Any] = {
        "date": f"{datetime.now(UTC):%Y-%m-%d}",
        "machine": f"{os.cpu_count()} shared cores, {platform.machine()}, Linux {platform.release()}",
        "rackwright": __version__,
        "rounds": given.rounds,
        "pace": [],
        "load": [],
        "sizes": {},
    }
    for size in [*filter(None, given.sizes.split(",")), "endpoints"]:
        document["pace"].append(round(pace(), 3))
        document["load"].append(round(os.getloadavg()[0], 1))
        with tempfile.TemporaryDirectory(prefix="rackwright-bench-") as folder:
            work = Path(folder)
            if size != "endpoints":
                document["sizes"][size] = bench(int(size), given.rounds, work, peers, given.only)
            elif given.endpoints:
                os.environ["XDG_STATE_HOME"] = str(work / "state")
                environment = {**os.environ, "PYTHONPATH": str(ROOT)}
                runs = scale(given.endpoints, given.rounds, work, environment)
                document["endpoints"] = {str(given.endpoints): middle([Measured(**run) for run in runs])}
        given.out.write_text(json.dumps(document, indent=2) + "\n")
    print(table(document))
    return 0


if __name__ == "__main__":
    sys.exit(main())
