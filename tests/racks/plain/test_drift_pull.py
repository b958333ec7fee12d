"""Pull mode: each node asks itself, on a timer, with no more rights than reading takes."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator

import pytest

from rackwright.errors import LabError
from tests.racks.plain.drift_check import NODES, DriftCheck, drift, traces
from tests.racks.site import Site

pytestmark = pytest.mark.lab

METRICS = "/var/lib/prometheus/node-exporter/rackwright_drift.prom"
UNIT = "rackwright-drift"


@pytest.fixture(scope="module")
def check_of_nodes(rack: Site) -> Iterator[DriftCheck]:
    """The check; its installation is begun, killed in the middle, and finished by `resume`."""

    def install() -> None:
        running = rack.start("drift", "install", str(rack.file), "--every", "1m", "--mode", "pull", "--yes")
        rack.wait_for_event(running, event="finish", outcome="changed")
        running.kill(workers=False)
        assert running.wait().status == -signal.SIGKILL, "it ended before it could be killed"
        run = rack.runs()[-1]
        assert run.state == "interrupted"
        ran = rack.cli("resume", run.run, "--yes")
        assert "2 of 2 nodes are as declared" in ran.out

    check = DriftCheck(rack, install, {node: traces(rack, node) for node in NODES})
    yield check
    if check.installed:
        check.uninstall()


@pytest.fixture(autouse=True)
def installed(site: Site, check_of_nodes: DriftCheck) -> DriftCheck:
    """It is installed, independent of earlier tests."""
    check_of_nodes.needed()
    return check_of_nodes


def metrics(site: Site, node: str) -> dict[str, float]:
    text = site.on(node, f"cat {METRICS}")
    found = re.findall(
        r'^rackwright_drift_(\w+)\{cluster="([^"]+)",node="([^"]+)"\} (\S+)$', text, re.MULTILINE
    )
    assert {(cluster, name) for _, cluster, name, _ in found} == {(site.name, node)}
    return {family: float(value) for family, _, _, value in found}


def by_role(site: Site, node: str) -> dict[str, int]:
    """`rackwright_drift_operations` by role."""
    found = re.findall(
        rf'^rackwright_drift_operations\{{cluster="{site.name}",node="{node}",role="(\w+)"\}} (\d+)$',
        site.on(node, f"cat {METRICS}"),
        re.MULTILINE,
    )
    return {role: int(count) for role, count in found}


def check(site: Site, node: str) -> dict[str, float]:
    """What a check finds that begins now; the timer's own may be at work and have begun before."""
    site.on(
        node,
        f"while [ $(systemctl show -P ActiveState {UNIT}.service) = activating ]; do sleep 0.1; done\n"
        f"systemctl reset-failed {UNIT}.service || :; systemctl start {UNIT}.service",
    )
    return metrics(site, node)


def test_a_second_install_changes_nothing(site: Site):
    for _ in range(2):  # the first keeps today's answers anew, where another test has restarted a service
        ran = drift(site, "install", "--every", "1m", "--mode", "pull", "--yes")
    assert ran.out.strip() == "plan: nothing to change on 2 of 2 nodes"


@pytest.mark.parametrize("node", NODES)
def test_its_exposure_is_small(site: Site, node: str):
    reported = site.on(node, f"systemd-analyze security --no-pager {UNIT}.service")
    exposure = float(reported.rpartition(f"{UNIT}.service: ")[2].split()[0])
    print(f"{UNIT}.service on {node}: exposure {exposure}")
    assert exposure < 3.0


def test_the_timer_alone_finds_drift(site: Site):
    before = check(site, "worker1")
    assert (before["drifted"], before["answers"], before["unknown"]) == (0, 0, 0)
    site.on("worker1", "chmod 600 /etc/hosts")
    deadline = time.monotonic() + 480
    while (now := metrics(site, "worker1"))["drifted"] == 0:
        assert time.monotonic() < deadline, "the timer did not run the check"
        time.sleep(3)
    assert now["answers"] == 1
    assert by_role(site, "worker1") == {"base": 1, "access": 0, "tuning": 0, "time": 0}
    assert now["last_check_timestamp_seconds"] > before["last_check_timestamp_seconds"]
    assert now["last_in_sync_timestamp_seconds"] < now["last_check_timestamp_seconds"]
    site.on(
        "worker1",
        f"until journalctl -o cat -u {UNIT}.service | grep -F 'path /etc/hosts'; do sleep 0.3; done",
    )
    assert check(site, "head1")["drifted"] == 0
    site.on("worker1", "chmod 644 /etc/hosts")
    assert check(site, "worker1")["drifted"] == 0


@pytest.mark.parametrize(
    ("seed", "undo"),
    [
        ("echo x >>/etc/hosts", "sed -i '$d' /etc/hosts"),
        ("chown ada /etc/chrony/chrony.conf", "chown root /etc/chrony/chrony.conf"),
        ("systemctl stop chrony", "systemctl start chrony"),
        ("systemctl disable chrony", "systemctl enable chrony"),
        ("touch -d '+1 hour' /etc/chrony/chrony.conf", "touch -d '-1 day' /etc/chrony/chrony.conf"),
        ("usermod -s /bin/sh ada", "usermod -s /bin/bash ada"),
        (
            r"sed -i '/^Package: chrony$/,/^$/s/^Version: /&9/' /var/lib/dpkg/status",
            r"sed -i '/^Package: chrony$/,/^$/s/^Version: 9/Version: /' /var/lib/dpkg/status",
        ),
        ("ln -sfn /dev/null /etc/hostname", "rm /etc/hostname; echo worker1 >/etc/hostname"),
    ],
)  # fmt: skip
def test_every_kind_of_drift_is_seen_and_seen_to_end(site: Site, seed: str, undo: str):
    site.on("worker1", seed)
    seen = check(site, "worker1")
    site.on("worker1", undo)
    assert seen["drifted"] == 1
    assert check(site, "worker1")["drifted"] == 0


def _rebooted(site: Site, boot: str) -> bool:
    try:
        return site.rack.status().up and site.on("worker1", "cat /proc/1/stat").split()[21] != boot
    except (LabError, OSError):
        return False  # it went down while it was asked


def test_a_restart_and_a_reboot_are_no_drift(site: Site):
    site.on("worker1", "systemctl restart chrony")
    assert check(site, "worker1")["drifted"] == 0
    boot = site.on("worker1", "cat /proc/1/stat").split()[21]
    site.on("worker1", "systemctl --no-block reboot")
    deadline = time.monotonic() + 720
    while not _rebooted(site, boot):
        assert time.monotonic() < deadline
        time.sleep(1)
    site.on("worker1", "systemctl is-system-running --wait || :")
    assert check(site, "worker1")["drifted"] == 0


def test_expectations_move_with_an_apply(site: Site):
    users = site.declared["roles"]["access"]["users"]
    with site.declaring(lambda _: users.append({"name": "carl", "uid": 3002})):
        ran = site.apply()
        assert "drift check: expected digests updated on head1,worker1" in ran.err
        assert check(site, "worker1")["drifted"] == 0
        site.on("worker1", "userdel carl")
        assert check(site, "worker1")["drifted"] == 1
        site.converge()
        assert check(site, "worker1")["drifted"] == 0
    for node in NODES:  # a user who is no longer declared stays; the other tests compare with what was before
        site.on(node, "userdel -r carl 2>/dev/null || :; rm -f /etc/ssh/authorized_keys.d/carl")
    site.converge()
    assert check(site, "head1")["drifted"] == 0


def test_it_can_write_nothing_but_its_own(site: Site):
    refused = site.on(
        "worker1",
        f"""
        cp /etc/systemd/system/{UNIT}.service /run/systemd/system/probe.service
        sed -i 's,^ExecStart=.*,ExecStart=sh -c "touch /etc/x /usr/x /var/x /tmp/x /root/x /home/x; id; kill -9 1",' \\
            /run/systemd/system/probe.service
        systemctl daemon-reload; systemctl start probe.service || :
        rm /run/systemd/system/probe.service; systemctl daemon-reload
        ls /etc/x /usr/x /var/x /tmp/x /root/x /home/x 2>/dev/null || :
        journalctl --sync; journalctl -o cat -u probe.service""",
    )
    assert refused.count("Read-only file system") == 6
    assert "\n/etc/x" not in refused


def test_uninstall_leaves_nothing(site: Site, installed: DriftCheck):
    installed.uninstall()
    for node in NODES:
        assert installed.left(node) == set()
    assert not site.file.with_suffix(".drift.json").exists()
    assert drift(site, "uninstall", "--yes").out.strip() == "plan: nothing to change on 2 of 2 nodes"
