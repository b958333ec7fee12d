"""The dns role's checks: each seen to pass, to fail and not to know."""

from __future__ import annotations

import shlex
import socket
import subprocess
import sys
import time
from ipaddress import IPv4Address

import pytest

from rackwright.model.types import NetworkPurpose, NodeRole
from rackwright.osfamily.known import os_release
from rackwright.roles.dns import texts
from rackwright.roles.dns.asking import PROGRAM
from rackwright.roles.dns.names import records
from rackwright.roles.dns.options import DnsOptions
from rackwright.roles.dns.verify import CHECKS
from rackwright.roles.dns.wire import PTR, DnsQuestion, reverse
from tests.factories import make_address, make_cluster, make_network, make_node
from tests.unit.roles.fake_facts import file, files, installed, unit
from tests.unit.roles.fake_host import FakeHost, claimed, judged
from tests.unit.roles.sites import NETWORKS, head, site, worker
from tests.unit.roles.test_dns_wire import reply

CLUSTER = site({"dns": DnsOptions()})
EL = site({"dns": DnsOptions()}, os=os_release("rocky-9"))
GIVEN = site({"dns": DnsOptions(resolver="given", nameservers=(IPv4Address("192.0.2.1"),))})
FILE, OTHERS = "/etc/resolv.conf is as declared", "nothing else writes /etc/resolv.conf"
RUNS = "the cluster's resolver is running and enabled at boot"
SETTINGS = "the cluster's resolver has its declared settings"
KNOWS = "the cluster's resolver knows every declared name"
ALONE = "the cluster's resolver answers only the cluster's networks"
EACH = "each declared resolver knows the node and its neighbour"
OUTSIDE = "an external name is answered or refused at once"
SOCKETS = "ss -Hlntup 'sport = :53'"
LISTENING = "".join(
    f'{kind} UNCONN 0 0 {address}:53 0.0.0.0:* users:(("unbound",pid=9,fd=3))\n'
    for kind in ("udp", "tcp")
    for address in ("127.0.0.1", "10.9.0.10")
)


def question(server, *questions, source="0.0.0.0"):
    """The line with which a node asks a resolver."""
    sent = [one.message(number).hex() for number, one in enumerate(questions, 1)]
    return f"python3 -IS -c {shlex.join([PROGRAM, source, server, '2', *sent])}"


def printed(*messages):
    return "".join(f"0.002 {one if isinstance(one, str) else one.hex()}\n" for one in messages)


def name_of(address):
    labels = address.split(".")
    return b"".join(bytes([len(label)]) + label.encode() for label in labels) + b"\0"


def right(one, number, values):
    if one.type == PTR:
        return reply(one, (PTR, name_of(values)), identity=number)
    return reply(one, (1, IPv4Address(values).packed), identity=number)


def all_names(cluster):
    found = {}
    for record in records(cluster, head(cluster)):
        found[DnsQuestion(record.name)] = record.address
        if record.canonical:
            found[reverse(record.address)] = record.name
    return found


def neighbours(*pairs):
    found = {}
    for name, address in pairs:
        found |= {DnsQuestion(f"{name}.test.example"): address, reverse(address): f"{name}.test.example"}
    return found


def answers(server, wanted):
    line = question(server, *wanted)
    return {line: printed(*(right(one, n, value) for n, (one, value) in enumerate(wanted.items(), 1)))}


OF_HEAD = neighbours(("head1", "10.9.0.10"), ("gpu1", "10.9.0.11"))
OF_WORKER = neighbours(("gpu1", "10.9.0.11"), ("gpu2", "10.9.0.12"))
FOREIGN = DnsQuestion("example.com")
NO_SUCH_NAME = printed(reply(FOREIGN, code=3))


def healthy(cluster, which):
    node, options = which(cluster), which(cluster).options["dns"]
    family = node.family
    return {
        **files({texts.RESOLV_CONF: texts.resolv_conf(cluster, node, options)}),
        **files(texts.writers_off(node)),
        **files(texts.unbound_files(cluster, node, options)),
        **unit("systemd-resolved.service", "inactive", "masked", "masked"),
        **unit("unbound.service"),
        **(installed(family, ("resolvconf", "openresolv"), missing=("resolvconf", "openresolv"))),
        **answers("127.0.0.1", all_names(cluster)),
        **answers("127.0.0.1", OF_HEAD),
        **answers("10.9.0.10", OF_WORKER),
        SOCKETS: LISTENING,
        question("127.0.0.1", FOREIGN): NO_SUCH_NAME,
        question("10.9.0.10", FOREIGN): NO_SUCH_NAME,
        question("192.0.2.1", FOREIGN): NO_SUCH_NAME,
    }


@pytest.mark.parametrize(
    ("cluster", "which", "name"),
    [
        (cluster, which, name)
        for cluster in (CLUSTER, EL, GIVEN)
        for which in (head, worker)
        for name in claimed("dns", CHECKS, which(cluster))
    ],
)
def test_a_healthy_node_passes(cluster, which, name):
    result = judged("dns", CHECKS, name, cluster, which(cluster), FakeHost(healthy(cluster, which)))
    assert (result.status, bool(result.evidence)) == ("PASS", True), result.evidence


FAILURES = [
    (
        FILE,
        worker,
        file(texts.RESOLV_CONF, "nameserver 9.9.9.9\n"),
        "/etc/resolv.conf is not as declared: nameserver 9.9.9.9",
    ),
    (
        OTHERS,
        worker,
        unit("systemd-resolved.service"),
        "systemd-resolved.service is enabled, not masked: two resolvers may answer differently",
    ),
    (
        OTHERS,
        worker,
        installed(os_release("debian-13").family, ("resolvconf", "openresolv"), missing=("resolvconf",)),
        "openresolv is installed and writes /etc/resolv.conf",
    ),
    (OTHERS, worker, file("/etc/dhcpcd.enter-hook", None), "/etc/dhcpcd.enter-hook is missing"),
    (RUNS, head, unit("unbound.service", "failed"), "unbound.service is failed"),
    (
        SETTINGS,
        head,
        file("/etc/unbound/unbound.conf", "server:\n"),
        "/etc/unbound/unbound.conf is not as declared: lines are missing or in another order",
    ),
    (
        EACH,
        worker,
        {question("10.9.0.10", *OF_WORKER): printed(*["! timed out"] * 4)},
        "head1 (10.9.0.10) does not answer: timed out",
    ),
    (
        EACH,
        worker,
        {
            question("10.9.0.10", *OF_WORKER): printed(
                right(DnsQuestion("gpu1.test.example"), 1, "10.9.0.99"),
                *(right(one, n, v) for n, (one, v) in enumerate(OF_WORKER.items(), 1) if n > 1),
            )
        },
        "head1 (10.9.0.10): gpu1.test.example A is 10.9.0.99, not 10.9.0.11",
    ),
    (
        OUTSIDE,
        worker,
        {question("10.9.0.10", FOREIGN): "2.002 ! timed out\n"},
        "example.com is not answered within 2 s by head1 (10.9.0.10): timed out",
    ),
    (
        ALONE,
        head,
        {SOCKETS: LISTENING + 'udp UNCONN 0 0 0.0.0.0:53 0.0.0.0:* users:(("unbound",pid=9,fd=3))\n'},
        "unbound listens on 0.0.0.0 (udp), which is not declared",
    ),
    (
        ALONE,
        head,
        {SOCKETS: ""},
        "unbound does not listen on 10.9.0.10 (tcp), 127.0.0.1 (tcp), 10.9.0.10 (udp), 127.0.0.1 (udp)",
    ),
    (
        KNOWS,
        head,
        {
            question("127.0.0.1", *all_names(CLUSTER)): printed(
                *(
                    reply(one, code=3, identity=n) if n == 3 else right(one, n, value)
                    for n, (one, value) in enumerate(all_names(CLUSTER).items(), 1)
                )
            )
        },
        "1 of 18 answers are not as declared: gpu1.test.example A is NXDOMAIN, not 10.9.0.11",
    ),
]


def test_every_check_was_seen_to_fail():
    assert {case[0] for case in FAILURES} == {check.name for check in CHECKS}


@pytest.mark.parametrize(("name", "which", "wrong", "evidence"), FAILURES)
def test_a_false_claim_fails(name, which, wrong, evidence):
    host = FakeHost({**healthy(CLUSTER, which), **wrong})
    result = judged("dns", CHECKS, name, CLUSTER, which(CLUSTER), host)
    assert (result.status, result.evidence) == ("FAIL", evidence)


@pytest.mark.parametrize("name", [check.name for check in CHECKS])
def test_a_node_without_tools_is_unknown(name):
    assert judged("dns", CHECKS, name, CLUSTER, head(CLUSTER), FakeHost({})).status == "UNKNOWN"


@pytest.mark.parametrize("answer", ["", "rubbish\n", "0.1 zz\n", (1, "", "no\n"), (124, "", "")])
@pytest.mark.parametrize("name", [check.name for check in CHECKS])
def test_unreadable_answers_never_pass(name, answer):
    host = FakeHost({}, always=answer)
    assert judged("dns", CHECKS, name, CLUSTER, head(CLUSTER), host).status in ("FAIL", "UNKNOWN")


def test_a_resolver_whose_forwarders_fail_is_a_warning():
    wrong = {question("10.9.0.10", FOREIGN): printed(reply(FOREIGN, code=2))}
    host = FakeHost({**healthy(CLUSTER, worker), **wrong})
    result = judged("dns", CHECKS, OUTSIDE, CLUSTER, worker(CLUSTER), host)
    assert (result.status, result.evidence) == (
        "WARN",
        "example.com is answered at once but not resolved: head1 (10.9.0.10) SERVFAIL in 0.002 s",
    )


@pytest.mark.parametrize(("questions", "errors"), [(1, 1), (5, 5)])
def test_a_silent_resolver_costs_two_waits_at_most(questions, errors):
    silent = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    silent.bind(("127.0.0.1", 0))
    program = PROGRAM.replace(", 53)", f", {silent.getsockname()[1]})")
    began = time.monotonic()
    done = subprocess.run(
        [sys.executable, "-IS", "-c", program, "0.0.0.0", "127.0.0.1", "0.3", *["00"] * questions],
        capture_output=True,
        text=True,
        check=True,
        timeout=30,
    )
    lines = done.stdout.splitlines()
    assert [line.partition(" ")[2] for line in lines] == ["! timed out"] * errors
    assert sum(float(line.split()[0]) for line in lines) < 0.9
    assert time.monotonic() - began < 10


def test_given_resolvers_need_not_know_the_cluster():
    assert claimed("dns", CHECKS, head(GIVEN)) == (FILE, OTHERS, OUTSIDE)
    assert claimed("dns", CHECKS, worker(CLUSTER)) == (FILE, OTHERS, EACH, OUTSIDE)


OUTER = make_cluster(
    make_node(
        "head1",
        10,
        NodeRole.HEAD,
        addresses=(make_address("management", "10.9.0.10"), make_address("external", "198.51.100.10")),
        options={"dns": DnsOptions()},
    ),
    networks={**NETWORKS, "external": make_network("external", "198.51.100.0/24")},
)
OWN = DnsQuestion("head1.test.example")


@pytest.mark.parametrize(
    ("answer", "status", "evidence"),
    [
        (
            printed(reply(OWN, code=5)),
            "PASS",
            "listens only on 127.0.0.1 and 10.9.0.10; 198.51.100.10 is refused",
        ),
        (
            printed(right(OWN, 1, "10.9.0.10")),
            "FAIL",
            "unbound answers 198.51.100.10, an external address, with 10.9.0.10",
        ),
        (
            "2.001 ! timed out\n",
            "UNKNOWN",
            "unbound does not refuse a query from 198.51.100.10: timed out",
        ),
    ],
)
def test_an_outer_address_is_refused(answer, status, evidence):
    assert OUTER.networks["external"].purpose is NetworkPurpose.EXTERNAL
    host = FakeHost({SOCKETS: LISTENING, question("10.9.0.10", OWN, source="198.51.100.10"): answer})
    result = judged("dns", CHECKS, ALONE, OUTER, head(OUTER), host)
    assert (result.status, result.evidence) == (status, evidence)
