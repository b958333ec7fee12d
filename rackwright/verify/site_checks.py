"""The site's own checks, `checks/test_*.py` beside the cluster file, as results of a verify run.

They run under pytest in a separate process, with the plugin and the connections that `pytest --cluster` has.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from rackwright.boundary import last_line, printable
from rackwright.claims.check import CheckResult
from rackwright.model.cluster import Cluster, Node
from rackwright.model.ranges import fold
from rackwright.site_folder import SiteFolder, open_to_others, site_folder
from rackwright.status import Status
from rackwright.verify.judge import tidy

ROLE = "checks"
"""What stands for a role in reports and after `--role`."""
COLLECTING = "the site's checks can be collected"
"""Name of the result that has the reason why there are none."""
_LIMIT_SECONDS = 1800.0
_NO_TESTS = 5
_RAN = (0, 1, _NO_TESTS)
"""Exit statuses of pytest after which each collected test has a result."""


def site_checks(cluster: Cluster, nodes: Sequence[Node], drained: bool = False) -> list[CheckResult]:
    """Every result of the site's checks on these nodes; none where the site has no checks. Never raises for a test.

    `drained`: those with the mark `in_service` are left out.
    """
    site = site_folder(cluster.path)
    if not site.checks:
        return []
    for folder in (site.path, site.path / ROLE):
        if (why := open_to_others(folder, cluster.path)) is not None:
            return [_unknown(nodes, f"they are not run: {why}")]
    with tempfile.TemporaryDirectory(prefix="rackwright-checks-") as place:
        results = Path(place) / "results"
        try:
            done = _pytest(site, cluster, nodes, results, drained)
        except subprocess.TimeoutExpired:
            return [_unknown(nodes, f"they did not end within {_LIMIT_SECONDS:.0f} s")]
        found = list(_read(results, nodes))
    if done.returncode not in _RAN:
        found.append(_unknown(nodes, _why(done)))
    elif not found and not drained:
        found.append(_unknown(nodes, f"pytest finds no test in {ROLE}/"))
    return found


def _pytest(
    site: SiteFolder, cluster: Cluster, nodes: Sequence[Node], results: Path, drained: bool
) -> subprocess.CompletedProcess[str]:
    command = [
        *(sys.executable, "-m", "pytest", "-q", "--tb=short"),
        *("-p", "rackwright.pytest_plugin", "-p", "no:cacheprovider", "--import-mode=importlib"),
        *("--rootdir", str(site.path), "--cluster", str(cluster.path)),
        *("--nodes", fold(node.name for node in nodes), "--rackwright-results", str(results)),
        *(("-m", "not in_service") if drained else ()),
        str(site.path / ROLE),
    ]
    return subprocess.run(
        command, cwd=site.path, capture_output=True, text=True, timeout=_LIMIT_SECONDS, check=False
    )


def _read(results: Path, nodes: Sequence[Node]) -> Iterable[CheckResult]:
    if not results.exists():
        return
    for line in results.read_text().splitlines():
        entry = json.loads(line)
        node = entry["node"] or nodes[0].name  # a test that uses no `host` runs once
        yield CheckResult(
            ROLE,
            printable(entry["check"]),
            node,
            Status(entry["status"]),
            tidy(entry["evidence"]),
            entry["seconds"],
        )


def _why(done: subprocess.CompletedProcess[str]) -> str:
    """Why pytest could not run them, from its output: the lines of its errors, or the last one."""
    lines = (done.stdout + done.stderr).splitlines()
    errors = [line.removeprefix("E").strip() for line in lines if line.startswith(("E ", "ERROR"))]
    errors += [line for line in lines if line.startswith("INTERNALERROR>")][-1:]
    cause = "; ".join(dict.fromkeys(errors)) or last_line(done.stdout, done.stderr)
    return f"pytest exited {done.returncode}: {cause}"


def _unknown(nodes: Sequence[Node], evidence: str) -> CheckResult:
    return CheckResult(ROLE, COLLECTING, nodes[0].name, Status.UNKNOWN, tidy(evidence))
