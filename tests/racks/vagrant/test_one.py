"""One VM by Vagrant: up, ssh with the host key known beforehand, destroyed without a trace."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.racks.host_state import State
from tests.racks.vagrant.machine_state import machine_state
from tests.racks.vagrant.rack import VagrantRack

pytestmark = [pytest.mark.lab, pytest.mark.proof, pytest.mark.smoke]


def test_up_ssh_destroy(one: VagrantRack, record_property: Callable[[str, object], None]) -> None:
    up = one.vagrant("up")
    record_property("vagrant up of one VM", f"{up.seconds:.0f} s")
    assert (
        one.vagrant("ssh", "head1", "-c", "systemctl is-system-running", timeout=300).out.strip() == "running"
    )
    # the seed gave it its name, its addresses and the port whose key is in known_hosts
    facts = one.vagrant(
        "ssh", "head1", "-c", "hostname; cat /sys/class/net/*/address; sudo id -u", timeout=300
    )
    assert facts.out.split()[0] == "head1"
    assert facts.out.split()[-1] == "0"
    networks = one.inside("virsh", "-q", "net-list", "--all", "--name", timeout=60).out.split()
    assert networks == ["rackwright-one-management", "rackwright-one-storage"]

    # with another key in known_hosts, neither OpenSSH nor Vagrant's own client logs in
    known_hosts = one.lab / "known_hosts"
    right = known_hosts.read_text()
    make = "ssh-keygen -q -t ed25519 -N '' -f other && cut -d' ' -f1,2 other.pub"
    known_hosts.write_text(f"10.80.0.10 {one.inside('sh', '-ec', make, timeout=60).out}")
    one.vagrant("ssh", "head1", "-c", "true", timeout=300, expect=255)
    refused = one.vagrant("upload", str(one.file), "/tmp/uploaded", "head1", timeout=300, expect=1)
    assert 'does not match for "10.80.0.10"' in refused.err
    known_hosts.write_text(right)
    one.vagrant("upload", str(one.file), "/tmp/uploaded", "head1", timeout=300)

    one.vagrant("destroy", "--force", timeout=600)
    assert one.inside("virsh", "-q", "list", "--all", "--name", timeout=60).out.split() == []
    assert one.inside("virsh", "-q", "net-list", "--all", "--name", timeout=60).out.split() == []
    volumes = one.inside("virsh", "-q", "vol-list", "default", timeout=60).out.split()
    assert [name for name in volumes if name.startswith("rackwright-one-head1")] == []


def test_the_machine_is_as_before(one: VagrantRack, before: State) -> None:
    assert one.file.exists()
    after = machine_state(one.libvirt.processes())
    assert {name: after[name] for name in after if after[name] != before[name]} == {}
