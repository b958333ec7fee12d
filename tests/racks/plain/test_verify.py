"""Verify fails on what is wrong by node and claim, and reports UNKNOWN for what it cannot see."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from rackwright.ssh import Pool
from tests.racks.site import Site
from tests.racks.verified import named, results

pytestmark = pytest.mark.lab


def test_what_was_asked_before_is_one_execution(site: Site):
    def executions() -> int:
        log = "journalctl --sync; journalctl -q -o cat -t sudo --grep COMMAND= | wc -l"
        return int(site.on("worker1", log))

    for _ in range(2):
        results(site, 0, "--role", "tuning")
    before = executions()
    found = results(site, 0, "--role", "tuning")
    assert executions() - before == 1
    assert len([result for result in found["PASS"] if result["node"] == "worker1"]) > 3


def test_what_is_wrong_fails_by_node_and_claim(site: Site):
    """A stopped service is in tests/racks/slurm/test_stock_tools.py: here other claims would wait for it."""
    site.on("worker1", "hostname intruder")
    ran = site.cli("verify", str(site.file), "--role", "base", expect=3)
    site.on("worker1", "hostname worker1")
    failed = [line for line in ran.out.splitlines() if line.strip().startswith("FAIL")]
    assert len(failed) == 1
    assert "worker1" in failed[0]
    assert "the hostname is the declared short name" in failed[0]


def test_a_node_that_is_gone_is_unknown(site: Site):
    site.fault("worker1", "cut")
    try:
        found = results(site, 4, "--role", "base")
    finally:
        site.heal("worker1")
    assert "FAIL" not in found
    assert {result["node"] for result in found["PASS"]} == {"head1"}
    assert {node for node, _, _ in named(found["UNKNOWN"])} >= {"worker1"}
    for result in found["UNKNOWN"]:  # of the others only their reports about worker1
        assert "worker1" in (result["node"], *result["evidence"].replace("(", " ").split()), result


def test_short_commands_side_by_side_lose_no_connection(site: Site):
    """sshd ends a connection on which something still comes for a channel that both sides closed."""
    with Pool(site.cluster) as pool, ThreadPoolExecutor(6) as threads:
        asked = [threads.submit(pool.run, "worker1", "true", stdin="unread", timeout=60) for _ in range(300)]
        assert {one.result().exit_status for one in asked} == {0}
    assert site.on("worker1", "journalctl -q --no-pager -g 'referred to nonexistent channel' || true") == ""
