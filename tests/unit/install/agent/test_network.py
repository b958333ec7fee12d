"""One interface, by its MAC address."""

from __future__ import annotations

import pytest

from rackwright.install.agent import network
from rackwright.install.agent.guard import Network

MAC = "02:00:00:00:00:01"


def _interface(folder, name, mac, *, device=True):
    (folder / name).mkdir(parents=True)
    (folder / name / "address").write_text(f"{mac}\n")
    if device:
        (folder / name / "device").mkdir()


def test_only_an_interface_with_a_device_is_taken(tmp_path):
    _interface(tmp_path, "lo", "00:00:00:00:00:00", device=False)
    _interface(tmp_path, "bond0", MAC, device=False)
    _interface(tmp_path, "eno2", MAC)

    assert network.physical(str(tmp_path)) == ["eno2"]
    assert network.find(MAC, str(tmp_path)) == "eno2"
    assert network.find("02:00:00:00:00:02", str(tmp_path)) is None


@pytest.mark.parametrize(
    ("declared", "expected"),
    [
        (Network(MAC, "10.0.0.2/24", None, None), ["ip addr replace 10.0.0.2/24 dev eno1"]),
        (
            Network(MAC, "10.0.0.2/24", "10.0.0.1", 12),
            [
                "ip link add link eno1 name vlan12 type vlan id 12",
                "ip link set vlan12 up",
                "ip addr replace 10.0.0.2/24 dev vlan12",
                "ip route replace default via 10.0.0.1 dev vlan12",
            ],
        ),
    ],
)
def test_a_static_address(declared, expected):
    assert [" ".join(argv) for argv in network.commands(declared, "eno1")] == expected


def test_dhcp_gives_an_address_and_a_route_and_nothing_else():
    (argv,) = network.commands(Network(MAC, None, None, None), "eno1")
    assert argv[:2] == ["busybox", "udhcpc"]
    assert "-n" in argv  # it gives up in the end
    assert "-q" not in argv  # and renews its lease until then
    for word in ("dns", "siaddr", "boot_file", "hostname", "resolv.conf"):
        assert word not in network.LEASE
