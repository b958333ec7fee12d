"""The site's own checks, under pytest and in a verify run. Nodes are this machine; `worker2` cannot be reached."""

from __future__ import annotations

import subprocess
import sys

import pytest

from rackwright.status import Status
from rackwright.verify import verify
from rackwright.verify.pytest_backend import node_in
from rackwright.verify.site_checks import site_checks
from tests.unit.verify.conftest import LocalShell

CONFTEST = """
from rackwright.verify.pytest_backend import PytestBackend
from tests.unit.verify.conftest import LocalShell

def pytest_configure():
    PytestBackend.shell = LocalShell(dead=["worker2"])
"""
TESTS = """
import pytest
from rackwright.claims.check import Undetermined, Warned

def test_holds(host, record_property):
    record_property("evidence", "it is root")
    assert host.user().name == "root"

def test_fails(host, node):
    assert host.check_output("echo 1") == "2", f"not two on {node.name}"

def test_needs_a_missing_tool(host):
    assert host.check_output("no-such-tool-here") == ""

def test_cannot_know(host):
    raise Undetermined("no answer")

def test_is_not_for_containers(host):
    pytest.skip("a container has no clock")

def test_warns(host):
    raise Warned("nearly")

@pytest.mark.xfail(reason="known")
def test_is_known_to_fail(host):
    assert False

@pytest.mark.nodes("worker[1-2]")
def test_of_workers(host, node):
    assert host.check_output("echo yes") == "yes"

@pytest.mark.node_roles("head")
@pytest.mark.in_service
def test_of_heads(host, on):
    assert host.check_output("echo yes") == "yes"

@pytest.fixture
def broken():
    raise OSError("no fixture")

@pytest.mark.node_roles("head")
def test_with_a_broken_fixture(host, broken):
    pass

def test_without_a_node():
    assert True
"""


@pytest.fixture
def checked(site):
    (site.folder / "checks/test_site.py").unlink()
    (site.folder / "checks/conftest.py").write_text(CONFTEST)
    (site.folder / "checks/test_own.py").write_text(TESTS)
    return site


def found(site, **options):
    cluster = site.load().cluster
    return {
        (one.check.removeprefix("test_own.py::"), one.node): one
        for one in site_checks(cluster, cluster.nodes, **options)
    }


@pytest.mark.slow
def test_every_result(checked):
    results = found(checked)
    status = {name: one.status for (name, node), one in results.items() if node == "head1"}
    assert status == {
        "test_holds": Status.PASS,
        "test_fails": Status.FAIL,
        "test_needs_a_missing_tool": Status.UNKNOWN,
        "test_cannot_know": Status.UNKNOWN,
        "test_is_not_for_containers": Status.OUT_OF_SCOPE,
        "test_warns": Status.WARN,
        "test_is_known_to_fail": Status.WARN,
        "test_of_heads": Status.PASS,
        "test_with_a_broken_fixture": Status.UNKNOWN,
        "test_without_a_node": Status.PASS,
    }
    assert results["test_holds", "head1"].evidence == "it is root"
    assert results["test_fails", "worker1"].evidence.startswith("not two on worker1")
    assert results["test_is_not_for_containers", "head1"].evidence == "a container has no clock"
    assert results["test_of_workers", "worker1"].status is Status.PASS
    assert "no fixture" in results["test_with_a_broken_fixture", "head1"].evidence


@pytest.mark.slow
def test_a_node_that_cannot_be_reached_is_unknown(checked):
    results = found(checked)
    holds = results["test_holds", "worker2"]
    assert (holds.status, "no answer within 10 s" in holds.evidence) == (Status.UNKNOWN, True)
    assert results["test_holds", "worker1"].status is Status.PASS


@pytest.mark.slow
def test_a_drained_node_runs_no_check_that_needs_it_in_service(checked):
    assert ("test_of_heads", "head1") in found(checked)
    assert ("test_of_heads", "head1") not in found(checked, drained=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("import missing_module_here\n", "No module named 'missing_module_here'"),
        ("def test_x(host:\n", "SyntaxError"),
        ("def helper():\n    pass\n", "pytest finds no test in checks/"),
        ("import os\ndef test_x(host):\n    os._exit(3)\n", "the test did not run to its end"),
        ("import os\nos._exit(3)\n", "a file of tests ends the process that reads it"),
    ],
)
def test_checks_that_cannot_run_are_unknown(checked, text, evidence):
    (checked.folder / "checks/test_own.py").write_text(text)
    results = found(checked).values()
    assert {one.status for one in results} == {Status.UNKNOWN}
    assert any(evidence in one.evidence for one in results), results


@pytest.mark.slow
def test_a_file_that_ends_its_process_is_unknown_on_drained_nodes_too(checked):
    """Where every test may be left out, no result is not a mistake."""
    (checked.folder / "checks/test_own.py").write_text("import os\nos._exit(3)\n")
    assert {one.status for one in found(checked, drained=True).values()} == {Status.UNKNOWN}


@pytest.mark.slow
def test_pytests_own_failure_is_named(checked):
    (checked.folder / "checks/conftest.py").write_text(
        "def pytest_xdist_node_collection_finished():\n    raise OSError('disk full')\n"
    )
    results = found(checked)
    assert results["the site's checks can be collected", "head1"].evidence.endswith("OSError: disk full")
    assert {one.status for one in results.values()} == {Status.UNKNOWN}


def test_a_site_without_checks_has_no_result(checked):
    (checked.folder / "checks/test_own.py").unlink()
    assert found(checked) == {}


def test_checks_that_others_may_write_are_not_run(checked):
    (checked.folder / "checks").chmod(0o777)
    ((name, _),) = found(checked)
    assert name == "the site's checks can be collected"
    assert "every user may write to" in found(checked)[name, "head1"].evidence


@pytest.mark.slow
def test_they_are_part_of_verify(checked):
    cluster = checked.load().cluster
    report = verify(cluster, roles=frozenset({"checks", "motd"}), shell=LocalShell())
    assert {one.role for one in report.results} == {"checks", "motd"}
    assert report.status is Status.FAIL
    alone = verify(cluster, limit="worker1", roles=frozenset({"checks"}), shell=LocalShell())
    assert {(one.role, one.node) for one in alone.results} == {("checks", "worker1")}


def under_pytest(site, *arguments):
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "rackwright.pytest_plugin",
            "--cluster",
            "cluster.yaml",
            *arguments,
        ],
        cwd=site.folder,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.slow
def test_under_pytest_each_node_is_a_host(checked):
    status, out = under_pytest(checked, "checks", "-q", "-k", "test_holds", "--nodes", "head1,worker1", "-rA")
    assert status == 0, out
    assert "2 passed" in out
    assert "test_holds[rackwright://worker1]" in out
    assert "bringing up nodes" in out  # pytest-xdist's word for its processes


@pytest.mark.slow
def test_mistakes_are_usage_errors(checked):
    status, out = under_pytest(checked, "checks", "--nodes", "worker9")
    assert (status, "worker9 is not in cluster lab" in out) == (4, True)
    checked.change("cluster.yaml", "  munge: {}", "  mungee: {}")
    status, out = under_pytest(checked, "checks")
    assert (status, "Role mungee does not exist." in out) == (4, True)


@pytest.mark.parametrize(
    ("test", "node"),
    [
        ("checks/test_x.py::test_a[rackwright://gpu-1]", "gpu-1"),
        ("checks/test_x.py::test_a[rackwright://gpu-1-more-[x]]", "gpu-1"),
        ("checks/test_x.py::test_a[rackwright://gpu-11]", "gpu-11"),
        ("checks/test_x.py::test_a[rackwright://gpu-2]", None),
        ("checks/test_x.py::test_a[gpu-1]", None),
        ("checks/test_x.py::test_a", None),
    ],
)
def test_the_node_in_a_tests_id(test, node):
    assert node_in(test, {"gpu", "gpu-1", "gpu-11"} if node else {"gpu-1"}) == node


FATAL = """
import os

def test_before(host):
    pass

def test_fatal(host, node):
    if node.name in {nodes}:
        os._exit(3)

def test_after(host):
    pass

def test_without_a_node():
    pass
"""


@pytest.mark.slow
@pytest.mark.parametrize("fatal", [("head1",), ("worker1", "worker2"), ("head1", "worker1", "worker2")])
def test_a_check_that_ends_its_process_stops_no_other_check(checked, fatal):
    (checked.folder / "checks/test_own.py").write_text(FATAL.replace("{nodes}", repr(fatal)))
    results = found(checked)
    nodes = ("head1", "worker1", "worker2")
    assert set(results) == {
        *((test, node) for test in ("test_before", "test_fatal", "test_after") for node in nodes),
        ("test_without_a_node", "head1"),
    }
    unknown = {key for key, one in results.items() if one.status is not Status.PASS}
    assert unknown == {("test_fatal", node) for node in fatal}
    for node in fatal:
        one = results["test_fatal", node]
        assert (one.status, one.evidence) == (Status.UNKNOWN, "the test did not run to its end")


@pytest.mark.slow
def test_where_too_many_processes_end_the_tests_that_never_began_have_that_cause(checked, monkeypatch):
    """pytest-xdist stops replacing them: a check that ends each would start one for every node of a thousand."""
    monkeypatch.setenv("PYTEST_ADDOPTS", "--max-worker-restart=0")
    nodes = ("head1", "worker1", "worker2")
    (checked.folder / "checks/test_own.py").write_text(FATAL.replace("{nodes}", repr(nodes)))
    results = found(checked)
    for node in nodes:
        assert results["test_before", node].status is Status.PASS
        fatal, after = results["test_fatal", node], results["test_after", node]
        assert (fatal.status, fatal.evidence) == (Status.UNKNOWN, "the test did not run to its end")
        assert after.status is Status.UNKNOWN
        assert after.evidence == "the test was not run: 3 processes died during tests"


LATE = """
import time
from xdist.dsession import DSession
from xdist.workermanage import Marker, WorkerController

completed, received = DSession.worker_runtest_protocol_complete, WorkerController.process_from_remote

def completed_later(*known, **more):
    time.sleep(0.1)  # meanwhile the process begins the fatal test
    completed(*known, **more)

def received_later(self, event):
    if event is Marker.END:
        time.sleep(0.5)
    received(self, event)

DSession.worker_runtest_protocol_complete = completed_later
WorkerController.process_from_remote = received_later
"""


@pytest.mark.slow
def test_a_process_whose_death_is_not_noticed_yet_is_handed_no_tests_for_good(checked):
    nodes = ("head1", "worker1", "worker2")
    (checked.folder / "checks/conftest.py").write_text(CONFTEST + LATE)
    (checked.folder / "checks/test_own.py").write_text(FATAL.replace("{nodes}", repr(nodes)))
    results = found(checked)
    unknown = {key for key, one in results.items() if one.status is not Status.PASS}
    assert unknown == {("test_fatal", node) for node in nodes}
    assert len(results) == 10
