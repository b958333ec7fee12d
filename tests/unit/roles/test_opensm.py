"""The opensm role: subnets, partitions, routing, files; and its checks, each seen to pass, to fail and not to know."""

from __future__ import annotations

import subprocess

import pytest

from rackwright.claims.check import Undetermined
from rackwright.errors import RackwrightError
from rackwright.health.declare import expected_of
from rackwright.model.fabric import Cable, Fabric, NodePort, SwitchId, SwitchPort
from rackwright.model.hcas import RunsSubnetManager
from rackwright.model.types import LinkKind, Platform
from rackwright.osfamily.known import RELEASES, os_release
from rackwright.render import render
from rackwright.roles.opensm import layout, texts
from rackwright.roles.opensm.options import OpensmOptions
from rackwright.roles.opensm.readings import SmInfo, parse_gid, parse_lid, parse_sminfo
from rackwright.roles.opensm.verify import CHECKS
from rackwright.roles.rdma.options import RdmaOptions
from rackwright.roles.rdma.partitions import parse_pkeys
from rackwright.roles.rdma.verify import CHECKS as RDMA_CHECKS
from tests.unit.roles.fabric_sites import fabric_site
from tests.unit.roles.fake_facts import file, files, unit
from tests.unit.roles.fake_host import FakeHost, claimed, content, errors_in, judged, planned
from tests.unit.roles.test_rdma import CARDS

GUIDS = {
    "gpu1": ["0x0c42a10300000011", "0x0c42a10300000012"],
    "gpu2": ["0x0c42a10300000021"],
    "head2": ["0x0c42a10300000002"],
}
PARTITIONS = {
    "storage": {
        "pkey": 0x8001,
        "members": "gpu[1-2]",
        "limited": "head2",
        "ipoib": True,
        "mtu": 4096,
        "rate": 100,
    },
    "public": {"pkey": "0x0020", "membership": "limited"},
}
UNIT = "rackwright-opensm-fabric.service"


def declared(**changes):
    fabric = {"nodes": ["head1", "head2"], **changes}
    return OpensmOptions.model_validate({"networks": {"fabric": fabric}})


def made(*, fabric=None, rdma=CARDS, **changes):
    """The site; its fabric's cables, where given."""
    where = {key: changes.pop(key) for key in ("os", "platform", "kind") if key in changes}
    roles = {"opensm": declared(**changes)}
    if rdma is not None:
        roles["rdma"] = RdmaOptions.model_validate({"devices": rdma})
    more = {"fabrics": {"fabric": fabric}} if fabric is not None else {}
    return fabric_site(roles, **where, **more)


def cabled(*links, leaves=("leaf1", "leaf2"), spines=(), guids=(), nodes=("head1", "head2", "gpu1")):
    """A fabric in which rail r is on leaf r; `links`: (leaf, spine) of each uplink cable."""
    cables = [
        Cable(NodePort(node, rail), SwitchPort(leaf, number))
        for rail, leaf in enumerate(leaves)
        for number, node in enumerate(nodes, 1)
    ]
    cables += [
        Cable(SwitchPort(leaf, 30 + number), SwitchPort(spine, number))
        for number, (leaf, spine) in enumerate(links)
    ]
    known = dict(zip(spines, guids, strict=False))
    switches = {name: SwitchId(name, guid=known.get(name)) for name in (*leaves, *spines)}
    return Fabric("fabric", LinkKind.INFINIBAND, 2, leaves, spines, tuple(cables), switches)


EVEN = (("leaf1", "spine1"), ("leaf2", "spine1"), ("leaf1", "spine2"), ("leaf2", "spine2"))
SPINES = ("spine1", "spine2")
TREE = cabled(*EVEN, spines=SPINES, guids=("0002c90300000001", "0002c90300000002"))


def problems(cluster):
    options = next(node.options["opensm"] for node in cluster.nodes if "opensm" in node.options)
    return [(path, shown) for path, shown, _ in options.problems(cluster)]


def test_it_runs_on_its_nodes_and_they_go_first():
    cluster = made()
    assert [node.name for node in cluster.running("opensm")] == ["head1", "head2"]
    options = cluster.by_name["head1"].offers(RunsSubnetManager)
    assert options.goes_first(cluster.by_name["head1"])
    assert options.subnet_managers("fabric") == ("head1", "head2")
    assert options.subnet_managers("storage") == ()
    assert problems(cluster) == []


def test_only_declared_nodes_are_expected_to_rule_the_fabric():
    cluster = made(nodes=["head1", "gpu1"])
    runs = {node.name: expected_of(cluster, node).runs_subnet_manager for node in cluster.nodes}
    assert [name for name, expected in runs.items() if expected] == ["head1", "gpu1"]
    without = fabric_site({})
    assert not expected_of(without, without.by_name["gpu1"]).runs_subnet_manager
    assert expected_of(without, without.by_name["head1"]).runs_subnet_manager


@pytest.mark.parametrize(
    ("changes", "shown"),
    [
        ({"nodes": ["head1", "head1"]}, "A node is listed twice."),
        (
            {"partitions": {"a": {"pkey": 0x7FFF}}},
            "0x7fff is the partition `Default`, which every fabric has.",
        ),
        ({"partitions": {"a": {"pkey": 0x8000}}}, "Not a P_Key: 0x0001 to 0x7ffe, with or without bit 15."),
        ({"partitions": {"a": {"pkey": "lots"}}}, "Not a P_Key."),
        (
            {"partitions": {"a": {"pkey": 1}, "b": {"pkey": 0x8001}}},
            "`a` and `b` have the same P_Key 0x0001.",
        ),
        (
            {"partitions": {"a": {"pkey": 1, "mtu": 4096}}},
            "`mtu` and `rate` are those of IPoIB's broadcast group, which this partition lacks.",
        ),
        (
            {"default_ipoib": False, "default_mtu": 4096},
            "`default_mtu` and `default_rate` are those of IPoIB on the partition Default, which is off.",
        ),
        ({"m_key": "fabric_m_key"}, "`m_key` and `m_key_lease_seconds` are given together."),
    ],
)
def test_what_cannot_be_is_refused(changes, shown):
    assert shown in errors_in(OpensmOptions, {"networks": {"fabric": {"nodes": ["head1"], **changes}}})[0]


@pytest.mark.parametrize(
    ("changes", "path", "shown"),
    [
        ({"nodes": ["head1", "head9"]}, "nodes[1]", "There is no node head9."),
        (
            {"nodes": ["head1", "login1"]},
            "nodes[1]",
            "login1 has no address on fabric, and so no port to reach it by.",
        ),
        ({"rdma": None}, "nodes[0]", "No RDMA device of head1 is declared on rail 0 of fabric."),
        ({"kind": LinkKind.ROCE}, "", "fabric is roce: only InfiniBand has a subnet manager."),
        (
            {"partitions": {"a": {"pkey": 1, "members": "gpu[1-2]"}}, "guids": {"gpu1": GUIDS["gpu1"]}},
            "partitions.a.members",
            "The port GUIDs of gpu2 are not declared.",
        ),
        (
            {"partitions": {"a": {"pkey": 1, "members": "gpu9"}}},
            "partitions.a.members",
            "There is no node gpu9.",
        ),
        (
            {"partitions": {"a": {"pkey": 1, "members": "login1"}}},
            "partitions.a.members",
            "login1 has no address on fabric.",
        ),
        (
            {"routing": "ar_ftree"},
            "routing",
            "The distribution's opensm does not have ar_ftree: UFM and NVIDIA's managed switches do.",
        ),
        (
            {"routing": "updn", "fabric": cabled(leaves=("leaf1",))},
            "routing",
            "updn routes trees, and fabric does not declare spines.",
        ),
        (
            {"routing": "ftree", "fabric": cabled(*EVEN[:3], spines=SPINES)},
            "routing",
            "ftree needs the same number of cables from each leaf to each spine, which fabric does not have.",
        ),
        (
            {"fabric": cabled(nodes=("gpu1",))},
            "nodes",
            "No node here has a cable to the subnet of leaf1: its ports would never become active.",
        ),
    ],
)
def test_what_the_cluster_cannot_have_is_refused(changes, path, shown):
    assert (f"networks.fabric{f'.{path}' if path else ''}", shown) in problems(made(**changes))


@pytest.mark.parametrize(
    ("fabric", "engine"),
    [
        (None, "minhop"),
        (cabled(leaves=("leaf1",)), "minhop"),
        (TREE, "ftree"),
        (cabled(*EVEN, *EVEN, spines=SPINES), "ftree"),
        (cabled(*EVEN[:3], spines=SPINES), "updn"),
        (cabled(*EVEN, EVEN[0], spines=SPINES), "updn"),
    ],
)
def test_the_routing_engine_follows_from_the_cables(fabric, engine):
    assert layout.engine(fabric, declared().networks["fabric"]) == engine
    assert layout.engine(fabric, declared(routing="dfsssp").networks["fabric"]) == "dfsssp"


def test_roots_are_the_spines_if_all_their_guids_are_declared():
    cluster = made(fabric=TREE)
    plan = planned(cluster, cluster.by_name["head1"])
    assert content(plan, "/etc/opensm/rackwright-fabric-roots.conf") == (
        "0x0002c90300000001\n0x0002c90300000002\n"
    )
    conf = content(plan, "/etc/opensm/rackwright-fabric.conf")
    assert "root_guid_file /etc/opensm/rackwright-fabric-roots.conf\n" in conf
    cluster = made(fabric=cabled(*EVEN, spines=SPINES, guids=("0002c90300000001",)))
    conf = content(planned(cluster, cluster.by_name["head1"]), "/etc/opensm/rackwright-fabric.conf")
    assert "routing_engine ftree\n" in conf
    assert "root_guid_file" not in conf


def test_leaves_that_no_cable_joins_are_subnets_with_an_opensm_each():
    cluster = made(fabric=cabled())
    runs = list(
        layout.instances(cluster, cluster.by_name["head2"], cluster.by_name["head2"].options["opensm"])
    )
    assert [(one.island.name, one.device, one.priority, one.first) for one in runs] == [
        ("fabric-leaf1", "mlx5_rail0", 14, False),
        ("fabric-leaf2", "mlx5_rail1", 14, False),
    ]
    assert problems(cluster) == []
    assert len(layout.islands(TREE, "fabric")) == 1


def test_the_settings_of_the_master_whole():
    cluster = made()
    plan = planned(cluster, cluster.by_name["head1"])
    assert plan.error is None
    assert content(plan, "/etc/opensm/rackwright-fabric.conf").splitlines()[1:] == [
        "sm_priority 15",
        "sminfo_polling_timeout 10000",
        "polling_retry_number 4",
        "partition_config_file /etc/opensm/rackwright-fabric-partitions.conf",
        "routing_engine minhop",
        "# to the journal",
        "log_file stdout",
        "force_log_flush TRUE",
        "daemon FALSE",
    ]
    assert "ExecStart=/usr/local/sbin/rackwright-opensm mlx5_rail0 1 /etc/opensm/rackwright-fabric.conf" in (
        content(plan, f"/etc/systemd/system/{UNIT}").splitlines()
    )
    names = [operation.name for operation in plan.operations if operation.role == "opensm"]
    assert names.index("Mask the distribution's opensm unit") < names.index("Install opensm")


def test_partitions_whole():
    subnet = declared(partitions=PARTITIONS, guids=GUIDS).networks["fabric"]
    assert texts.partitions(subnet).splitlines()[1:] == [
        "Default=0x7fff, ipoib : ALL=full ;",
        (
            "storage=0x0001, ipoib, mtu=5, rate=16 : 0x0c42a10300000011=full, 0x0c42a10300000012=full, "
            "0x0c42a10300000021=full, 0x0c42a10300000002=limited ;"
        ),
        "public=0x0020 : ALL_CAS=limited ;",
    ]
    large = declared(default_mtu=4096, default_rate=400).networks["fabric"]
    assert texts.partitions(large).splitlines()[1:] == ["Default=0x7fff, ipoib, mtu=5, rate=21 : ALL=full ;"]
    limited = declared(default_membership="limited", default_ipoib=False, guids=GUIDS).networks["fabric"]
    assert texts.partitions(limited).splitlines()[1:] == [
        "Default=0x7fff : ALL=limited, ALL_SWITCHES=full, SELF=full, 0x0c42a10300000002=full ;"
    ]


def test_keys_come_from_the_secrets_and_stay_out_of_sight():
    options = declared(sm_key="fabric_sm_key", m_key="fabric_m_key", m_key_lease_seconds=60)
    assert options.supplied_secrets == ("fabric_sm_key", "fabric_m_key")
    cluster = made(sm_key="fabric_sm_key", m_key="fabric_m_key", m_key_lease_seconds=60)
    node = cluster.by_name["head1"]
    (instance,) = layout.instances(cluster, node, options)
    text = texts.conf(cluster, options, instance, lambda name: "0123456789ABCDEF")
    assert "sm_key 0x0123456789abcdef\nm_key 0x0123456789abcdef\nm_key_lease_period 60\n" in text
    with pytest.raises(RackwrightError) as refused:
        texts.conf(cluster, options, instance, lambda name: "hunter2")
    assert "hunter2" not in f"{refused.value.message} {refused.value.hint}"
    assert planned(cluster, node).error is None


@pytest.mark.parametrize("release", RELEASES)
def test_it_is_planned_on_each_release(release):
    cluster = made(os=os_release(release), partitions=PARTITIONS, guids=GUIDS, fabric=TREE)
    assert problems(cluster) == []
    assert planned(cluster, cluster.by_name["head2"]).error is None


def test_the_start_script_finds_the_port(tmp_path):
    ports = tmp_path / "mlx5_rail0/ports/1/gids"
    ports.mkdir(parents=True)
    (ports / "0").write_text("fe80:0000:0000:0000:0c42:a103:0000:0002\n")
    script = render("opensm/start.sh.j2").replace("/sys/class/infiniband", str(tmp_path))
    script = script.replace("exec /usr/sbin/opensm", "echo")

    def run(device):
        asked = ["sh", "-c", script, "start", device, "1", "/c"]
        return subprocess.run(asked, capture_output=True, text=True, check=False)

    assert run("mlx5_rail0").stdout == "--config /c --guid 0x0c42a10300000002\n"
    assert (run("mlx5_rail9").returncode, run("mlx5_rail9").stdout) == (1, "")
    assert "no RDMA device mlx5_rail9 with a port 1" in run("mlx5_rail9").stderr


OWN = {
    "head1": "fe80:0000:0000:0000:0000:0000:0010:0005\n",
    "head2": "fe80:0000:0000:0000:0000:0000:0010:0007\n",
}
GID, LID = (f"cat /sys/class/infiniband/mlx5_rail0/ports/1/{name}" for name in ("gids/0", "lid"))
ASK, ASK_OWN = "sminfo -C mlx5_rail0 -P 1", "sminfo -C mlx5_rail0 -P 1 5"
# as sminfo of infiniband-diags 44 printed them of opensm 3.3.23
MASTER = "sminfo: sm lid 1 sm guid 0x100005, activity count 116 priority 15 state 3 SMINFO_MASTER\n"
STANDBY = "sminfo: sm lid 5 sm guid 0x100007, activity count 43 priority 14 state 2 SMINFO_STANDBY\n"
TOOK_OVER = "sminfo: sm lid 5 sm guid 0x100007, activity count 44 priority 14 state 3 SMINFO_MASTER\n"
RULES, READY = (
    "the declared node is the master of each subnet",
    "standby subnet managers are ready to take over",
)


def check(name, node, replies, **changes):
    cluster = made(**changes)
    return judged("opensm", CHECKS, name, cluster, cluster.by_name[node], FakeHost(replies))


@pytest.mark.parametrize(
    ("node", "replies", "status", "evidence"),
    [
        ("head1", {ASK: MASTER}, "PASS", "fabric: head1 is the master, priority 15"),
        ("head2", {ASK: MASTER}, "PASS", "fabric: head1 is the master, priority 15"),
        (
            "head2",
            {ASK: TOOK_OVER},
            "FAIL",
            "fabric: this standby is the master: head1 is not running opensm, or its port cannot be reached",
        ),
        (
            "head1",
            {ASK: TOOK_OVER},
            "FAIL",
            (
                "fabric: the master is 0x0000000000100007 (priority 14), not this node (0x0000000000100005): another "
                "subnet manager controls it, e.g. a switch's"
            ),
        ),
        (
            "head1",
            {ASK: MASTER.replace("priority 15", "priority 3")},
            "FAIL",
            "fabric: the master has priority 3, not 15 as head1 is declared",
        ),
        ("head1", {ASK: STANDBY}, "FAIL", "fabric: the subnet manager at LID 5 is STANDBY, not MASTER"),
        ("head1", {ASK: (1, "", "sminfo: iberror: failed: query")}, "UNKNOWN", None),
        ("head1", {ASK: "nonsense"}, "UNKNOWN", None),
        ("head1", {}, "UNKNOWN", None),
    ],
)
def test_the_master(node, replies, status, evidence):
    found = check(RULES, node, {GID: OWN[node], **replies})
    assert (found.status, evidence or found.evidence) == (status, found.evidence)


@pytest.mark.parametrize(
    ("replies", "status", "evidence"),
    [
        ({LID: "0x5\n", ASK_OWN: STANDBY}, "PASS", "fabric: STANDBY, priority 14"),
        (
            {LID: "0x5\n", ASK_OWN: TOOK_OVER},
            "FAIL",
            "fabric: this node is MASTER with priority 14, not STANDBY with 14",
        ),
        ({LID: "none\n"}, "UNKNOWN", "not a LID: 'none'"),
        ({LID: "0x5\n", ASK_OWN: (1, "", "failed: query")}, "UNKNOWN", None),
    ],
)
def test_a_standby(replies, status, evidence):
    found = check(READY, "head2", replies)
    assert (found.status, evidence or found.evidence) == (status, found.evidence)


def test_only_standbys_claim_to_be_ready():
    cluster = made()
    assert READY in claimed("opensm", CHECKS, cluster.by_name["head2"])
    assert READY not in claimed("opensm", CHECKS, cluster.by_name["head1"])


def test_units():
    name = "every declared subnet manager is running"
    assert check(name, "head1", unit(UNIT)).status == "PASS"
    assert check(name, "head1", unit(UNIT, active="failed")).status == "FAIL"
    assert check(name, "head1", {}).status == "UNKNOWN"
    off = "the distribution's opensm stays off"
    assert check(off, "head1", unit("opensm.service", "inactive", "masked", "masked")).status == "PASS"
    assert check(off, "head1", unit("opensm.service")).status == "FAIL"
    assert check(off, "head1", {}).status == "UNKNOWN"


def test_files():
    cluster = made(partitions=PARTITIONS, guids=GUIDS)
    node = cluster.by_name["head1"]
    options = node.options["opensm"]
    (instance,) = layout.instances(cluster, node, options)
    conf = texts.conf(cluster, options, instance, str)
    wanted = {
        texts.partitions_path(instance): texts.partitions(options.networks["fabric"]),
        texts.roots_path(instance): None,
        f"/etc/systemd/system/{UNIT}": texts.service(instance),
    }
    there = {**file(texts.START, render("opensm/start.sh.j2"), "755"), **files(wanted)}
    asked = {"partitions": PARTITIONS, "guids": GUIDS}
    name, settings = (
        "opensm's files are as declared",
        "opensm's settings are as declared and only root can read them",
    )
    assert check(name, "head1", there, **asked).status == "PASS"
    assert check(name, "head1", there, partitions={}).status == "FAIL"
    assert check(name, "head1", {}, **asked).status == "UNKNOWN"
    path = texts.conf_path(instance)
    assert check(settings, "head1", file(path, conf, "600")).status == "PASS"
    assert check(settings, "head1", file(path, conf, "644")).status == "FAIL"
    assert check(settings, "head1", file(path, conf + "sm_priority 3\n", "600")).status == "FAIL"
    assert check(settings, "head1", {}).status == "UNKNOWN"


def test_a_container_runs_none():
    for name in (RULES, "every declared subnet manager is running"):
        assert check(name, "head1", {}, platform=Platform.CONTAINER).status == "OUT OF SCOPE"


PKEYS = "InfiniBand ports have their declared partitions"


def table(rail, *keys):
    path = f"/sys/class/infiniband/mlx5_rail{rail}/ports/1/pkeys"
    return {f"sh -c 'cat {path}/*'": "\n".join((*keys, "0x0000", "0x0000")) + "\n"}


@pytest.mark.parametrize(
    ("node", "tables", "status", "evidence"),
    [
        (
            "gpu1",
            {**table(0, "0xffff", "0x8001", "0x0020"), **table(1, "0xffff", "0x8001", "0x0020")},
            "PASS",
            "mlx5_rail0, mlx5_rail1 as partitions.conf has them",
        ),
        (
            "gpu1",
            {**table(0, "0xffff", "0x0001", "0x0020"), **table(1, "0xffff", "0x0020", "0x8099")},
            "FAIL",
            (
                "mlx5_rail0 (rail 0 of fabric): it is a limited member of 0x0001, not full; mlx5_rail1 (rail 1 of fabric): it "
                "is not in the partition 0x0001, it is in the partition 0x0099, undeclared"
            ),
        ),
        (
            "head2",
            {**table(0, "0xffff", "0x0001", "0x0020"), **table(1, "0xffff", "0x0001", "0x0020")},
            "PASS",
            None,
        ),
        ("gpu3", {**table(0, "0xffff", "0x0020"), **table(1, "0xffff", "0x0020")}, "PASS", None),
        ("gpu1", {**table(0, "rubbish")}, "UNKNOWN", None),
        ("gpu1", {}, "UNKNOWN", None),
    ],
)
def test_the_partitions_of_a_port(node, tables, status, evidence):
    cluster = made(partitions=PARTITIONS, guids=GUIDS)
    found = judged("rdma", RDMA_CHECKS, PKEYS, cluster, cluster.by_name[node], FakeHost(tables))
    assert (found.status, evidence or found.evidence) == (status, found.evidence)


def test_partitions_that_a_switch_declares_are_out_of_scope():
    cluster = fabric_site({"rdma": RdmaOptions.model_validate({"devices": CARDS})})
    found = judged("rdma", RDMA_CHECKS, PKEYS, cluster, cluster.by_name["gpu1"], FakeHost({}))
    assert found.status == "OUT OF SCOPE"


def test_readings():
    assert parse_sminfo(STANDBY) == SmInfo(5, 0x100007, 14, "STANDBY")
    assert parse_gid(OWN["head2"]) == 0x100007
    assert parse_lid("0x1f\n") == 31
    assert parse_pkeys("0xffff\n0x8000\n0x0000\n") == {0xFFFF}
    for parse, text in ((parse_gid, "::1"), (parse_lid, "5"), (parse_pkeys, ""), (parse_pkeys, "0xzz")):
        with pytest.raises(Undetermined):
            parse(text)
