"""`rackwright verify` on racks of several sizes, when everything is as declared.

    python -m tests.bench.checks [--nodes 3,100] [--rounds 3]

Roles are cumulative: verify is measured with the first of them, then with the first two, and so on.
Large racks have only roles that install nothing: a hundred installations on one machine would take
longer than all the rest.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from functools import partial
from pathlib import Path

from rackwright.lab.from_cluster import load_rack_spec
from rackwright.lab.rack import Rack
from tests.bench.cases import executions
from tests.bench.measure import Measured, measure, middle
from tests.bench.racks import cluster_file

_TIMEOUT = 1500.0
_SMALL = {"tuning": "{}", "base": "{}", "access": "{}"}
_LARGE = {"tuning": "{}", "access": "{node_to_node: false}"}  # base checks names
_SMALL_NODES = 10


def checks(size: int, rounds: int, work: Path) -> None:
    """One rack: everything applied, then verify with more and more of it; a line for each."""
    file = work / "cluster.yaml"
    options = _SMALL if size <= _SMALL_NODES else _LARGE
    roles = list(options)
    file.write_text(cluster_file("checks", size, memory_mib=512, roles=options))
    rack = Rack(load_rack_spec(file), print)
    rack.up()
    try:
        program = [sys.executable, "-m", "rackwright"]
        subprocess.run([*program, "apply", str(file), "--yes"], check=True, timeout=_TIMEOUT)
        for count in range(1, len(roles) + 1):
            argv = [*program, "verify", str(file), "--json"]
            argv += [word for role in roles[:count] for word in ("--role", role)]
            subprocess.run(argv, timeout=_TIMEOUT, check=False, capture_output=True)  # learns what to ask
            runs = [_once(argv, rack, work) for _ in range(rounds)]
            counted = Counter(result["status"] for result in json.loads(_output(work))["results"])
            said = ", ".join(f"{number} {status}" for status, number in sorted(counted.items()))
            print(f"{size} nodes, {'+'.join(roles[:count])}: {said}: {middle(runs)}", flush=True)
    finally:
        rack.down()


def _once(argv: list[str], rack: Rack, work: Path) -> Measured:
    (work / "output").unlink(missing_ok=True)
    count = partial(executions, rack, "head1")
    return measure(argv, rack.name, count, env={}, cwd=work, timeout=_TIMEOUT, log=work / "output")


def _output(work: Path) -> str:
    text = (work / "output").read_text()
    return text[text.index("{") : text.rindex("}") + 1]


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", default="3,100")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    for size in given.nodes.split(","):
        with tempfile.TemporaryDirectory(prefix="rackwright-checks-") as folder:
            os.environ["XDG_STATE_HOME"] = str(Path(folder) / "state")
            checks(int(size), given.rounds, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
