"""The comparison of the machine before and after can fail: in namespaces where such a change is made."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.racks.vagrant.rack import REPO

pytestmark = [pytest.mark.lab, pytest.mark.proof, pytest.mark.smoke, pytest.mark.usefixtures("programs")]

_ASK = "import json; from tests.racks.vagrant.machine_state import machine_state; print(json.dumps(machine_state()))"


@pytest.mark.parametrize(
    ("change", "seen"),
    [
        ("true", set()),
        ("ip link add virbr9 type bridge", {"links", "neighbours of bridges"}),
        ("ip link set lo up", {"links", "addresses", "routes"}),
        ("iptables -A FORWARD -j DROP", {"firewall"}),
        ("mount -t tmpfs tmpfs /mnt", {"mounts"}),
        ("mount -t tmpfs tmpfs /etc/libvirt; echo >/etc/libvirt/qemu.conf", {"mounts", "files of libvirt"}),
    ],
)
def test_a_change_is_seen(change: str, seen: set[str]) -> None:
    ask = f"{sys.executable} -c '{_ASK}'"
    done = subprocess.run(
        ["unshare", "--mount", "--net", "sh", "-ec", f"{ask}; {change}; {ask}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        cwd=REPO,
    )
    before, after = (json.loads(line) for line in done.stdout.splitlines())
    assert {name for name in after if after[name] != before[name]} == seen
