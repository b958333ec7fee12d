"""The roce role's checks: each seen to pass, to fail and not to know."""

from __future__ import annotations

import json
import shlex

import pytest

from rackwright.claims.check import Undetermined
from rackwright.facts.kernel import Sysctls
from rackwright.model.types import Platform
from rackwright.roles.roce import paths, texts
from rackwright.roles.roce.readings import GIDS, parse_active_mtu, parse_gids, parse_read, rdma_mtu
from rackwright.roles.roce.verify import CHECKS
from tests.unit.roles.fake_facts import asked, file, files, unit
from tests.unit.roles.fake_host import FakeHost, claimed, judged
from tests.unit.roles.sites import worker
from tests.unit.roles.test_roce import DCB, NVIDIA, options, roce_site

BOOT, TRUST, PFC, CONGESTION, CNP, MARK, MTU, GID, ARP, PEER = (check.name for check in CHECKS)
ON_NICS = (BOOT, TRUST, PFC, CONGESTION, CNP, MARK)
READ = f"timeout 120 {paths.RUN} read"
CLUSTER, WITH_NVIDIA, SOFT = roce_site(), roce_site(NVIDIA), roce_site(soft=True)


def devinfo(mtu):
    return f"hca_id:\tmlx5_rail0\n\t\tport:\t1\n\t\t\tmax_mtu:\t\t4096 (5)\n\t\t\tactive_mtu:\t\t{mtu} (5)\n"


def gid_line(index, address, kind="RoCE v2"):
    high, low = (int(part) for part in address.split(".")[:2]), (int(part) for part in address.split(".")[2:])
    words = ["".join(f"{byte:02x}" for byte in pair) for pair in (high, low)]
    return f"{index} 0000:0000:0000:0000:0000:ffff:{words[0]}:{words[1]} {kind}\n"


def gids(address, index=3):
    link_local = "0 fe80:0000:0000:0000:ba3f:d2ff:fe00:0001 IB/RoCE v1\n"
    return link_local + gid_line(index - 1, address, "IB/RoCE v1") + gid_line(index, address)


def asks_gids(device):
    return f"sh -c {shlex.quote(GIDS)} sh {device} 1"


def ping(rail, size=8972):
    return f"ping -c 3 -i 0.2 -W 2 -M do -s {size} -I 10.11.{rail}.11 10.11.{rail}.12"


def document(wanted, **changes):
    entry = {"values": {**wanted, **changes}, "unreadable": {}}
    return json.dumps({"mlx5_rail0": entry, "mlx5_rail1": {"values": dict(wanted), "unreadable": {}}})


def unreadable(wanted, key):
    values = {name: value for name, value in wanted.items() if name != key}
    return json.dumps(
        {
            name: {"values": values, "unreadable": {key: "no such file"}}
            for name in ("mlx5_rail0", "mlx5_rail1")
        }
    )


def healthy(cluster, prefix="mlx5"):
    given = worker(cluster).options["roce"]
    arp = texts.sysctls(cluster, worker(cluster), given)
    found = {
        **files(texts.files(cluster, worker(cluster), given)),
        **unit(paths.UNIT),
        READ: document(texts.wanted(given)),
        asked(Sysctls().command(tuple(arp))): "".join(f"{key}={value}\n" for key, value in arp.items()),
    }
    for rail in (0, 1):
        device = f"{prefix}_rail{rail}"
        found[f"timeout 30 mstconfig -d 0000:{18 + rail}:00.0 q ROCE_CC_PRIO_MASK_P1"] = (
            "\nDevice #1:\n----------\n\nConfigurations:                          Next Boot\n"
            "        ROCE_CC_PRIO_MASK_P1                        255\n"
        )
        found[f"timeout 20 ibv_devinfo -d {device} -i 1"] = devinfo(4096)
        found[f"cat /sys/class/net/rail{rail}/mtu"] = "9000\n"
        found[asks_gids(device)] = gids(f"10.11.{rail}.11")
        found[ping(rail)] = "3 packets transmitted, 3 received\n"
    return found


@pytest.mark.parametrize("cluster", [CLUSTER, WITH_NVIDIA], ids=["dcb", "mlnx_qos"])
@pytest.mark.parametrize("name", [check.name for check in CHECKS])
def test_a_healthy_node_passes(cluster, name):
    found = judged("roce", CHECKS, name, cluster, worker(cluster), FakeHost(healthy(cluster)))
    assert (found.status, bool(found.evidence)) == ("PASS", True), found.evidence


@pytest.mark.parametrize("name", [check.name for check in CHECKS])
def test_a_device_made_in_software_is_out_of_scope_for_what_it_cannot_have(name):
    found = judged("roce", CHECKS, name, SOFT, worker(SOFT), FakeHost(healthy(SOFT, "rxe")))
    if name in ON_NICS:
        assert (found.status, found.evidence) == (
            "OUT OF SCOPE",
            "rxe_rail0, rxe_rail1: a device made in software has no priorities and no congestion control",
        )
    else:
        assert found.status == "PASS", found.evidence


WANTED, FULL = texts.wanted(DCB), texts.wanted(NVIDIA)
MASK = "timeout 30 mstconfig -d 0000:18:00.0 q ROCE_CC_PRIO_MASK_P1"
FAILURES = [
    (BOOT, CLUSTER, file(paths.PROGRAM, "old\n"), f"{paths.PROGRAM} is not as declared: old"),
    (BOOT, CLUSTER, unit(paths.UNIT, "failed"), f"{paths.UNIT} is failed"),
    (
        TRUST,
        CLUSTER,
        {READ: document(WANTED, trust="pcp", **{"dscp.26": "not set"})},
        "mlx5_rail0: trust is pcp, not dscp; mlx5_rail0: dscp.26 is not set, not 3",
    ),
    (PFC, CLUSTER, {READ: document(WANTED, pfc="3,4")}, "mlx5_rail0: pfc is 3,4, not 3"),
    (PFC, CLUSTER, {READ: document(WANTED, pfc="")}, "mlx5_rail0: pfc is none, not 3"),
    (CONGESTION, WITH_NVIDIA, {READ: document(FULL, np="0")}, "mlx5_rail0: np is 0, not 1"),
    (
        CONGESTION,
        CLUSTER,
        {MASK: "        ROCE_CC_PRIO_MASK_P1      16\n"},
        "mlx5_rail0 (fabric rail 0): congestion control of priority 3 is off in firmware (ROCE_CC_PRIO_MASK)",
    ),
    (CNP, CLUSTER, {READ: document(WANTED, cnp_dscp="0")}, "mlx5_rail0: cnp_dscp is 0, not 48"),
    (MARK, CLUSTER, {READ: document(WANTED, default_tos="0")}, "mlx5_rail0: default_tos is 0, not 104"),
    (
        MTU,
        CLUSTER,
        {
            "cat /sys/class/net/rail0/mtu": "1500\n",
            "timeout 20 ibv_devinfo -d mlx5_rail0 -i 1": devinfo(1024),
        },
        (
            "mlx5_rail0 (fabric rail 0): rail0 has MTU 1500, not 9000; "
            "mlx5_rail0 (fabric rail 0): active_mtu is 1024, not 4096"
        ),
    ),
    (
        GID,
        CLUSTER,
        {asks_gids("mlx5_rail0"): gids("10.11.1.99")},
        (
            "mlx5_rail0 (fabric rail 0): no RoCE v2 GID for 10.11.0.11; "
            "mlx5_rail0 (fabric rail 0): 10.11.1.99 at index 3 is not in the rail's subnet 10.11.0.0/24"
        ),
    ),
    (
        ARP,
        CLUSTER,
        {
            asked(Sysctls().command(tuple(texts.sysctls(CLUSTER, worker(CLUSTER), DCB)))): "".join(
                f"{key}={'0' if key.endswith('rail1/arp_ignore') else value}\n"
                for key, value in texts.sysctls(CLUSTER, worker(CLUSTER), DCB).items()
            )
        },
        "net/ipv4/conf/rail1/arp_ignore is 0, not 1",
    ),
    (
        PEER,
        CLUSTER,
        {ping(1): (1, "3 packets transmitted, 0 received", "")},
        "packets of the network's MTU are lost: mlx5_rail1 to gpu2 (10.11.1.12)",
    ),
    (
        PEER,
        CLUSTER,
        {ping(0): (2, "", "ping: local error: message too long, mtu=1500")},
        "packets of the network's MTU are lost: mlx5_rail0 to gpu2 (10.11.0.12)",
    ),
    (
        PEER,
        CLUSTER,
        {ping(1): (2, "", "ping: bind: Cannot assign requested address")},
        "rail1 does not have its address 10.11.1.11",
    ),
]


def test_every_check_was_seen_to_fail():
    assert {case[0] for case in FAILURES} == {check.name for check in CHECKS}


@pytest.mark.parametrize(("name", "cluster", "wrong", "evidence"), FAILURES)
def test_a_false_claim_fails(name, cluster, wrong, evidence):
    found = judged("roce", CHECKS, name, cluster, worker(cluster), FakeHost({**healthy(cluster), **wrong}))
    assert (found.status, found.evidence) == ("FAIL", evidence)


@pytest.mark.parametrize(
    ("name", "cluster", "changes"),
    [
        (TRUST, CLUSTER, {READ: unreadable(WANTED, "trust")}),
        (PFC, CLUSTER, {READ: unreadable(WANTED, "pfc")}),
        (CNP, CLUSTER, {READ: unreadable(WANTED, "cnp_dscp")}),
        (MARK, CLUSTER, {READ: unreadable(WANTED, "default_tos")}),
        (MARK, CLUSTER, {READ: "{}"}),
        (CONGESTION, WITH_NVIDIA, {READ: unreadable(FULL, "rp")}),
        (CONGESTION, CLUSTER, {MASK: "        SRIOV_EN  1\n"}),
        (PEER, CLUSTER, {ping(0): (2, "", "ping: unknown iface")}),
        (
            ARP,
            CLUSTER,
            {asked(Sysctls().command(tuple(texts.sysctls(CLUSTER, worker(CLUSTER), DCB)))): "x=1\n"},
        ),
    ],
)
def test_what_cannot_be_read_is_unknown(name, cluster, changes):
    found = judged("roce", CHECKS, name, cluster, worker(cluster), FakeHost({**healthy(cluster), **changes}))
    assert found.status == "UNKNOWN", found.evidence


@pytest.mark.parametrize("answer", ["", "rubbish\n", (127, "", "not found"), (124, "", "")])
@pytest.mark.parametrize("name", [name for name in (check.name for check in CHECKS) if name != PEER])
def test_unreadable_answers_never_pass(name, answer):
    found = judged("roce", CHECKS, name, CLUSTER, worker(CLUSTER), FakeHost({}, always=answer))
    assert found.status in ("FAIL", "UNKNOWN"), found.evidence


@pytest.mark.parametrize("answer", [(127, "", "not found"), (124, "", "")])
def test_a_ping_that_did_not_run_is_unknown(answer):
    assert (
        judged("roce", CHECKS, PEER, CLUSTER, worker(CLUSTER), FakeHost({}, always=answer)).status
        == "UNKNOWN"
    )


def test_a_declared_index_is_compared():
    cluster = roce_site(options(gid_index=1))
    found = judged("roce", CHECKS, GID, cluster, worker(cluster), FakeHost(healthy(cluster)))
    assert (found.status, found.evidence.partition(";")[0]) == (
        "FAIL",
        "mlx5_rail0 (fabric rail 0): the GID of 10.11.0.11 is at index 3, not 1",
    )


def test_scope():
    cluster = roce_site(options(strict_arp=False))
    assert ARP not in claimed("roce", CHECKS, worker(cluster))
    container = roce_site(platform=Platform.CONTAINER)
    assert judged("roce", CHECKS, PFC, container, worker(container), FakeHost({})).status == "OUT OF SCOPE"


@pytest.mark.parametrize(
    ("ethernet", "rdma"), [(9000, 4096), (4200, 4096), (4191, 2048), (1500, 1024), (100, 0)]
)
def test_the_rdma_mtu_of_a_frame(ethernet, rdma):
    assert rdma_mtu(ethernet) == rdma


@pytest.mark.parametrize(
    ("read", "text"),
    [
        (parse_gids, ""),
        (parse_gids, "cat: no such file\n"),
        (parse_active_mtu, ""),
        (parse_active_mtu, devinfo(4096) * 2),
        (parse_read, []),
        (parse_read, {"mlx5_rail0": {}}),
    ],
)
def test_other_text_is_not_read(read, text):
    with pytest.raises(Undetermined):
        read(text)
