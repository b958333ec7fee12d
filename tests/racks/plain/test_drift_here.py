"""Push mode from the machine rackwright runs on: the head, as an administrator's machine."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator

import pytest

from tests.racks.plain.drift_check import HEAD, ship
from tests.racks.site import Site

pytestmark = [
    pytest.mark.lab,
    pytest.mark.skipif(  # never in CI: there it fails
        sys.version_info[:2] != (3, 11) and "CI" not in os.environ,
        reason="the head runs this Python's packages",
    ),
]
_FOLDER = "/root/admin"


@pytest.fixture
def admin(site: Site) -> Iterator[Callable[..., str]]:
    """Runs rackwright on the head, as root, with the cluster file there."""
    ship(site)
    site.send("head1", site.folder, "cluster.yaml", ".lab", to=_FOLDER)

    def run(*arguments: str) -> str:
        return site.on("head1", f"cd {_FOLDER}; {HEAD} -m rackwright drift {' '.join(arguments)} 2>&1", 900)

    yield run
    site.on(
        "head1", f"rm -rf /opt/rackwright {_FOLDER} /root/.local/state/rackwright /root/.config/rackwright"
    )


def test_install_check_and_uninstall_on_this_machine(site: Site, admin: Callable[..., str]):
    unit = f"rackwright-drift-{site.name}"
    first = admin("install", "cluster.yaml", "--every", "30m", "--yes")
    assert f"here: Write /etc/systemd/system/{unit}.service" in first
    second = admin("install", "cluster.yaml", "--every", "30m", "--yes")
    assert second.strip().splitlines()[-1] == "plan: nothing to change on 2 of 2 nodes"
    assert "here:" not in second
    running = site.on("head1", f"systemctl is-active {unit}.timer; systemctl is-enabled {unit}.timer")
    assert running.split() == ["active", "enabled"]
    site.on("worker1", "chmod 600 /etc/hosts")
    site.on("head1", f"systemctl start {unit}.service")
    site.on("worker1", "chmod 644 /etc/hosts")
    state = json.loads(site.on("head1", f"cat /var/lib/rackwright-drift/{site.name}/state.json"))["nodes"]
    assert {name: one["state"] for name, one in state.items()} == {"head1": "in sync", "worker1": "drifted"}
    said = site.on("head1", f"systemd-analyze security --no-pager {unit}.service")
    assert float(said.rpartition(f"{unit}.service: ")[2].split()[0].rpartition(" ")[2]) < 3.0
    admin("uninstall", "cluster.yaml", "--yes")
    left = site.on(
        "head1",
        "ls -d /etc/rackwright-drift /var/lib/rackwright-drift /var/lib/prometheus /usr/local/sbin/rackwright* "
        "/etc/systemd/system/rackwright* /var/lib/systemd/timers/*rackwright* 2>/dev/null || :; "
        "systemctl list-units --all --no-legend 'rackwright*'; getent passwd rackwright-drift || :",
    )
    assert left.strip() == ""
