"""Two ports on heads and logins: what is declared, what is found, and what passes from one to the other."""

from __future__ import annotations

import json
import subprocess
from ipaddress import IPv4Address

import pytest

from rackwright.claims.check import Undetermined
from rackwright.data import Site
from rackwright.facts.settings import Answer
from rackwright.health.declare import expected_of
from rackwright.model.cluster import Node
from rackwright.model.types import NodeRole, Platform
from rackwright.osfamily.known import os_release
from rackwright.roles.access.deploy import sshd_conf
from rackwright.roles.access.options import AccessOptions
from rackwright.roles.base import forwarding
from rackwright.roles.base.options import BaseOptions
from rackwright.roles.base.ports import Port, Route, parse_addresses, parse_default_routes
from rackwright.roles.base.verify import CHECKS
from rackwright.roles.containerd.options import ContainerdOptions
from rackwright.roles.docker.options import DockerOptions
from rackwright.roles.podman.options import PodmanOptions
from tests.factories import DEBIAN_13, make_address, make_cluster, make_network, make_node
from tests.unit.roles.fake_facts import asked, file
from tests.unit.roles.fake_host import FakeHost, content, judged, planned
from tests.unit.roles.sites import expected

PORTS = "the declared addresses are present, external ones on separate ports"
ROUTE = "the default route uses the declared network"
FORWARDING = "packets are forwarded only where that is declared"
NETWORKS = {
    "management": make_network("management", "10.9.0.0/24", gateway=IPv4Address("10.9.0.1")),
    "storage": make_network("storage", "10.10.0.0/24", gateway=IPv4Address("10.10.0.1")),
    "external": make_network("external", "192.0.2.0/24", gateway=IPv4Address("192.0.2.1")),
}
STORAGE, OUTSIDE = make_address("storage", "10.10.0.10"), make_address("external", "192.0.2.10")


def cluster_of(options=None, *, networks=NETWORKS, outside=("head1", "login1"), **roles):
    """head1, login1 and gpu1, all on management and storage, those of `outside` on the external network too."""
    given = {"base": options or BaseOptions(), **roles}
    nodes = [
        make_node(
            name,
            number,
            role,
            platform=Platform.BARE_METAL,
            os=DEBIAN_13,
            options=given,
            addresses=(
                make_address("management", f"10.9.0.{number}"),
                make_address("storage", f"10.10.0.{number}"),
                *((make_address("external", f"192.0.2.{number}"),) if name in outside else ()),
            ),
        )
        for name, number, role in (
            ("head1", 10, NodeRole.HEAD),
            ("login1", 11, NodeRole.LOGIN),
            ("gpu1", 12, NodeRole.WORKER),
        )
    ]
    return make_cluster(*nodes, networks=networks)


CLUSTER = cluster_of()
HEAD, WORKER = CLUSTER.by_name["head1"], CLUSTER.by_name["gpu1"]


def addr(**interfaces: str | dict) -> str:
    """`ip -j addr show`: interface to its address, or to what is printed of it."""
    reported = [
        {"ifname": name.replace("_", "."), "addr_info": [{"family": "inet", "local": given}]}
        if isinstance(given, str)
        else {"ifname": name.replace("_", "."), **given}
        for name, given in interfaces.items()
    ]
    return json.dumps([{"ifname": "lo", "addr_info": [{"family": "inet6", "local": "::1"}]}, {}, *reported])


def route(*routes: tuple[str | None, str, int]) -> str:
    """`ip -j route show default`, from (gateway, interface, metric)."""
    return json.dumps(
        [
            {"dst": "default", "dev": device, "metric": metric, "flags": []}
            | ({} if gateway is None else {"gateway": gateway})
            for gateway, device, metric in routes
        ]
    )


def result(name: str, replies: dict, node: Node = HEAD, cluster=CLUSTER):
    found = judged("base", CHECKS, name, cluster, node, FakeHost(replies))
    return str(found.status), found.evidence


VLAN = {"link": "eth0", "addr_info": [{"family": "inet", "local": "192.0.2.10"}]}
VETH = {"link": "eth0", "link_netnsid": 0, "addr_info": [{"family": "inet", "local": "192.0.2.10"}]}
TWO = {
    "eth2": {
        "addr_info": [{"family": "inet", "local": a} for a in ("10.9.0.10", "192.0.2.10")],
    },
    "eth1": "10.10.0.10",
}


@pytest.mark.parametrize(
    ("printed", "status", "evidence"),
    [
        (
            addr(eth0="10.9.0.10", eth1="10.10.0.10", eth2="192.0.2.10"),
            "PASS",
            "management on eth0, storage on eth1, external on eth2",
        ),
        (
            addr(eth0="10.9.0.10", eth1="10.10.0.10", eth2=VETH),
            "PASS",
            "management on eth0, storage on eth1, external on eth2",
        ),
        (
            addr(eth0="10.9.0.10", eth1="10.10.0.10"),
            "FAIL",
            "no interface has 192.0.2.10, the node's declared address on external",
        ),
        (
            addr(**TWO),
            "FAIL",
            "external and management are both on eth2; external access needs a separate port",
        ),
        (
            addr(eth0="10.9.0.10", eth1="10.10.0.10", eth0_7=VLAN),
            "WARN",
            "external and management are VLANs of one port, eth0",
        ),
        ("[1]", "UNKNOWN", None),
        ("{}", "FAIL", "no interface has 10.9.0.10, the node's declared address on management"),
        ("", "UNKNOWN", None),
    ],
)
def test_external_access_has_a_port(printed, status, evidence):
    found = result(PORTS, {"ip -j addr show": printed})
    assert found[0] == status
    assert evidence is None or found[1] == evidence


def test_a_missing_ip_is_unknown():
    for name in (PORTS, ROUTE, FORWARDING):
        assert result(name, {})[0] == "UNKNOWN", name


@pytest.mark.parametrize(
    ("node", "printed", "status", "evidence"),
    [
        (HEAD, route(("192.0.2.1", "eth2", 0)), "PASS", "192.0.2.1 (eth2)"),
        (HEAD, route(("10.9.0.1", "eth0", 200), ("192.0.2.1", "eth2", 100)), "PASS", "192.0.2.1 (eth2)"),
        (
            HEAD,
            route(("192.0.2.1", "eth2", 200), ("10.9.0.1", "eth0", 100)),
            "FAIL",
            "the default route uses 10.9.0.1 (eth0), not 192.0.2.1 (external)",
        ),
        (HEAD, "[ ]", "FAIL", "the node has no default route, but 192.0.2.1 (external) is declared"),
        (WORKER, route(("10.9.0.1", "eth0", 0)), "PASS", "10.9.0.1 (eth0)"),
        (
            WORKER,
            route(("10.9.0.1", "eth0", 0), ("10.10.0.1", "eth1", 900)),
            "FAIL",
            "a default route uses 10.10.0.1 (eth1), on the storage network storage",
        ),
        (
            WORKER,
            route((None, "eth1", 0)),
            "FAIL",
            "a default route uses eth1, on the storage network storage",
        ),
        (WORKER, route(("fe80::1", "eth0", 0)), "UNKNOWN", "a default route has the gateway 'fe80::1'"),
        (WORKER, '[{"dst":"default"}]', "UNKNOWN", None),
        (WORKER, "not JSON", "UNKNOWN", None),
    ],
)
def test_the_way_out(node, printed, status, evidence):
    ports = addr(eth0="10.9.0.12", eth1="10.10.0.12")
    found = result(ROUTE, {"ip -j route show default": printed, "ip -j addr show": ports}, node)
    assert found[0] == status
    assert evidence is None or found[1] == evidence


def test_no_gateway_no_claim():
    bare = {"management": make_network("management", "10.9.0.0/24"), "storage": NETWORKS["storage"]}
    cluster = cluster_of(networks=bare, outside=())
    reported = result(ROUTE, {"ip -j route show default": "[ ]"}, cluster.by_name["gpu1"], cluster)
    assert reported == ("PASS", "none is declared; the node has none")


def test_readings():
    nexthops = (
        '[{"dst":"default","nexthops":[{"gateway":"10.9.0.1","dev":"a"},{"gateway":"10.9.0.2","dev":"b"}]}]'
    )
    assert parse_default_routes(json.loads(nexthops)) == (
        Route("a", "10.9.0.1", 0),
        Route("b", "10.9.0.2", 0),
    )
    loop = [{"ifname": "a", "link": "b", "addr_info": []}, {"ifname": "b", "link": "a", "addr_info": []}]
    assert parse_addresses(loop) == {}
    assert parse_addresses([{"ifname": "a", "addr_info": [{"family": "inet", "local": "x"}]}]) == {
        "x": Port("a", "a")
    }
    with pytest.raises(Undetermined):
        parse_default_routes(7)


@pytest.mark.parametrize(("name", "gateways"), [("head1", ("192.0.2.1",)), ("gpu1", ("10.9.0.1",))])
def test_health_expects_the_same_way_out(name, gateways):
    assert expected_of(CLUSTER, CLUSTER.by_name[name]).gateways == gateways


def test_the_outside_is_trusted_by_no_daemon():
    node = HEAD.model_copy(update={"os": os_release("debian-13")})
    text = sshd_conf(Site(CLUSTER, node), AccessOptions())
    assert "10.10.0.0/24" in text
    assert "192.0.2.0/24" not in text


# what is declared


def test_a_site_as_it_should_be_has_no_warning():
    assert list(BaseOptions().warnings(CLUSTER)) == []
    without = {name: net for name, net in NETWORKS.items() if name != "external"}
    assert list(BaseOptions().warnings(cluster_of(networks=without, outside=()))) == []


def test_an_entry_without_an_external_address_and_a_worker_with_one_are_warned_of():
    cluster = cluster_of(outside=("login1", "gpu1"))
    assert list(BaseOptions().warnings(cluster)) == [
        (
            "",
            "head1 has no address on external, through which users reach heads and login nodes.",
            "add one to the group's addresses, e.g. `external: 192.0.2.128`",
        ),
        (
            "",
            "gpu1 runs jobs but has an address on external, which is reachable from outside.",
            "remove the address; users connect through heads and login nodes",
        ),
    ]


# forwarding


@pytest.mark.parametrize("value", [True, False])
def test_the_file_that_makes_it_last(value):
    assert forwarding.text(value) == expected(f"base/forwarding-{'on' if value else 'off'}")
    cluster = cluster_of(BaseOptions(forwarding=value))
    plan = planned(cluster, cluster.by_name["head1"])
    assert plan.error is None
    assert content(plan, forwarding.PATH) == forwarding.text(value)
    names = [operation.name for operation in plan.operations]
    assert f"{'Enable' if value else 'Disable'} packet forwarding" in names


@pytest.mark.parametrize(
    ("role", "options"),
    [
        ("docker", DockerOptions(source="docker")),
        ("containerd", ContainerdOptions(source="docker")),
        ("podman", PodmanOptions()),
    ],
)
def test_it_is_left_to_a_role_that_needs_it(role, options):
    cluster = cluster_of(**{role: options})
    plan = planned(cluster, cluster.by_name["gpu1"])
    assert plan.error is None
    assert content(plan, forwarding.PATH) is None
    assert not [operation for operation in plan.operations if "forwarding" in operation.name]
    reported = result(FORWARDING, file(forwarding.PATH, None), cluster.by_name["gpu1"], cluster)
    assert reported == ("PASS", f"left to {role}, which needs it")
    assert forwarding.wanted(cluster.by_name["gpu1"], BaseOptions(forwarding=True)) is True


ON = cluster_of(BaseOptions(forwarding=True))
ASK_ON = asked(Answer().command(forwarding.READ[True]))
BOOT = "systemd-analyze cat-config sysctl.d"


@pytest.mark.parametrize(
    ("replies", "status", "evidence"),
    [
        ({ASK_ON: "1\n", BOOT: "net.ipv4.ip_forward=1\n"}, "PASS", "forwards, as declared"),
        ({ASK_ON: "0\n"}, "FAIL", "net.ipv4.ip_forward is 0, but base.forwarding is true"),
        ({ASK_ON: ""}, "UNKNOWN", "/proc/sys/net/ipv4 cannot be read"),
        (
            {ASK_ON: "1\n", BOOT: "vm.swappiness=1\n"},
            "FAIL",
            "after a reboot net.ipv4.ip_forward would be as the kernel has it, not 1",
        ),
    ],
)
def test_declared_forwarding(replies, status, evidence):
    there = file(forwarding.PATH, expected("base/forwarding-on"))
    assert result(FORWARDING, {**there, **replies}, ON.by_name["head1"], ON) == (status, evidence)


@pytest.mark.parametrize("shell", ["sh", "bash"])
def test_the_commands_themselves(tmp_path, shell):
    """In a real shell, on a /proc/sys of plain files."""

    def run(command: str) -> str:
        text = command.replace("/proc/sys", str(tmp_path))
        return subprocess.run([shell, "-c", text], capture_output=True, text=True, check=True).stdout.strip()

    assert run(forwarding.READ[False]) == ""  # nothing to read is not `off`
    for name in ("all", "eth0", "eth1.100"):
        for family in ("ipv4", "ipv6") if name == "all" else ("ipv4",):
            folder = tmp_path / "net" / family / "conf" / name
            folder.mkdir(parents=True)
            (folder / "forwarding").write_text("0\n")
    assert run(forwarding.READ[False]) == "off"
    (tmp_path / "net/ipv4/conf/eth1.100/forwarding").write_text("1\n")
    (tmp_path / "net/ipv6/conf/all/forwarding").write_text("1\n")
    assert run(forwarding.READ[False]) == "ipv4/conf/eth1.100/forwarding ipv6/conf/all/forwarding"
    run(forwarding.WRITE[False])
    assert run(forwarding.READ[False]) == "off"
    (tmp_path / "net/ipv4/ip_forward").write_text("0\n")
    assert run(forwarding.READ[True]) == "0"
    run(forwarding.WRITE[True])
    assert run(forwarding.READ[True]) == "1"
