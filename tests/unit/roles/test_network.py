"""The network role: what is declared, the whole files of each backend, and the shell around a change."""

from __future__ import annotations

import subprocess
from ipaddress import IPv4Address

import pytest
from pydantic import ValidationError

from rackwright.facts import rollback
from rackwright.model.types import LinkKind, NodeRole, Platform
from rackwright.operations import guarded
from rackwright.osfamily.known import RELEASES, os_release
from rackwright.roles.network import shell, texts
from rackwright.roles.network.layout import layout
from rackwright.roles.network.options import NetworkOptions
from tests.factories import make_address, make_cluster, make_network, make_node
from tests.unit.roles.fake_host import planned
from tests.unit.roles.sites import expected

NETWORKS = {
    "management": make_network("management", "10.9.0.0/24", gateway=IPv4Address("10.9.0.1")),
    "storage": make_network("storage", "10.10.0.0/24", vlan=42, mtu=9000, gateway=IPv4Address("10.10.0.1")),
    "fabric": make_network("fabric", "10.11.0.0/16", kind=LinkKind.ROCE, rails=2, rail_prefix=24, mtu=9000),
}
DECLARED = {
    "interfaces": {
        "mgmt0": {"mac": "declared"},
        "stor0": {"pci": "0000:21:00.0"},
        "stor1": {"pci": "0000:21:00.1"},
        "rail0": {"pci": "0000:41:00.0", "rail": 0},
        "rail1": {"pci": "0000:61:00.0", "rail": 1},
    },
    "bonds": {"data": {"interfaces": ["stor0", "stor1"]}},
    "networks": {
        "management": {"on": "mgmt0"},
        "storage": {"on": "data"},
        "fabric": {"on": ["rail0", "rail1"]},
    },
    "routes": [{"to": "10.20.0.0/16", "via": "10.10.0.1", "network": "storage", "metric": 50}],
    "policy_routing": "rails",
}


def declared(**changes):
    return NetworkOptions.model_validate({**DECLARED, **changes})


def cluster(options=None, *, os="debian-13", platform=Platform.BARE_METAL, networks=NETWORKS):
    given = {"os": os_release(os), "platform": platform, "options": {"network": options or declared()}}
    head = make_node("head1", 10, NodeRole.HEAD, mac="b8:ce:f6:00:00:0a", **given)
    workers = [
        make_node(
            f"gpu{number}",
            10 + number,
            mac=f"b8:ce:f6:00:00:0{number}",
            addresses=(
                make_address("management", f"10.9.0.{10 + number}"),
                make_address("storage", f"10.10.0.{10 + number}"),
                make_address("fabric", f"10.11.0.{10 + number}"),
                make_address("fabric", f"10.11.1.{10 + number}", rail=1),
            ),
            **given,
        )
        for number in (1, 2)
    ]
    return make_cluster(head, *workers, networks=networks)


def gpu1(site):
    node = site.by_name["gpu1"]
    return node, layout(site, node, node.options["network"])


def whole(files):
    """All files as one text, to be compared with what was looked at once."""
    return "".join(
        f"==> {path}\n{text if text is not None else '(absent)'}\n" for path, text in sorted(files.items())
    )


@pytest.mark.parametrize("os", ["debian-13", "ubuntu-24.04", "rocky-9"])
def test_every_file_of_a_node_with_bond_vlan_and_rails(os):
    node, found = gpu1(cluster(os=os))
    assert whole(texts.files(node, found)) == expected(f"network-{os}.txt")


def test_the_modes_are_what_each_program_wants():
    modes = {os: texts.mode(gpu1(cluster(os=os))[0]) for os in ("debian-13", "ubuntu-24.04", "rocky-9")}
    assert modes == {"debian-13": "644", "ubuntu-24.04": "600", "rocky-9": "600"}


def test_what_the_node_has_no_address_on_is_a_port_without_any():
    site = cluster()
    head = site.by_name["head1"]
    rail0 = next(device for device in layout(site, head, declared()).devices if device.name == "rail0")
    assert (rail0.addresses, rail0.routes, rail0.mtu) == ((), (), 9000)


def test_an_access_port_carries_no_tag():
    untagged = declared(networks={**DECLARED["networks"], "storage": {"on": "data", "tagged": False}})
    _, found = gpu1(cluster(untagged))
    assert [device.name for device in found.virtual] == ["data"]
    assert str(found.virtual[0].addresses[0]) == "10.10.0.11/24"


def test_peers_are_the_gateway_the_head_and_other_nodes():
    _, found = gpu1(cluster())
    assert [(one.label, [str(peer) for peer in one.peers]) for one in found.carried] == [
        ("management", ["10.9.0.1", "10.9.0.10", "10.9.0.12"]),
        ("storage", ["10.10.0.1", "10.10.0.12"]),
        ("fabric rail 0", ["10.11.0.12"]),
        ("fabric rail 1", ["10.11.1.12"]),
    ]


def _problems(changes=None, networks=NETWORKS):
    options = declared(**(changes or {}))
    return {path: (text, hint) for path, text, hint in options.problems(cluster(options, networks=networks))}


def test_the_declaration_itself_has_no_mistake():
    assert _problems() == {}


@pytest.mark.parametrize(
    ("changes", "path", "says"),
    [
        (
            {"bonds": {"data": {"interfaces": ["stor0", "stor9"]}}},
            "bonds.data.interfaces[1]",
            "no interface stor9",
        ),
        (
            {
                "bonds": {
                    "data": {"interfaces": ["stor0", "stor1"]},
                    "more": {"interfaces": ["stor1", "rail0"]},
                }
            },
            "bonds.more.interfaces[0]",
            "already a port of data",
        ),
        (
            {"networks": {**DECLARED["networks"], "storage": {"on": "stor0"}}},
            "networks.storage.on",
            "stor0 is a port of data",
        ),
        (
            {"networks": {**DECLARED["networks"], "storage": {"on": "mgmt0", "tagged": False}}},
            "networks.storage.on",
            "both untagged on mgmt0",
        ),
        ({"networks": {"storage": {"on": "data"}}}, "networks", "the management network, is missing"),
        ({"networks": {}}, "networks", "no network uses them"),
        (
            {"networks": {**DECLARED["networks"], "fabric": {"on": "rail0"}}},
            "networks.fabric.on",
            "2 rails, but 1",
        ),
        (
            {"networks": {**DECLARED["networks"], "fabric": {"on": ["rail1", "rail0"]}}},
            "networks.fabric.on",
            "declared on rail",
        ),
        (
            {"networks": {**DECLARED["networks"], "stroage": {"on": "data"}}},
            "networks.stroage",
            "no network stroage",
        ),
        (
            {"networks": {**DECLARED["networks"], "storage": {"on": "dada"}}},
            "networks.storage.on",
            "no interface or bond dada",
        ),
        (
            {"interfaces": {**DECLARED["interfaces"], "rail0": {"pci": "0000:41:00.0", "mtu": 1500}}},
            "interfaces.rail0.mtu",
            "has an MTU of 9000, but rail0 only 1500",
        ),
        (
            {"interfaces": {**DECLARED["interfaces"], "rail1": {"pci": "0000:41:00.0"}}},
            "interfaces.rail1",
            "rail0 is at 0000:41:00.0 too",
        ),
        (
            {"interfaces": {**DECLARED["interfaces"], "mgmt0": {"mac": "b8:ce:f6:00:00:01"}}},
            "interfaces.mgmt0.mac",
            "Several nodes share this section",
        ),
        (
            {"routes": [{"to": "10.20.0.0/16", "via": "10.9.0.1", "network": "storage"}]},
            "routes[0].via",
            "10.9.0.1 is not in storage",
        ),
    ],
)
def test_mistakes_are_found_with_their_place(changes, path, says):
    found = _problems(changes)
    assert says in found[path][0]


def test_infiniband_is_out_of_this_role():
    networks = {
        **NETWORKS,
        "fabric": make_network("fabric", "10.11.0.0/16", kind=LinkKind.INFINIBAND, rails=2),
    }
    assert "InfiniBand" in _problems(networks=networks)["networks.fabric"][0]


@pytest.mark.parametrize(
    ("interface", "says"),
    [
        ({"eth1": {"pci": "0000:21:00.0"}}, "a name that the kernel or udev gives itself"),
        ({"enp3s0": {"pci": "0000:21:00.0"}}, "a name that the kernel or udev gives itself"),
        ({"averyverylongname": {"pci": "0000:21:00.0"}}, "at most 15 characters"),
        ({"mgmt0": {}}, "either by `mac` or by `pci`"),
        ({"mgmt0": {"mac": "declared", "pci": "0000:21:00.0"}}, "either by `mac` or by `pci`"),
        ({"mgmt0": {"pci": "21:00.0"}}, "with its domain"),
        ({"mgmt0": {"mac": "B8:CE:F6:00:00:01"}}, "in lower case"),
    ],
)
def test_bad_interfaces_are_refused(interface, says):
    with pytest.raises(ValidationError, match=says):
        NetworkOptions.model_validate({"interfaces": interface})


@pytest.mark.parametrize("os", RELEASES.values(), ids=str)
def test_one_guarded_change_is_planned_on_every_release(os):
    site = cluster(os=str(os))
    plan = planned(site, site.by_name["gpu1"])
    assert plan.error is None
    (operation,) = plan.operations
    assert all(change.disruptive for change in operation.changes)
    assert any(guarded.PROGRAM in command for command in operation.commands)


def test_a_container_is_left_as_the_lab_made_it():
    site = cluster(platform=Platform.CONTAINER)
    assert planned(site, site.by_name["gpu1"]).operations == ()


@pytest.mark.parametrize("os", ["debian-13", "ubuntu-24.04", "rocky-9"])
def test_all_shell_parses(os):
    site = cluster(os=os)
    node, found = gpu1(site)
    stale = (f"{texts.UNITS}/05-rackwright-old0.netdev", f"{texts.UNITS}/05-rackwright-spare.link")
    for script in (
        shell.activate(site, node, found, stale),
        shell.probe(site, found),
        shell.live(found),
        shell.check(node),
    ):
        subprocess.run(["dash", "-n"], input=script, text=True, check=True)
    assert "ip link delete old0" in shell.activate(site, node, found, stale)


_PING = """#!/bin/sh
for last; do :; done
size=small
case "$*" in *"-M do"*) size=large ;; esac
grep -qx "$size $last" "$(dirname "$0")/peers"
"""


@pytest.mark.parametrize(
    ("answers", "answered", "says"),
    [
        ({"10.9.0.1": "both", "10.10.0.12": "both", "10.11.0.12": "both", "10.11.1.12": "both"}, (), None),
        ({}, (), None),
        ({"10.9.0.10": "both"}, ("10.9.0.1",), None),
        ({"10.10.0.12": "small"}, (), "storage: 10.10.0.12 answers, but not to packets of 9000 bytes"),
        ({"10.9.0.1": "both"}, ("10.11.1.12",), "fabric rail 1: 10.11.1.12 answered before the change"),
    ],
)
def test_the_probe_tells_a_wrong_mtu_from_silence(tmp_path, monkeypatch, answers, answered, says):
    (tmp_path / "ping").write_text(_PING)
    (tmp_path / "ping").chmod(0o755)
    sizes = {"both": ("small", "large"), "small": ("small",)}
    lines = [f"{size} {peer}" for peer, kind in answers.items() for size in sizes[kind]]
    (tmp_path / "peers").write_text("\n".join([*lines, ""]))
    monkeypatch.setattr(rollback, "FOLDER", str(tmp_path))
    (tmp_path / shell.KEY).mkdir()
    (tmp_path / shell.KEY / "answered").write_text("".join(f"{peer}\n" for peer in answered))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    site = cluster()
    _, found = gpu1(site)
    done = subprocess.run(["sh", "-c", shell.probe(site, found)], capture_output=True, text=True, check=False)
    assert (done.returncode == 0) == (says is None)
    assert says is None or says in done.stdout
    assert done.stderr == ""
