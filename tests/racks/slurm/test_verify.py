"""Verify passes on what is right, fails on what is wrong, and says UNKNOWN of what it cannot see."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from xml.etree import ElementTree

import pytest

from rackwright.model.load import load_cluster
from rackwright.ssh import Pool
from tests.racks.site import Site
from tests.racks.slurm.conftest import NODES

pytestmark = pytest.mark.lab


def _results(rack: Site, expect: int, *options: str) -> dict[str, list[dict[str, str]]]:
    """Results by status."""
    report = rack.cli("verify", str(rack.file), "--json", *options, expect=expect).json()
    by_status: dict[str, list[dict[str, str]]] = {}
    for result in report["results"]:
        by_status.setdefault(result["status"], []).append(result)
    return by_status


def _named(results: list[dict[str, str]]) -> set[tuple[str, str, str]]:
    return {(result["node"], result["role"], result["check"]) for result in results}


def test_everything_declared_is_so(rack: Site):
    junit = rack.outputs / "verify.xml"
    found = _results(rack, 0, "--junit", str(junit))
    assert set(found) == {"PASS", "OUT OF SCOPE"}
    assert len(found["PASS"]) > 100
    assert {result["node"] for result in found["PASS"]} == set(NODES)
    assert all(result["evidence"] for results in found.values() for result in results)
    cases = ElementTree.parse(junit).getroot().iter("testcase")
    assert sum(1 for _ in cases) == sum(map(len, found.values()))


def test_what_was_asked_before_is_one_execution(rack: Site):
    def executions() -> int:
        log = "journalctl --sync; journalctl -q -o cat -t sudo --grep COMMAND= | wc -l"
        return int(rack.on("worker1", log))

    for _ in range(2):
        _results(rack, 0, "--role", "tuning")
    before = executions()
    found = _results(rack, 0, "--role", "tuning")
    assert executions() - before == 1
    assert len([result for result in found["PASS"] if result["node"] == "worker1"]) > 3


def test_a_stopped_service_fails_by_node_and_claim(rack: Site):
    rack.on("worker2", "systemctl stop munge")
    try:
        found = _results(rack, 3, "--role", "munge")
    finally:
        rack.on("worker2", "systemctl start munge")
    assert {result["node"] for result in found["FAIL"]} == {"worker2"}
    assert ("worker2", "munge", "munged runs") in _named(found["FAIL"])


def test_a_tool_that_cannot_be_run_is_unknown_and_no_pass(rack: Site):
    rack.on("head1", "chmod 000 /usr/bin/sacctmgr")
    try:
        found = _results(rack, 4, "--role", "slurm")
    finally:
        rack.on("head1", "chmod 755 /usr/bin/sacctmgr")
    assert "FAIL" not in found
    assert _named(found["UNKNOWN"]) == {("head1", "slurm", "accounts, users and QOS are as declared")}
    assert "sacctmgr" in found["UNKNOWN"][0]["evidence"]


def test_a_node_that_is_gone_is_unknown(rack: Site):
    rack.fault("worker1", "cut")
    try:
        found = _results(rack, 4, "--role", "base")
    finally:
        rack.heal("worker1")
    assert "FAIL" not in found
    assert {result["node"] for result in found["PASS"]} == {"head1", "worker2"}
    assert {node for node, _, _ in _named(found["UNKNOWN"])} >= {"worker1"}
    for result in found["UNKNOWN"]:  # of the others only what they were to say about worker1
        assert "worker1" in (result["node"], *result["evidence"].replace("(", " ").split()), result


def test_short_commands_side_by_side_lose_no_connection(rack: Site):
    """sshd ends a connection on which something still comes for a channel that both sides closed."""
    with Pool(load_cluster(rack.file)) as pool, ThreadPoolExecutor(6) as threads:
        asked = [threads.submit(pool.run, "worker1", "true", stdin="unread", timeout=60) for _ in range(300)]
        assert {one.result().exit_status for one in asked} == {0}
    assert rack.on("worker1", "journalctl -q --no-pager -g 'referred to nonexistent channel' || true") == ""
