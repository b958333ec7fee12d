"""The roles' checks under plain pytest and pytest-testinfra.

    pytest -p rackwright.verify.pytest_plugin --cluster inventory/lab.yaml \\
        --hosts=ssh://ops@10.77.0.11,ssh://ops@10.77.0.12 --sudo --pyargs rackwright.verify.pytest_checks

Hosts are matched to nodes by name, fully qualified name or management address. `rackwright verify`
runs the same checks faster and knows UNKNOWN; here FAIL and UNKNOWN both fail the test (the
message names which), WARN is a warning, OUT OF SCOPE a skip. Checks that look at other nodes reach
those over rackwright's own connections.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
from testinfra.host import Host

from rackwright.claims.check import CheckResult, TestinfraHost
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster, Node
from rackwright.ssh import Pool
from rackwright.verify.backend import Hosts
from rackwright.verify.judge import Patience, ask, out_of_scope
from rackwright.verify.selection import PlannedCheck, select

_CLUSTER = pytest.StashKey[Cluster]()


@dataclass
class Asker:
    """Asks one check of the nodes pytest has hosts for."""

    cluster: Cluster
    role: str
    check: str
    checks: tuple[PlannedCheck, ...]
    others: Hosts

    def __call__(self, host: Host) -> CheckResult:
        """The result on a testinfra host; skips when the check is not asked of that node."""
        node = _node_of(self.cluster, host)
        wanted = (self.role, self.check, node)
        for planned in self.checks:
            if (planned.role, planned.check.name, planned.node) == wanted:
                hosts = partial(self._host, node.name, cast(TestinfraHost, host))
                patience = Patience(time.monotonic(), threading.Event())
                return out_of_scope(planned) or ask(planned, self.cluster, hosts, patience)
        pytest.skip(f"{self.role}: not a claim about {node.name}")

    def _host(self, here: str, host: TestinfraHost, name: str) -> TestinfraHost:
        return cast(TestinfraHost, _Own255(host)) if name == here else self.others(name)


class _Own255:
    """testinfra's ssh backend takes a command's exit status 255 for a lost connection; ssh itself ends so."""

    def __init__(self, host: TestinfraHost) -> None:
        self._host = host

    def run(self, command: str, *args: str) -> Any:  # noqa: ANN401 - testinfra's CommandResult
        line = self._host.backend.quote(command, *args)
        return self._host.run("sh -c %s; status=$?; [ $status -ne 255 ] || status=254; exit $status", line)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - testinfra's modules
        return getattr(self._host, name)


def _node_of(cluster: Cluster, host: Host) -> Node:
    name = host.backend.get_hostname()
    for node in cluster.nodes:
        if name in (node.name, node.fqdn, str(cluster.management_address(node))):
            return node
    raise pytest.UsageError(f"--hosts: {name} is neither a node nor a management address of {cluster.path}")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --cluster."""
    parser.getgroup("rackwright").addoption(
        "--cluster", type=Path, metavar="FILE", help="cluster file whose checks to ask"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Load the cluster file; a wrong one is a usage error that shows every problem."""
    path: Path | None = config.getoption("--cluster")
    if path is None:
        return
    from rackwright.clusterfile.load import load_cluster  # pytest loads this plugin before coverage starts

    try:
        config.stash[_CLUSTER] = load_cluster(path)
    except RackwrightError as error:
        raise pytest.UsageError(str(error)) from error


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each check of each role."""
    if "ask_check" not in metafunc.fixturenames:
        return
    cluster = metafunc.config.stash.get(_CLUSTER, None)
    if cluster is None:
        raise pytest.UsageError("rackwright's checks need --cluster FILE")
    checks = select(cluster, limit=None, roles=None).checks
    names = list(dict.fromkeys((planned.role, planned.check.name) for planned in checks))
    metafunc.parametrize("ask_check", names, indirect=True, ids=[f"{role}: {check}" for role, check in names])


@pytest.fixture(scope="session")
def _others(pytestconfig: pytest.Config) -> Iterator[Hosts]:
    cluster = pytestconfig.stash[_CLUSTER]
    with Pool(cluster) as pool:
        yield Hosts(cluster, pool)


@pytest.fixture
def ask_check(request: pytest.FixtureRequest, _others: Hosts) -> Asker:
    """Asks one of the checks; call it with testinfra's `host`."""
    cluster = request.config.stash[_CLUSTER]
    role, check = request.param
    return Asker(cluster, role, check, select(cluster, limit=None, roles=None).checks, _others)
