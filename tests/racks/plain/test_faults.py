"""Faults of a node in mid-apply: waited for where they pass, named where they do not, healed by a re-run.

A connection that went silent is given up after a minute: one such wait is part of `make test`, the others
of `make proof SUITE=faults`.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.racks.plain.installing import BROKEN, INDEX_LOCK, converges, installing, release
from tests.racks.program import Ran
from tests.racks.site import Site, operations
from tests.racks.snapshot import Snapshot

pytestmark = pytest.mark.lab

_LOST_SECONDS = 900
"""A silent connection is given up 60 s after an unanswered message."""


def _are_lost(ran: Ran, *nodes: str) -> None:
    assert ran.status == 4, ran
    assert all(f"{node}: lost" in ran.out for node in nodes), ran
    assert f"apply: {2 - len(nodes)} of 2 nodes are as declared; not: {','.join(nodes)}" in ran.out


def test_a_foreign_installation_is_waited_for(site: Site, baseline: dict[str, Snapshot]):
    """And sshd may be restarted meanwhile: connections that stand are not its main process's."""
    with installing(site, "worker1") as running:
        site.on("worker1", "systemctl restart ssh")
        time.sleep(3)
        assert running.process.poll() is None, running.wait()
        release(site, "worker1")
        ran = running.wait()
    assert ran.status == 0, ran
    assert "apply: 2 of 2 nodes are as declared" in ran.out
    converges(site, baseline)


def test_a_reader_of_the_index_is_waited_for(site: Site, baseline: dict[str, Snapshot]):
    site.on("worker1", "touch -d 2000-01-01 /var/lib/apt/rackwright-index-read")  # it is to be read again
    with installing(site, "worker1", locks=INDEX_LOCK) as running:
        time.sleep(12)  # longer than three attempts with pauses take
        assert running.process.poll() is None, running.wait()
        release(site, "worker1")
        ran = running.wait()
    assert ran.status == 0, ran
    converges(site, baseline)


def test_an_installation_that_does_not_end_is_named(site: Site, baseline: dict[str, Snapshot]):
    def impatient(declared: dict[str, Any]) -> None:
        declared["ssh"]["command_timeout_seconds"] = 30

    with site.declaring(impatient), installing(site, "worker1") as running:
        ran = running.wait()
    assert ran.status == 1, ran
    assert "worker1: failed after 1 changes: base: Install the base packages: " in ran.out
    assert "another process has held apt's lock for 10 s:" in ran.out
    assert "dpkg: error: dpkg frontend lock was locked by " in ran.out
    converges(site, baseline)


def test_the_sessions_of_sshd_are_ended_in_the_middle(site: Site, baseline: dict[str, Snapshot]):
    with installing(site, "worker1") as running:
        site.on("worker1", "pkill -9 -u rack sshd")
        _are_lost(running.wait(), "worker1")
    converges(site, baseline)


@pytest.mark.proof
def test_nodes_die_before_and_after_their_operations(site: Site, baseline: dict[str, Snapshot]):
    """Planned, agreed to, and gone; and done, and gone: what was done stays done."""
    site.on("worker1", BROKEN)
    site.on("head1", BROKEN)
    running = site.start("apply", str(site.file), "--yes")
    site.wait_for_event(running, event="plan")
    site.fault("worker1", "kill")
    site.wait_for_event(running, event="node", node="head1")
    site.fault("head1", "kill")
    ran = running.wait()
    for node in site.nodes:
        site.heal(node)
        site.on(node, "systemctl is-system-running --wait || :")
    if "worker1: lost" in ran.out:  # else it was quicker than its end
        _are_lost(ran, "worker1")
    else:
        assert ran.status == 0, ran
    left = site.cli("plan", str(site.file), "--json", expect=None).json()
    assert {node for node, _, _ in operations(left)} <= {"worker1"}
    converges(site, baseline)


@pytest.mark.smoke
def test_power_and_network_fail_in_the_middle(site: Site, baseline: dict[str, Snapshot]):
    """worker1 loses its power, head1 its network for a few seconds; and a second apply is refused."""
    with installing(site, "head1", "worker1") as running:
        site.fault("worker1", "kill")
        site.fault("head1", "cut")
        refused = site.apply(1)
        assert refused.err.startswith(f"error: Cluster {site.name} is locked by ")
        assert f"(pid {running.process.pid}, `rackwright apply {site.file} --yes`)" in refused.err
        site.heal("head1")
        release(site, "head1")
        ran = running.wait(_LOST_SECONDS)
        site.heal("worker1")
    _are_lost(ran, "worker1")
    assert {node for node, _, _ in operations(site.plan(2))} == {"worker1"}
    converges(site, baseline)


def _boot_of(site: Site, node: str) -> str:
    """When its first process began."""
    return site.on(node, "cat /proc/1/stat").split()[21]


@pytest.mark.proof
def test_a_node_reboots_and_another_s_network_goes_for_ever(site: Site, baseline: dict[str, Snapshot]):
    """Nothing reports a node behind a dead cable as gone: its silence is noticed, and no wait is longer."""
    boot = _boot_of(site, "head1")
    with installing(site, "head1", "worker1") as running:
        began = time.monotonic()
        site.fault("worker1", "cut")
        site.on("head1", "systemctl --no-block reboot")
        ran = running.wait(_LOST_SECONDS)
        print(f"given up after {time.monotonic() - began:.0f} s")
        site.heal("worker1")
        _are_lost(ran, "head1", "worker1")
        deadline = time.monotonic() + 1200
        while not site.rack.status().up or _boot_of(site, "head1") == boot:
            assert time.monotonic() < deadline, "it did not come back"
            time.sleep(0.3)
        site.on("head1", "systemctl is-system-running --wait || :")
    converges(site, baseline)


@contextmanager
def _hanging(site: Site, node: str) -> Iterator[None]:
    """It takes connections and runs commands, and what reads its state does not come back."""
    hang = "printf '#!/bin/sh\\nexec sleep 600\\n' >/usr/bin/python3; chmod 755 /usr/bin/python3"
    site.on(node, f"mv /usr/bin/python3 /usr/bin/python3.away; {hang}")
    try:
        yield
    finally:
        site.on(node, "pkill -x sleep || :; mv -f /usr/bin/python3.away /usr/bin/python3")


def test_a_node_that_hangs_is_not_waited_for(site: Site, baseline: dict[str, Snapshot]):
    with (
        site.declaring(lambda declared: declared["ssh"].update(command_timeout_seconds=10)),
        _hanging(site, "worker1"),
    ):
        ran = site.cli("plan", str(site.file), expect=4)
    assert "worker1: unreachable: worker1 did not report its state within 10 s." in ran.out
    assert ran.seconds < 400  # it would be 600
    converges(site, baseline)


@pytest.mark.parametrize("command", [("plan",), ("plan", "--full"), ("health",)], ids=" ".join)
def test_ctrl_c_does_not_wait_for_a_node_that_hangs(
    site: Site, baseline: dict[str, Snapshot], command: tuple[str, ...]
):
    with _hanging(site, "worker1"):
        running = site.start(command[0], str(site.file), *command[1:])
        deadline = time.monotonic() + 240
        while not site.on("worker1", "pgrep -x sleep || :").strip():
            assert time.monotonic() < deadline, "it did not ask the node"
            time.sleep(0.2)
        running.process.send_signal(signal.SIGINT)
        asked = time.monotonic()
        ran = running.wait(480)
        assert time.monotonic() - asked < 20  # health and why would wait longer
    assert (ran.status, ran.out, ran.err) == (130, "", "interrupted\n")
    converges(site, baseline)


def test_a_node_without_python_is_answered_and_reported(site: Site, baseline: dict[str, Snapshot]):
    note = "no python3 on the node: answered by plain executions"
    site.on("worker1", "mv /usr/bin/python3 /usr/bin/python3.away; rm /etc/timezone")
    try:
        drifted = site.cli("drift", str(site.file), expect=2).out
        assert f"\nworker1: {note}\n" in drifted
        assert drifted.count(note) == 1
        site.apply(0)
        (_, reported) = site.cli("drift", str(site.file), "--json", expect=0).json()["nodes"]
        assert (reported["state"], reported["note"]) == ("in sync", note)
        assert reported["evaluated"] > 0
    finally:
        site.on("worker1", "mv /usr/bin/python3.away /usr/bin/python3")
    converges(site, baseline)


def test_a_full_disk_is_called_that(site: Site, baseline: dict[str, Snapshot]):
    for node in site.nodes:
        site.on(node, "rm /etc/timezone")
    site.fault("worker1", "fill-disk")
    try:
        ran = site.apply(1)
    finally:
        site.heal("worker1")
    assert "worker1: failed: base: Write /etc/timezone: " in ran.out
    assert "No space left on device" in ran.out
    assert "apply: 1 of 2 nodes are as declared; not: worker1" in ran.out
    assert site.on("head1", "cat /etc/timezone") == "UTC\n"
    assert site.on("worker1", "ls -A /etc | grep '^[.]time' || true") == ""  # nothing half-written stays
    converges(site, baseline)


def test_what_apply_may_not_remove_is_an_error_of_its_node_alone(site: Site, baseline: dict[str, Snapshot]):
    site.on("worker1", "rm /etc/timezone; mkdir /etc/timezone")
    site.on("head1", "rm /etc/timezone")
    ran = site.apply(1)
    site.on("worker1", "rmdir /etc/timezone")
    assert "worker1: cannot be planned" in ran.out
    assert "/etc/timezone is a directory on the node; remove it by hand if it may go" in ran.out
    assert "apply: 1 of 2 nodes are as declared; not: worker1" in ran.out
    assert site.on("head1", "cat /etc/timezone") == "UTC\n"
    assert operations(site.plan(2)) == {("worker1", "base", "Write /etc/timezone")}
    converges(site, baseline)
