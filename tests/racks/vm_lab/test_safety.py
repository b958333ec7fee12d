"""The machine that runs a rack of virtual machines is as it was once the rack is down, however `up` ended."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from rackwright.errors import LabError
from rackwright.lab import cgroup, links, names, node, state
from rackwright.lab.rack import Rack
from tests.racks.host_state import differences, host_state
from tests.racks.lab.traces import traces
from tests.racks.program import Running
from tests.racks.site import Site
from tests.racks.vm_lab.conftest import NODE, declared

pytestmark = [pytest.mark.lab, pytest.mark.proof]

MOMENTS: dict[str, Callable[[str], object]] = {
    "state": lambda rack: names.rack_state(rack).exists(),
    "namespace": lambda rack: links.exists(names.namespace(rack)),
    "disks": lambda rack: any(names.rack_disks(rack).glob("*")),
    "record": lambda rack: state.node_record(rack, NODE),
    "cable": lambda rack: links.has_link(names.namespace(rack), names.interface("v", NODE)),
    "qemu": lambda rack: node.running(rack, NODE),
    "boot": lambda rack: "Linux version" in _console(rack),
}
"""In the order in which `up` comes by."""


def _console(rack: str) -> str:
    log = names.node_state(rack, NODE) / "console.log"
    return log.read_text(errors="replace") if log.exists() else ""


@pytest.fixture
def site(tmp_path: Path) -> Site:
    content = declared()
    for network_, cidr in (("management", "10.74.0.0/24"), ("fabric", "10.73.0.0/24")):
        content["networks"][network_]["cidr"] = cidr
    content["networks"]["management"]["gateway"] = "10.74.0.1"
    content["mirrors"]["apt_proxy"] = "http://10.74.0.1:3142"
    content["nodes"][0]["addresses"] = {"management": "10.74.0.10", "fabric": "10.73.0.10"}
    return Site(tmp_path, "vmsafe", content)


def _wait_for(moment: Callable[[str], object], rack: str, up: Running) -> None:
    deadline = time.monotonic() + 1500  # the image may have to be built first
    while not moment(rack):
        assert up.process.poll() is None, f"up ended before the moment came: {up.wait()}"
        assert time.monotonic() < deadline
        time.sleep(0.005)


def test_up_killed_at_each_moment_then_up_and_down_leave_nothing(site: Site):
    before = host_state(site.name)
    assert traces(site.name) == []
    try:
        for name, moment in MOMENTS.items():
            up = site.start("lab", "up", str(site.file))
            _wait_for(moment, site.name, up)
            up.process.send_signal(signal.SIGKILL)
            up.wait(60)
            print(f"killed at: {name}")
            assert site.name in Rack.names()
        site.cli("lab", "up", str(site.file))
        assert site.rack.status().up
        assert site.on(NODE, "hostname") == f"{NODE}\n"
        assert (
            len(cgroup.pids(cgroup.group(site.name, NODE, "qemu"))) == 1
        )  # one qemu, however often up began
        during = differences(before, host_state(site.name))
        # What a rack is: its namespace, that namespace's mount, its group, its processes. No link, no route, no rule.
        assert {line.split(" + ")[0] for line in during} <= {"namespaces", "mounts", "processes", "groups"}, (
            during
        )
        assert any(line.startswith("processes + ") for line in during)
    finally:
        site.cli("lab", "down", str(site.file))
    assert traces(site.name) == []
    assert differences(before, host_state(site.name)) == []


def test_down_ends_a_machine_that_hangs_and_one_with_damaged_state(site: Site):
    before = host_state(site.name)
    up = site.start("lab", "up", str(site.file))
    try:
        _wait_for(MOMENTS["boot"], site.name, up)
        up.process.send_signal(signal.SIGKILL)
        up.wait(60)
        with pytest.raises(LabError, match=rf"node {NODE} does not|no answer|is not running|on {NODE}"):
            site.on(NODE, "true", 1)  # it has only begun to boot
        cgroup.freeze(True, site.name, NODE)
        (names.node_state(site.name, NODE) / "node.json").write_text("{")
        (names.rack_state(site.name) / "rack.json").write_text("")
    finally:
        Rack.named(site.name).down()
    assert traces(site.name) == []
    assert differences(before, host_state(site.name)) == []
