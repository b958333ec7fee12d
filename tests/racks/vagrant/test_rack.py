"""The VMs of inventory/vagrant.yaml: accepted, halted, up again, verified, and reached by stock pyinfra."""

from __future__ import annotations

import json
import re
from collections.abc import Callable

import pytest

from tests.racks.host_state import State
from tests.racks.vagrant.conftest import Accepted
from tests.racks.vagrant.machine_state import machine_state

pytestmark = [pytest.mark.lab, pytest.mark.proof]

NODES = ("head1", "worker1", "worker2")


def test_a_new_rack_is_accepted(accepted: Accepted, record_property: Callable[[str, object], None]) -> None:
    record_property("vagrant up", f"{accepted.up.seconds:.0f} s")
    record_property("rackwright accept", f"{accepted.ran.seconds:.0f} s")
    assert "ACCEPTED" in accepted.ran.out


def test_a_second_plan_is_empty(accepted: Accepted) -> None:
    plan = accepted.rack.rackwright("plan", str(accepted.rack.file), "--json").json()
    assert [node["operations"] for node in plan["nodes"] if node["operations"]] == []


def test_stock_pyinfra_reaches_the_vms(accepted: Accepted) -> None:
    rack = accepted.rack
    # emulated nodes answer late; everything else is as a user has it
    patient = 'ssh_paramiko_connect_kwargs={"timeout": 120, "banner_timeout": 120, "auth_timeout": 120}'
    settings = (
        f"ssh_known_hosts_file={rack.lab / 'known_hosts'}",
        "ssh_strict_host_key_checking=yes",
        patient,
    )
    options = [word for setting in settings for word in ("--data", setting)]
    ran = rack.inside("pyinfra", "-v", *options, "@vagrant", "exec", "--", "hostname", timeout=900)
    for node in NODES:
        assert re.search(rf"^\[@vagrant/{node}\] +{node}$", ran.out + ran.err, re.MULTILINE)


def test_halted_and_up_again_it_is_still_verified(
    accepted: Accepted, record_property: Callable[[str, object], None]
) -> None:
    rack = accepted.rack
    identity = "cat /etc/machine-id /etc/ssh/ssh_host_ed25519_key.pub"
    before = rack.vagrant("ssh", "head1", "-c", identity, timeout=300).out
    rack.vagrant("halt", timeout=1200)
    assert rack.inside("virsh", "-q", "list", "--name", timeout=60).out.split() == []
    up = rack.vagrant("up")
    record_property("vagrant up after a halt", f"{up.seconds:.0f} s")
    # the seed is on its disk still and was not unpacked a second time
    assert rack.vagrant("ssh", "head1", "-c", identity, timeout=300).out == before
    verified = json.loads(rack.rackwright("verify", str(rack.file), "--json").out)
    statuses = {result["status"] for result in verified["results"]}
    assert statuses == {"PASS", "OUT OF SCOPE"}


def test_the_machine_is_as_before(accepted: Accepted, before: State) -> None:
    assert accepted.rack.file.exists()
    after = machine_state(accepted.rack.libvirt.processes())
    assert {name: after[name] for name in after if after[name] != before[name]} == {}
