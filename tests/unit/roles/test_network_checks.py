"""What the network role claims, on nodes where it holds, where it does not, and where it cannot be determined."""

from __future__ import annotations

import json
import shlex

import pytest

from rackwright.claims.check import Undetermined
from rackwright.facts import rollback
from rackwright.facts.settings import Answer
from rackwright.model.types import Platform
from rackwright.roles.network import shell, texts
from rackwright.roles.network.verify import CHECKS, bond_faults, parse_bond
from rackwright.status import Status
from tests.unit.roles.fake_facts import asked, file
from tests.unit.roles.fake_host import FakeHost, judged
from tests.unit.roles.test_network import cluster, declared, gpu1

FILES = "network configuration files are as declared"
IN_FORCE = "interfaces have their declared names, MTUs, VLANs, addresses and routes"
LINKS = "every declared port has link"
BONDS = "every bond has all its ports"
ARMED = "no network change is unconfirmed"

# As Linux 6.1 prints it (Documentation/networking/bonding.rst has the fields).
LACP = """\
Ethernet Channel Bonding Driver: v6.1.0-50-amd64

Bonding Mode: IEEE 802.3ad Dynamic link aggregation
Transmit Hash Policy: layer3+4 (1)
MII Status: up
MII Polling Interval (ms): 100
Up Delay (ms): 0
Down Delay (ms): 0
Peer Notification Delay (ms): 0

802.3ad info
LACP active: on
LACP rate: slow
Min links: 1
Aggregator selection policy (ad_select): stable
System priority: 65535
System MAC address: b8:ce:f6:00:00:21
Active Aggregator Info:
	Aggregator ID: 1
	Number of ports: 2
	Actor Key: 15
	Partner Key: 1000
	Partner Mac Address: 44:38:39:00:00:01

Slave Interface: stor0
MII Status: up
Speed: 25000 Mbps
Duplex: full
Link Failure Count: 0
Permanent HW addr: b8:ce:f6:00:00:21
Slave queue ID: 0
Aggregator ID: 1

Slave Interface: stor1
MII Status: up
Speed: 25000 Mbps
Duplex: full
Link Failure Count: 0
Permanent HW addr: b8:ce:f6:00:00:22
Slave queue ID: 0
Aggregator ID: 1
"""
BACKUP = """\
Ethernet Channel Bonding Driver: v6.12.107

Bonding Mode: fault-tolerance (active-backup)
Primary Slave: None
Currently Active Slave: stor1
MII Status: up
MII Polling Interval (ms): 100

Slave Interface: stor0
MII Status: down

Slave Interface: stor1
MII Status: up
"""


def _bond(**changes):
    options = declared(bonds={"data": {"interfaces": ["stor0", "stor1"], **changes}})
    _, found = gpu1(cluster(options))
    return found.virtual[0]


def test_a_whole_bond_has_no_fault():
    assert bond_faults(_bond(), parse_bond(LACP)) == []


@pytest.mark.parametrize(
    ("text", "changes", "says"),
    [
        (LACP.replace("stor1\nMII Status: up", "stor1\nMII Status: down"), {}, "stor1 of data is down"),
        (LACP.partition("\nSlave Interface: stor1")[0], {}, "stor1 is not in data"),
        (LACP.replace("44:38:39:00:00:01", "00:00:00:00:00:00"), {}, "no LACP partner answers on data"),
        (LACP[::-1].replace("1 :DI rotagerggA", "2 :DI rotagerggA", 1)[::-1], {}, "different aggregators"),
        (
            LACP.replace("layer3+4 (1)", "layer2 (0)"),
            {},
            "has the transmit hash policy layer2 (0), not layer3+4",
        ),
        (LACP, {"lacp_rate": "fast"}, "has the LACP rate slow, not fast"),
        (BACKUP, {}, "is fault-tolerance (active-backup), not 802.3ad"),
        (BACKUP, {"mode": "active-backup"}, "stor0 of data is down"),
    ],
)
def test_a_degraded_bond_names_its_port(text, changes, says):
    assert any(says in fault for fault in bond_faults(_bond(**changes), parse_bond(text)))


def test_what_is_no_bond_is_not_known():
    with pytest.raises(Undetermined):
        parse_bond("cat: no such file\n")


def _files(node, found):
    replies = {asked(Answer().command(texts.of_ours())): ""}
    for path, text in texts.files(node, found).items():
        replies |= file(path, text, texts.mode(node))
    return replies


def _live(found, shown):
    return {asked(Answer().command(shell.live(found))): shown}


def _state(shown):
    command = f"({rollback.pending(shell.KEY)} || echo none) 2>/dev/null"
    return {f"sh -c {shlex.quote(command)}": shown}


def _links(found, *, down=(), off=()):
    printed = [
        {
            "ifname": device.name,
            "flags": [
                *(["UP"] if device.name not in off else []),
                *(["LOWER_UP"] if device.name not in (*down, *off) else []),
            ],
        }
        for device in found.devices
    ]
    return {"ip -j link show": json.dumps(printed)}


def _result(name, replies, site=None):
    site = site or cluster()
    node, found = gpu1(site)
    return judged("network", CHECKS, name, site, node, FakeHost(replies(node, found)))


PASSES = {
    FILES: _files,
    IN_FORCE: lambda node, found: _live(found, "in force\n"),
    LINKS: lambda node, found: _links(found),
    BONDS: lambda node, found: {"cat /proc/net/bonding/data": LACP},
    ARMED: lambda node, found: _state("none\n"),
}
FAILS = {
    FILES: (
        lambda node, found: (
            _files(node, found) | file(f"{texts.UNITS}/05-rackwright-rail0.network", "by hand\n")
        ),
        "05-rackwright-rail0.network is not as declared: by hand",
    ),
    IN_FORCE: (
        lambda node, found: _live(found, "rail0 has MTU 1500, not 9000; no rule for 10.11.0.11\n"),
        "rail0 has MTU 1500, not 9000; no rule for 10.11.0.11",
    ),
    LINKS: (
        lambda node, found: _links(found, down=("rail1",), off=("stor0",)),
        "stor0 is switched off; rail1 has no link",
    ),
    BONDS: (
        lambda node, found: {
            "cat /proc/net/bonding/data": LACP.replace("stor1\nMII Status: up", "stor1\nMII Status: down")
        },
        "stor1 of data is down",
    ),
    ARMED: (lambda node, found: _state("armed\n"), "a network change is armed"),
}


def test_every_check_is_tried():
    assert {check.name for check in CHECKS} == set(PASSES) == set(FAILS)


@pytest.mark.parametrize("name", PASSES)
def test_a_check_passes_where_its_claim_holds(name):
    found = _result(name, PASSES[name])
    assert found.status is Status.PASS, found.evidence


@pytest.mark.parametrize("name", FAILS)
def test_a_check_fails_and_names_what_is_wrong(name):
    replies, says = FAILS[name]
    found = _result(name, replies)
    assert (found.status, found.evidence) == (Status.FAIL, says) or says in found.evidence
    assert found.status is Status.FAIL


@pytest.mark.parametrize("name", PASSES)
def test_a_node_that_answers_nothing_is_not_known(name):
    assert _result(name, lambda node, found: {}).status is Status.UNKNOWN


def test_a_file_of_an_earlier_declaration_fails():
    path = f"{texts.UNITS}/05-rackwright-old0.netdev"

    def replies(node, found):
        there = {asked(Answer().command(texts.of_ours())): f"{path}\n"}
        return _files(node, found) | there | file(path, "old\n")

    found = _result(FILES, replies)
    assert found.status is Status.FAIL
    assert f"{path} exists but is not declared" in found.evidence


def test_a_lab_container_is_out_of_scope():
    site = cluster(platform=Platform.CONTAINER)
    for name in PASSES:
        assert _result(name, lambda node, found: {}, site).status is Status.OUT_OF_SCOPE
