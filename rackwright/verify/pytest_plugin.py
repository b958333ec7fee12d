"""Tests with testinfra's `host` on the nodes of a cluster file, over rackwright's own connections.

    pytest --cluster cluster.yaml checks                               a site's checks, on every node
    pytest --cluster cluster.yaml --nodes worker[1-2] checks           on these
    pytest --cluster cluster.yaml --pyargs rackwright.verify.pytest_checks    the roles' checks

A test gets the fixtures `host` (root rights), `node` and `cluster` (what the file declares) and `on(name)` (the host
of another node). The marks `nodes("worker[1-2]")` and `node_roles("worker")` limit it to some nodes. Nodes are tested in
several processes (pytest-xdist; `-n 0` for one). With `--hosts` testinfra connects itself, and hosts are matched to
nodes by name, fully qualified name or management address.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
import testinfra.backend
from testinfra.host import Host

from rackwright.claims.check import CheckResult, TestinfraHost
from rackwright.clusterfile.load import load_cluster
from rackwright.errors import RackwrightError
from rackwright.model.cluster import Cluster, Node
from rackwright.model.selection import pick
from rackwright.model.types import NodeRole
from rackwright.ssh import Pool
from rackwright.verify.backend import Hosts
from rackwright.verify.judge import Patience, ask, out_of_scope
from rackwright.verify.pytest_backend import SCHEME, PytestBackend
from rackwright.verify.pytest_results import Results, Verdicts
from rackwright.verify.selection import PlannedCheck, select

_CLUSTER = pytest.StashKey[Cluster]()
_POOL = pytest.StashKey[Pool]()
_PROCESSES_PER_CORE = 2
"""A test mostly waits for its node."""


def prepare(config: pytest.Config) -> None:
    """Load the cluster file; a wrong one is a usage error that shows every mistake."""
    try:
        cluster = load_cluster(Path(config.getoption("--cluster")))
        nodes = pick(cluster, config.getoption("--nodes"))
    except RackwrightError as error:
        raise pytest.UsageError(str(error)) from error
    config.stash[_CLUSTER] = cluster
    if config.getoption("--hosts") is None:
        config.option.hosts = ",".join(f"{SCHEME}://{node.name}" for node in nodes)
        if not hasattr(config, "workerinput"):  # a process of pytest-xdist starts no further ones
            _spread(config, len(nodes))


def _spread(config: pytest.Config, nodes: int) -> None:
    """Several processes where there are several nodes, unless the command line sets their number."""
    asked = getattr(config.option, "numprocesses", 0)  # 0: pytest-xdist is off
    if asked is None and nodes > 1 and not config.getoption("usepdb"):
        config.option.numprocesses = min(nodes, _PROCESSES_PER_CORE * (os.cpu_count() or 1))
        config.option.dist = "load"


def pytest_configure(config: pytest.Config) -> None:
    """Register what tests may use, and open the connections' pool: each is made when first used."""
    config.addinivalue_line("markers", "nodes(nodeset): a claim about these nodes of the cluster file alone")
    config.addinivalue_line("markers", "node_roles(*roles): a claim about nodes that hold one of these roles")
    config.addinivalue_line(
        "markers", "in_service: needs the node in service, e.g. runs a job: left out while drained"
    )
    testinfra.backend.BACKENDS[SCHEME] = f"{PytestBackend.__module__}.{PytestBackend.__name__}"
    if _CLUSTER in config.stash:
        config.stash[_POOL] = PytestBackend.shell = Pool(config.stash[_CLUSTER])
    file = config.getoption("--rackwright-results", None)
    if file is not None:
        config.pluginmanager.register(Verdicts())
        if not hasattr(config, "workerinput"):  # of pytest-xdist
            config.pluginmanager.register(Results(Path(file), frozenset(config.stash[_CLUSTER].by_name)))


def pytest_unconfigure(config: pytest.Config) -> None:
    """Close the connections."""
    if _POOL in config.stash:
        config.stash[_POOL].close()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: Any, log: Any) -> Any:  # noqa: ANN401 - pytest-xdist's
    """All tests of a node in one process: each has its connection to it."""
    from rackwright.verify.pytest_by_node import ByNode  # pytest-xdist may be absent

    return ByNode(config, log) if config.option.dist == "load" else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out tests that are not claims about their node."""
    cluster = config.stash.get(_CLUSTER, None)
    if cluster is None:
        return
    kept = [item for item in items if _concerns(item, cluster)]
    if len(kept) < len(items):
        chosen = set(kept)
        config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
        items[:] = kept


def _concerns(item: pytest.Item, cluster: Cluster) -> bool:
    host = getattr(item, "callspec", None) and item.callspec.params.get("_testinfra_host")  # type: ignore[attr-defined]
    marks = [*item.iter_markers("nodes"), *item.iter_markers("node_roles")]
    if not host or not marks:
        return True
    node = node_of(cluster, host)
    try:
        for mark in marks:
            if mark.name == "nodes" and node not in pick(cluster, ",".join(mark.args)):
                return False
            if mark.name == "node_roles" and not node.holds(*map(NodeRole, mark.args)):
                return False
    except (RackwrightError, ValueError) as error:
        raise pytest.UsageError(f"{item.nodeid}: {error}") from error
    return True


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
        node = node_of(self.cluster, host)
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


def node_of(cluster: Cluster, host: Host) -> Node:
    """The node behind a testinfra host; UsageError where the cluster file declares none."""
    name = host.backend.get_hostname()
    for node in cluster.nodes:
        if name in (node.name, node.fqdn, str(cluster.management_address(node))):
            return node
    raise pytest.UsageError(f"--hosts: {name} is neither a node nor a management address of {cluster.path}")


@pytest.hookimpl(trylast=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test for each check of each role; the node comes first in its id, as testinfra has it for all tests."""
    if "ask_check" not in metafunc.fixturenames:
        return
    cluster = metafunc.config.stash[_CLUSTER]
    checks = select(cluster, limit=None, roles=None).checks
    names = list(dict.fromkeys((planned.role, planned.check.name) for planned in checks))
    metafunc.parametrize("ask_check", names, indirect=True, ids=[f"{role}: {check}" for role, check in names])


@pytest.fixture(scope="session")
def cluster(pytestconfig: pytest.Config) -> Cluster:
    """The cluster as declared."""
    return pytestconfig.stash[_CLUSTER]


@pytest.fixture
def node(cluster: Cluster, host: Host) -> Node:
    """The node behind `host`, as declared: `node.sku`, `node.addresses`, `node.options["slurm"]`."""
    return node_of(cluster, host)


@pytest.fixture(scope="session")
def on(pytestconfig: pytest.Config) -> Callable[[str], TestinfraHost]:
    """The testinfra host of another node by its name, for a test that crosses nodes."""
    return Hosts(pytestconfig.stash[_CLUSTER], pytestconfig.stash[_POOL])


@pytest.fixture
def ask_check(request: pytest.FixtureRequest, on: Hosts) -> Asker:
    """Asks one of the roles' checks; call it with testinfra's `host`."""
    cluster = request.config.stash[_CLUSTER]
    role, check = request.param
    return Asker(cluster, role, check, select(cluster, limit=None, roles=None).checks, on)
