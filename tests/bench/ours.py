"""One no-change run of the benchmark's job by rackwright: `ours.py CLUSTERFILE digest|full|apply|prepare`."""

from __future__ import annotations

import sys
from pathlib import Path

from rackwright.clusterfile.load import load_cluster
from rackwright.engine.run import apply, plan

_JOBS = Path(__file__).resolve().parent / "job"
JOB = _JOBS / "rackwright_job.py"


def main() -> int:
    """Exit status 0 if every node is in sync."""
    cluster = load_cluster(Path(sys.argv[1]))
    if sys.argv[2] in ("apply", "prepare"):
        result = apply(cluster, deploy=JOB if sys.argv[2] == "apply" else _JOBS / "peers_need.py").result
        return int(result.exit_code) if result is not None else 0
    result_of_plan = plan(cluster, deploy=JOB, full=sys.argv[2] == "full")
    slow = [name for name, node in result_of_plan.nodes.items() if node.executions != 1]
    if slow:
        print(f"more than one execution on {slow}")
    return int(result_of_plan.exit_code)


if __name__ == "__main__":
    sys.exit(main())
