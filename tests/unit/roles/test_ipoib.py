"""The ipoib role: what is declared, the whole files of each backend, the shell, and the checks."""

from __future__ import annotations

import subprocess

import pytest

from rackwright.model.types import LinkKind, Platform
from rackwright.osfamily.known import RELEASES, os_release
from rackwright.roles.ipoib import texts
from rackwright.roles.ipoib.layout import links
from rackwright.roles.ipoib.options import IpoibOptions
from rackwright.roles.ipoib.verify import CHECKS
from rackwright.roles.opensm.options import OpensmOptions
from rackwright.roles.rdma.options import RdmaOptions
from tests.factories import make_address, make_network
from tests.unit.roles.fabric_sites import fabric_site, networks
from tests.unit.roles.fake_facts import answer, file
from tests.unit.roles.fake_host import FakeHost, content, errors_in, judged, planned
from tests.unit.roles.test_rdma import CARDS

DECLARED = {
    "ibrail0": {"mtu": 2044, "partitions": {0x8001: {"network": "storage", "mtu": 4092}}},
    "ibrail1": {"rail": 1, "address": False, "mode": "connected", "mtu": 65520},
}


def made(interfaces=None, *, rdma=CARDS, opensm=None, **where):
    """The site with IPoIB storage in a partition; and its worker gpu1."""
    roles = {"ipoib": IpoibOptions.model_validate({"interfaces": interfaces or DECLARED})}
    if rdma is not None:
        roles["rdma"] = RdmaOptions.model_validate({"devices": rdma})
    if opensm is not None:
        roles["opensm"] = OpensmOptions.model_validate({"networks": {"fabric": opensm}})
    known = {
        **networks(where.get("kind", LinkKind.INFINIBAND)),
        "storage": make_network("storage", "10.10.0.0/24", kind=LinkKind.INFINIBAND, mtu=2044),
    }
    cluster = fabric_site(roles, networks=known, **where)
    nodes = tuple(
        node.model_copy(update={"addresses": (*node.addresses, make_address("storage", f"10.10.0.{number}"))})
        for number, node in enumerate(cluster.nodes, 10)
    )
    cluster = cluster.model_copy(update={"nodes": nodes})
    return cluster, cluster.by_name["gpu1"]


def problems(**changes):
    cluster, _ = made(**changes)
    options = IpoibOptions.model_validate({"interfaces": changes.get("interfaces") or DECLARED})
    return [(path, message) for path, message, _ in options.problems(cluster)]


@pytest.mark.parametrize(
    ("interfaces", "message"),
    [
        ({"ib0": {}}, "`ib0` is a name that the kernel or udev gives itself: renaming to it could fail."),
        (
            {"ibp24s0": {}},
            "`ibp24s0` is a name that the kernel or udev gives itself: renaming to it could fail.",
        ),
        ({"ibcomputerail0": {}}, "`ibcomputerail0` is not a name for an interface"),
        ({"ibrail0": {"mtu": 9000}}, "In datagram mode the MTU is at most 4092; this is 9000."),
        (
            {"ibrail0": {"partitions": {"0x0001": {}}}},
            "`0x0001` is not the P_Key of a full member: 0x8001 to 0xfffe.",
        ),
        (
            {"ibrail0": {"partitions": {"storage": {}}}},
            "`storage` is not the P_Key of a full member: 0x8001 to 0xfffe.",
        ),
    ],
)
def test_what_cannot_be_is_refused(interfaces, message):
    assert message in errors_in(IpoibOptions, {"interfaces": interfaces})[0]


@pytest.mark.parametrize(
    ("changes", "path", "message"),
    [
        ({"interfaces": {"a": {"network": "fabrik"}}}, "interfaces.a.network", "There is no network fabrik."),
        (
            {"interfaces": {"a": {"network": "management"}}},
            "interfaces.a.network",
            "management is ethernet, not InfiniBand.",
        ),
        (
            {"interfaces": {"a": {"rail": 2}}},
            "interfaces.a.rail",
            "fabric has 2 rails, counted from 0; this is rail 2.",
        ),
        ({"interfaces": {"a": {}, "b": {}}}, "interfaces.b.rail", "a is on rail 0 of fabric too."),
        (
            {"interfaces": {"a": {"partitions": {"0x8001": {"network": "fabric"}}}}},
            "interfaces.a.partitions.0x8001.network",
            "interfaces.a has the addresses of rail 0 of fabric already.",
        ),
        (
            {"rdma": {"mlx5_rail1": CARDS["mlx5_rail1"]}, "interfaces": {"a": {}}},
            "interfaces.a",
            (
                "head1, head2, gpu1, gpu2, gpu3: no RDMA device at a PCI address is declared on rail 0 of fabric."
            ),
        ),
        (
            {"os": os_release("ubuntu-22.04")},
            "interfaces.ibrail0.partitions.0x8001",
            "systemd-networkd of ubuntu-22.04, which head1 runs, cannot make interfaces in partitions.",
        ),
        (
            {"opensm": {"nodes": ["head1"], "partitions": {"other": {"pkey": 2}}}},
            "interfaces.ibrail0.partitions.0x8001",
            (
                "head1, head2, gpu1, gpu2, gpu3: not in the partition 0x0001 of fabric, as the role opensm has it."
            ),
        ),
    ],
)
def test_what_the_cluster_does_not_have_is_refused(changes, path, message):
    assert (path, message) in problems(**changes)


def test_right_interfaces_have_no_problems_and_connected_mode_is_warned_of():
    assert problems() == []
    assert problems(opensm={"nodes": ["head1"], "partitions": {"storage": {"pkey": 1}}}) == []
    cluster, node = made()
    ((path, message, _),) = node.options["ipoib"].warnings(cluster)
    assert (path, message.partition(" support")[0]) == ("interfaces.ibrail1.mode", "ConnectX-4 and later")


def test_a_network_with_larger_packets_than_a_datagram_is_refused():
    found = problems(interfaces={"a": {}}, kind=LinkKind.INFINIBAND)
    assert found == []
    cluster, node = made({"a": {}})
    big = cluster.networks["fabric"].model_copy(update={"mtu": 9000})
    cluster = cluster.model_copy(update={"networks": {**cluster.networks, "fabric": big}})
    ((path, message, _),) = node.options["ipoib"].problems(cluster)
    assert (path, message) == (
        "interfaces.a.mtu",
        "fabric has an MTU of 9000, but datagram mode supports 4092.",
    )


def test_files_of_networkd_whole():
    cluster, node = made()
    found = texts.files(node, links(cluster, node, node.options["ipoib"]))
    prefix = "/etc/systemd/network/06-rackwright-ipoib-"
    assert found[f"{prefix}ibrail0.link"].splitlines()[1:] == [
        "[Match]",
        "Path=pci-0000:18:00.0",
        "Type=infiniband",
        "",
        "[Link]",
        "Name=ibrail0",
    ]
    assert found[f"{prefix}ibrail0.network"].splitlines()[1:] == [
        *("[Match]", "Name=ibrail0", "", "[Link]", "MTUBytes=2044", ""),
        *("[Network]", "IPv6AcceptRA=no", "IPoIB=ibrail0.8001", "Address=10.11.0.12/24", ""),
        *("[IPoIB]", "Mode=datagram"),
    ]
    assert found[f"{prefix}ibrail0.8001.netdev"].splitlines()[1:] == [
        *(
            "[NetDev]",
            "Name=ibrail0.8001",
            "Kind=ipoib",
            "",
            "[IPoIB]",
            "PartitionKey=0x8001",
            "Mode=datagram",
        )
    ]
    assert "Address=10.10.0.12/24" in found[f"{prefix}ibrail0.8001.network"].splitlines()
    assert "LinkLocalAddressing=no" in found[f"{prefix}ibrail1.network"].splitlines()
    assert f"{prefix}ibrail1.netdev" not in found


def test_files_of_networkmanager_whole():
    cluster, node = made(os=os_release("rocky-9"))
    found = texts.files(node, links(cluster, node, node.options["ipoib"]))
    text = found["/etc/NetworkManager/system-connections/ipoib-rackwright-ibrail0.8001.nmconnection"]
    assert [line for line in text.splitlines()[1:] if not line.startswith("uuid=")] == [
        *(
            "[connection]",
            "id=ipoib-rackwright-ibrail0.8001",
            "type=infiniband",
            "interface-name=ibrail0.8001",
        ),
        *("autoconnect=true", "autoconnect-priority=100", ""),
        *("[infiniband]", "mtu=4092", "transport-mode=datagram", "p-key=32769", "parent=ibrail0", ""),
        *("[ipv4]", "method=manual", "address1=10.10.0.12/24", "", "[ipv6]", "method=link-local"),
    ]
    assert not any(path.endswith(".network") for path in found)
    assert (
        "transport-mode=connected"
        in (found["/etc/NetworkManager/system-connections/ipoib-rackwright-ibrail1.nmconnection"])
    )


@pytest.mark.parametrize("release", RELEASES)
def test_it_is_planned_on_each_release(release):
    cluster, node = made({"ibrail0": {}, "ibrail1": {"rail": 1}}, os=os_release(release))
    assert [*node.options["ipoib"].problems(cluster)] == []
    plan = planned(cluster, node)
    assert plan.error is None
    assert content(plan, texts.MODULES_LOAD).splitlines()[1:] == ["ib_ipoib"]
    for operation in plan.operations:
        if operation.name == "Bring up the IPoIB interfaces":
            done = subprocess.run(["sh", "-n"], input=operation.commands[0], text=True, check=False)
            assert done.returncode == 0


def test_a_release_whose_networkd_lacks_the_section_gets_the_mode_from_the_shell():
    cluster, node = made({"ibrail0": {}}, os=os_release("ubuntu-22.04"))
    wanted = links(cluster, node, node.options["ipoib"])
    assert "[IPoIB]" not in "".join(texts.files(node, wanted).values())
    assert "echo datagram >/sys/class/net/ibrail0/mode" in texts.activate(node, wanted)


def test_a_container_gets_nothing():
    cluster, node = made(platform=Platform.CONTAINER)
    assert not [one for one in planned(cluster, node).operations if one.role == "ipoib"]
    for check in CHECKS:
        assert judged("ipoib", CHECKS, check.name, cluster, node, FakeHost({})).status == "OUT OF SCOPE"


def _sysfs(folder, **interfaces):
    for name, values in interfaces.items():
        place = folder / "class/net" / name.replace("__", ".")
        place.mkdir(parents=True)
        for key, value in values.items():
            (place / key).write_text(f"{value}\n")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({}, "in force"),
        ({"ibrail0": {"mtu": 1500}}, "ibrail0: MTU is 1500, not 2044; "),
        ({"ibrail1": {"mode": "datagram"}}, "ibrail1: mode is datagram, not connected; "),
        ({"ibrail0__8001": {"pkey": "0x8002"}}, "ibrail0.8001: P_Key is 0x8002, not 0x8001; "),
        ({"ibrail1": None}, "ibrail1 is missing; "),
    ],
)
def test_the_live_interfaces_are_compared(tmp_path, changes, message):
    right = {
        "ibrail0": {"mode": "datagram", "mtu": 2044},
        "ibrail0__8001": {"mode": "datagram", "mtu": 4092, "pkey": "0x8001"},
        "ibrail1": {"mode": "connected", "mtu": 65520},
    }
    there = {
        name: {**values, **(changes.get(name) or {})}
        for name, values in right.items()
        if changes.get(name, {}) is not None
    }
    _sysfs(tmp_path, **there)
    cluster, node = made()
    script = texts.live(links(cluster, node, node.options["ipoib"])).replace("/sys/", f"{tmp_path}/")
    addresses = {"ibrail0": "10.11.0.12/24", "ibrail0.8001": "10.10.0.12/24"}
    cases = "".join(
        f'{name}) echo "4: x inet {address} scope global";; ' for name, address in addresses.items()
    )
    script = f'ip() {{ case "$6" in {cases} esac; }}\n{script}'
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == f"{message}\n"


def test_checks_pass_fail_and_do_not_know():
    cluster, node = made()
    wanted = links(cluster, node, node.options["ipoib"])

    def check(name, replies):
        return judged("ipoib", CHECKS, name, cluster, node, FakeHost(replies))

    force = "IPoIB interfaces have their declared modes, MTUs, partitions and addresses"
    assert check(force, answer(texts.live(wanted), "in force\n")).status == "PASS"
    found = check(force, answer(texts.live(wanted), "ibrail0: MTU is 1500, not 2044; \n"))
    assert (found.status, found.evidence) == ("FAIL", "ibrail0: MTU is 1500, not 2044")
    assert check(force, answer(texts.live(wanted), "")).status == "UNKNOWN"
    assert check(force, {}).status == "UNKNOWN"

    files = "IPoIB configuration files are as declared"
    declared = texts.files(node, wanted)
    there = {line: reply for path, text in declared.items() for line, reply in file(path, text).items()}
    ours = answer(texts.of_ours(), "".join(f"{path}\n" for path in sorted(declared)))
    assert check(files, {**there, **ours}).status == "PASS"
    path = next(iter(declared))
    assert check(files, {**there, **ours, **file(path, "x")}).status == "FAIL"
    assert check(files, ours).status == "UNKNOWN"

    up = "every IPoIB interface is up"
    states = {f"cat /sys/class/net/{link.name}/operstate": "up\n" for link in wanted}
    one = "cat /sys/class/net/ibrail0.8001/operstate"
    assert check(up, states).status == "PASS"
    found = check(up, {**states, one: "down\n"})
    assert (found.status, found.evidence) == (
        "FAIL",
        "ibrail0.8001 is down: it has not joined the broadcast group of its partition",
    )
    assert (
        check(up, {**states, one: (1, "", "No such file or directory")}).evidence == "ibrail0.8001 is missing"
    )
    assert check(up, {**states, one: "unknown\n"}).status == "UNKNOWN"
