"""Counters before and after a run: read, proof of the transport, and the likely cause of a slow port."""

import os
import subprocess
from dataclasses import replace
from ipaddress import IPv4Address

import pytest

from rackwright.burnin.counters import (
    NodeState,
    PortState,
    counters_script,
    parse_counters,
    read_counters,
    rise,
)
from rackwright.burnin.evidence import Declared, evidence, from_log
from rackwright.burnin.proof import judge_counters
from rackwright.burnin.rails import Rail
from rackwright.command import CommandResult
from rackwright.model.types import LinkKind
from rackwright.status import Status
from tests.unit.burnin.recorded import NCCL_LOG_IB

RAIL = Rail(0, "fabric", LinkKind.ROCE, "mlx5_rail0", 1, IPv4Address("10.1.0.7"), "eth1")
GID = ("0000:0000:0000:0000:0000:ffff:0a01:0007", "RoCE v2")
LINK = {"state": "4: ACTIVE", "rate": "400 Gb/sec (4X NDR)"}


def state(counts=None, *, link=None, pcie=None, gids=None, netdev=None):
    port = PortState(
        counts or {}, LINK if link is None else link, pcie or {}, {"3": GID} if gids is None else gids
    )
    return NodeState({("mlx5_rail0", 1): port}, {"eth1": netdev} if netdev is not None else {})


def said(before, after, **declared):
    return evidence(before, after, Declared(RAIL, **declared))


def test_the_rate_of_a_software_device_says_nothing():
    slow = state(link={"state": "4: ACTIVE", "rate": "2.5 Gb/sec (1X SDR)"})
    declared = Declared(replace(RAIL, software=True), speed_gbps=10.0)
    assert evidence(slow, slow, declared) == ()
    assert said(slow, slow, speed_gbps=10.0) == ("the link runs at 2.5 Gb/s, declared 10",)


def test_a_port_whose_counters_stand_still_shows_nothing():
    same = state({"symbol_error": 7, "port_rcv_data": 10, "np_cnp_sent": 99})
    assert said(same, same, speed_gbps=400.0) == ()


@pytest.mark.parametrize(
    ("before", "after", "sentence"),
    [
        (
            {"symbol_error": 7},
            {"symbol_error": 12},
            "5 symbol errors: the cable, its ends or the transceiver",
        ),
        ({}, {"link_downed": 1}, "1 times the link went down"),
        ({"port_rcv_errors": 0}, {"port_rcv_errors": 3}, "3 packets received with errors"),
        ({"symbol_error": 9}, {"symbol_error": 2}, "2 symbol errors: the cable, its ends or the transceiver"),
        (
            {},
            {"rp_cnp_handled": 5000},
            "5000 congestion notifications handled: the fabric made this node send more slowly",
        ),
        ({}, {"packet_seq_err": 100}, "100 packets out of sequence: the path drops packets"),
    ],
)
def test_a_counter_that_rose_is_named(before, after, sentence):
    assert said(state(before), state(after)) == (sentence,)


def test_a_few_signs_of_congestion_are_usual():
    assert said(state(), state({"np_ecn_marked_roce_packets": 99, "out_of_sequence": 5})) == ()


def test_the_bit_error_rate_is_of_the_bits_that_came_in():
    found = said(state(), state({"symbol_error": 32, "port_rcv_data": 10**9}), max_ber=1e-12)
    assert found[1] == "a bit error rate of 1.0e-09 at least (at most 1e-12 is declared)"


def test_the_link_and_pcie_are_compared():
    assert said(None, state(link={"state": "1: DOWN", "rate": "200 Gb/sec (4X HDR)"}), speed_gbps=400.0) == (
        "the port is DOWN",
        "the link runs at 200 Gb/s, declared 400",
    )
    pcie = {
        "current_link_width": "8", "max_link_width": "16",
        "current_link_speed": "16.0 GT/s PCIe", "max_link_speed": "32.0 GT/s PCIe",
    }  # fmt: skip
    assert said(None, state(pcie=pcie)) == (
        "its PCIe link has 8 of 16 lanes",
        "its PCIe link has 16.0 GT/s PCIe, the device supports 32.0 GT/s PCIe",
    )


def test_a_wrong_gid_and_a_wrong_mtu_are_named():
    assert said(None, state(gids={"1": (GID[0], "IB/RoCE v1")})) == (
        "it has no RoCE v2 GID of its declared address 10.1.0.7",
    )
    small = PortState({"rx_crc_errors": 4}, {"mtu": "1500"})
    assert said(None, state(netdev=small), mtu=9000) == (
        "4 frames with a wrong checksum: the cable or its ends (eth1)",
        "the MTU of eth1 is 1500, declared 9000",
    )


def test_what_cannot_be_read_is_said():
    assert said(None, NodeState(problem="Cannot connect to w1.")) == (
        "its counters cannot be read: Cannot connect to w1.",
    )
    assert said(None, NodeState()) == ("the node has no device mlx5_rail0",)


def test_nccls_log_tells_tcp():
    assert from_log(NCCL_LOG_IB) == ()
    assert from_log(NCCL_LOG_IB.replace("NET/IB", "NET/Socket")) == (
        "NCCL used TCP: 4 connections via NET/Socket",
    )
    failed = "w1:1:2 [0] NCCL WARN NET/IB : Got completion from peer 10.1.0.8<4> with status=12 opcode=0 len=0 vendor err 129"
    assert from_log(failed) == (
        "NCCL: NET/IB : Got completion from peer 10.1.0.8<4> with status=12 opcode=0 len=0 vendor err 129",
    )


def proof(before, after, least=10**6):
    return judge_counters({"w1": before}, {"w1": after}, {"w1": (RAIL,)}, least)


def test_a_message_by_rdma_is_the_proof():
    assert proof(state({"port_xmit_data": 5}), state({"port_xmit_data": 5 + 250_000})) == []
    [found] = proof(state({"port_xmit_data": 5}), state({"port_xmit_data": 5 + 249_999}))
    assert found.status is Status.FAIL
    assert found.text == (
        "transport: roce is declared, but RDMA was not used; one message is 1000000 B: w1 sent 999996 B over mlx5_rail0"
    )


def test_software_devices_are_counted_by_packets_of_their_mtu():
    link = {"mtu": "1500"}
    before, after = state({"sent_pkts": 10}, link=link), state({"sent_pkts": 10 + 700}, link=link)
    assert proof(before, after) == []
    [found] = proof(before, state({"sent_pkts": 20}, link=link))
    assert found.status is Status.FAIL


@pytest.mark.parametrize(
    ("before", "after", "why"),
    [
        (NodeState(problem="no answer"), state({"port_xmit_data": 9}), "no answer"),
        (state(), state(), "mlx5_rail0 counts neither port_xmit_data nor sent_pkts"),
        (NodeState(), NodeState(), "the node has no device mlx5_rail0 with a port 1"),
    ],
)
def test_what_is_not_counted_is_unknown(before, after, why):
    [found] = proof(before, after)
    assert found.status is Status.UNKNOWN
    assert found.text == f"transport: the RDMA counters of w1 cannot be read: {why}"


def test_a_counter_that_was_reset_counts_from_0():
    assert rise(PortState({"symbol_error": 9}), PortState({"symbol_error": 2}), "symbol_error") == 2


def sysfs(root):
    port = root / "infiniband" / "rxe_rail0" / "ports" / "1"
    for folder in ("hw_counters", "gids", "gid_attrs/types"):
        (port / folder).mkdir(parents=True)
    files = {
        "state": "4: ACTIVE", "rate": "2.5 Gb/sec (1X SDR)", "hw_counters/sent_pkts": "1234", "gids/0": "0" * 4 + ":0000" * 7,
        "gids/1": GID[0], "gid_attrs/types/1": "RoCE v2",
    }  # fmt: skip
    for name, text in files.items():
        (port / name).write_text(f"{text}\n")
    for name in ("lo", "eth1"):
        (root / "net" / name / "statistics").mkdir(parents=True)
        (root / "net" / name / "mtu").write_text("1500\n")
        (root / "net" / name / "statistics" / "tx_bytes").write_text("77\n")


def test_the_script_reads_sysfs(tmp_path):
    sysfs(tmp_path)
    script = counters_script().replace("/sys/class/", f"{tmp_path}/")
    done = subprocess.run(
        ["sh", "-c", script],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
        env={"PATH": os.environ["PATH"]},
    )
    found = parse_counters(done.stdout)
    [(name, port)] = found.devices.items()
    assert name == ("rxe_rail0", 1)
    assert port.counts == {"sent_pkts": 1234}
    assert port.link["state"] == "4: ACTIVE"
    assert port.gids == {"1": GID}
    assert port.sent_bytes == 1234 * 4096
    assert {one: found.interfaces[one].counts for one in found.interfaces} == {"eth1": {"tx_bytes": 77}}


def test_a_broken_list_is_no_reading():
    assert (
        parse_counters("device mlx5_0\nport 1\ncount port_xmit_data 5\n").problem
        == "the list of counters is truncated"
    )

    class Shell:
        def run(self, node, command, *, stdin=None, timeout):
            return CommandResult(command, 126, "", "denied")

    assert read_counters(Shell(), ["w1"])["w1"].problem == "the counters cannot be read: exit status 126"
