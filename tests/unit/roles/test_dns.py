"""The dns role: options, whole files, records, and what each family gets."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from ipaddress import IPv4Address, IPv4Network

import pytest

from rackwright.model.host_names import ExtraHost
from rackwright.model.services import Listener
from rackwright.model.settings import Mirrors, Waves
from rackwright.model.types import NodeRole
from rackwright.osfamily.known import os_release
from rackwright.roles.base.options import BaseOptions
from rackwright.roles.dns import texts
from rackwright.roles.dns.names import Zone, records, reverse_zones, zones
from rackwright.roles.dns.options import DnsOptions
from tests.factories import make_address, make_cluster, make_network, make_node
from tests.unit.roles.fake_host import commands, content, errors_in, planned
from tests.unit.roles.sites import expected, head, site, worker

SITES_OWN = (IPv4Address("192.0.2.1"), IPv4Address("192.0.2.2"))
ALONE = DnsOptions()
FORWARDING = DnsOptions(forward_to=SITES_OWN, domain_is_complete=False, dnssec=True, cache_mib=256)
GIVEN = DnsOptions(resolver="given", nameservers=SITES_OWN, search=("a.example", "b.example"), options=())
EXTRA = BaseOptions(
    extra_hosts=(ExtraHost(address=IPv4Address("192.0.2.7"), names=("license.example", "License")),)
)
UNBOUND, NAMES = "/etc/unbound/unbound.conf", "/etc/unbound/rackwright-names.conf"


def heads(count: int, options: DnsOptions = ALONE):
    nodes = [make_node(f"head{n}", n, NodeRole.HEAD, options={"dns": options}) for n in range(1, count + 1)]
    return make_cluster(*nodes, make_node("w1", 20, options={"dns": options}))


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"resolver": "given"}, "`resolver: given` needs `nameservers`."),
        ({"nameservers": ["10.9.0.1"]}, "`nameservers` are read with `resolver: given` only."),
        (
            {"resolver": "given", "nameservers": ["10.0.0.1"] * 4},
            "Tuple should have at most 3 items after validation, not 4",
        ),
        (
            {"resolver": "given", "nameservers": ["10.0.0.1"], "forward_to": ["10.0.0.1"]},
            "`forward_to` is read with `resolver: caching` only.",
        ),
        ({"forward_to": ["127.0.0.53"]}, "127.0.0.53 is the head itself: it would query itself."),
        ({"dnssec": True}, "`dnssec` needs `forward_to`."),
        ({"domain_is_complete": False}, "`domain_is_complete` needs `forward_to`."),
        ({"options": ["timeout: 1"]}, "'timeout: 1' is not an option of resolv.conf."),
        (
            {"search": ["a_b"]},
            "'a_b' is not a valid host name: use labels of letters, digits and hyphens, joined by dots.",
        ),
        (
            {"outside_name": "-"},
            "'-' is not a valid host name: use labels of letters, digits and hyphens, joined by dots.",
        ),
        ({"cache_mib": 1}, "Input should be greater than or equal to 4"),
        ({"resolvers": []}, "Extra inputs are not permitted"),
    ],
)
def test_options_that_are_refused(given, sentence):
    assert errors_in(DnsOptions, given) == [sentence]


def test_a_head_that_would_ask_itself():
    options = DnsOptions(forward_to=(IPv4Address("10.9.0.10"), IPv4Address("10.9.0.11")))
    cluster = site({"dns": options})  # gpu1 may serve the site's names by other means
    assert [(path, text) for path, text, _ in options.problems(cluster)] == [
        ("forward_to[0]", "10.9.0.10 is head1, which runs the cluster's own resolver: it would query itself.")
    ]


def test_a_cluster_without_a_head_has_no_resolver():
    cluster = make_cluster(make_node("w1", 20, options={"dns": ALONE}))
    assert [text for _, text, _ in ALONE.problems(cluster)] == ["No head runs the caching resolver."]
    assert list(ALONE.problems(heads(1))) == []


def test_nameservers_that_are_nodes():
    given = DnsOptions(resolver="given", nameservers=(IPv4Address("10.9.0.1"), IPv4Address("10.9.0.20")))
    assert [(path, text) for path, text, _ in given.problems(heads(1))] == [
        ("nameservers[1]", "10.9.0.20 is w1, which does not run a resolver.")
    ]
    storage = (make_address("management", "10.9.0.1"), make_address("storage", "10.10.0.1"))
    head1 = make_node("head1", 1, NodeRole.HEAD, addresses=storage, options={"dns": ALONE})
    networks = {
        name: make_network(name, f"10.{n}.0.0/24") for name, n in (("management", 9), ("storage", 10))
    }
    other = given.model_copy(update={"nameservers": (IPv4Address("10.10.0.1"),)})
    assert list(other.problems(make_cluster(head1, networks=networks))) == [
        ("nameservers[0]", "head1 serves names on management only, not on 10.10.0.1.", "write `10.9.0.1`")
    ]


def test_more_heads_than_glibc_reads():
    assert list(ALONE.warnings(heads(3))) == []
    assert [text for _, text, _ in ALONE.warnings(heads(4))] == [
        "Nodes ask the first 3 of 4 heads that run a resolver, up to head3."
    ]


def test_a_mirror_that_would_not_resolve():
    mirrors = Mirrors(
        apt="http://mirror.example.com/debian", apt_proxy="http://10.1.0.1:3142", containers="head1:5000"
    )
    cluster = site({"base": EXTRA, "dns": ALONE}, mirrors=mirrors)
    assert [text for _, text, _ in ALONE.warnings(cluster)] == [
        "Nodes will not resolve mirror.example.com of `mirrors.apt`: the heads know the cluster's names alone."
    ]
    assert list(FORWARDING.warnings(cluster)) == []
    known = site({"base": EXTRA, "dns": ALONE}, mirrors=Mirrors(apt="http://license.example/debian"))
    assert list(ALONE.warnings(known)) == []


def test_heads_serve_and_go_first():
    cluster = site({"dns": ALONE})
    assert (ALONE.goes_first(head(cluster)), ALONE.goes_first(worker(cluster))) == (True, False)
    assert ALONE.listeners(head(cluster)) == (
        Listener("unbound", (53, 53), "udp"),
        Listener("unbound", (53, 53), "tcp"),
    )
    assert ALONE.listeners(worker(cluster)) == GIVEN.listeners(head(cluster)) == ()


@pytest.mark.parametrize(
    ("options", "which", "file"),
    [
        (ALONE, head, "resolv-head.conf"),
        (ALONE, worker, "resolv-worker.conf"),
        (GIVEN, worker, "resolv-given.conf"),
    ],
)
def test_resolv_conf(options, which, file):
    cluster = site({"dns": options})
    assert texts.resolv_conf(cluster, which(cluster), options) == expected(f"dns/{file}")


def test_a_head_asks_itself_first_and_three_at_most():
    cluster = heads(4)
    asked = {node.name: texts.nameservers(cluster, node, ALONE) for node in cluster.nodes}
    assert asked == {
        "head1": ("127.0.0.1", "10.9.0.2", "10.9.0.3"),
        "head2": ("127.0.0.1", "10.9.0.1", "10.9.0.3"),
        "head3": ("127.0.0.1", "10.9.0.1", "10.9.0.2"),
        "head4": ("127.0.0.1", "10.9.0.1", "10.9.0.2"),
        "w1": ("10.9.0.1", "10.9.0.2", "10.9.0.3"),
    }


@pytest.mark.parametrize(
    ("options", "file"), [(ALONE, "unbound-alone.conf"), (FORWARDING, "unbound-forwarding.conf")]
)
def test_unbound_conf(options, file):
    cluster = site({"base": EXTRA, "dns": options})
    declared = texts.unbound_files(cluster, head(cluster), options)
    assert list(declared) == [NAMES, UNBOUND]
    assert declared[UNBOUND] == expected(f"dns/{file}")
    assert texts.unbound_files(cluster, worker(cluster), options) == {}


def test_the_names_of_the_cluster():
    cluster = site({"base": EXTRA, "dns": ALONE})
    assert texts.unbound_files(cluster, head(cluster), ALONE)[NAMES] == expected("dns/names.conf")
    names = [record.name for record in records(cluster, head(cluster))]
    assert "gpu1-fabric-rail1.test.example" in names
    assert "license.test.example" in names


@pytest.mark.parametrize(
    ("network", "zones"),
    [
        ("10.9.0.0/24", [Zone("0.9.10.in-addr.arpa", "static")]),
        ("10.11.0.0/16", [Zone("11.10.in-addr.arpa", "static")]),
        ("10.9.2.0/23", [Zone("2.9.10.in-addr.arpa", "static"), Zone("3.9.10.in-addr.arpa", "static")]),
        ("10.9.0.64/26", [Zone("0.9.10.in-addr.arpa", "transparent")]),
        ("10.9.0.0/16", [Zone("9.10.in-addr.arpa", "static")]),
        ("10.0.0.0/8", [Zone("10.in-addr.arpa", "static")]),
    ],
)
def test_reverse_zones_end_at_octets(network, zones):
    assert list(reverse_zones(IPv4Network(network))) == zones


def test_networks_that_share_a_reverse_zone_declare_it_once():
    networks = {
        name: make_network(name, f"10.9.0.{first}/26") for name, first in (("management", 0), ("storage", 64))
    }
    cluster = make_cluster(networks=networks)
    assert list(zones(cluster, complete=False)) == [
        Zone("test.example", "transparent"),
        Zone("0.9.10.in-addr.arpa", "transparent"),
    ]


def test_what_a_head_of_debian_gets():
    cluster = site({"dns": ALONE})
    plan = planned(cluster, head(cluster))
    assert plan.error is None
    assert [operation.name for operation in plan.operations] == [
        "Install unbound",
        f"Write {NAMES}",
        f"Write {UNBOUND}",
        "Start unbound with its settings",
        "Create /etc/dhcp/dhclient-enter-hooks.d",
        "Write /etc/dhcp/dhclient-enter-hooks.d/rackwright-dns",
        "Write /etc/dhcpcd.enter-hook",
        "Write /etc/resolv.conf",
        "Mask systemd-resolved",
    ]
    (install,) = commands(plan, "Install unbound")
    assert "policy-rc.d" in install
    assert " install unbound dns-root-data" in install
    (write,) = commands(plan, f"Write {UNBOUND}")
    assert "unbound-checkconf" in write


def test_what_a_worker_of_el_gets():
    cluster = site({"dns": GIVEN}, os=os_release("rocky-9"))
    plan = planned(cluster, worker(cluster))
    assert plan.error is None
    assert [operation.name for operation in plan.operations] == [
        "Create /etc/NetworkManager/conf.d",
        "Write /etc/NetworkManager/conf.d/90-rackwright-dns.conf",
        "Write /etc/resolv.conf",
        "Mask systemd-resolved",
    ]
    assert content(plan, texts.NETWORKMANAGER) == expected("dns/networkmanager.conf")


class Resolver:
    """A program that answers each datagram, or is silent."""

    def __init__(self, answers: bool) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        if answers:
            threading.Thread(target=self._answer, daemon=True).start()

    def _answer(self) -> None:
        question, client = self.socket.recvfrom(512)
        self.socket.sendto(question, client)


@pytest.mark.parametrize(
    ("answers", "printed"),
    [
        (True, ""),
        (
            False,
            "no resolver answers: 127.0.0.1; apply the heads first, or correct the addresses\n",
        ),
    ],
)
def test_a_file_lands_once_a_resolver_answers(tmp_path, answers, printed):
    resolver = Resolver(answers)
    file = tmp_path / "resolv.conf"
    file.write_text(expected("dns/resolv-head.conf"))
    program = texts.WAIT.replace(", 53)", f", {resolver.port})")
    done = subprocess.run(
        [sys.executable, "-IS", "-c", program, str(file), "0", "00"],
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert (done.returncode, done.stderr) == (0 if answers else 1, printed)


def test_a_node_waits_for_a_resolver_before_it_asks_it():
    cluster = site({"dns": ALONE})
    (write,) = commands(planned(cluster, worker(cluster)), "Write /etc/resolv.conf")
    assert "no resolver answers" in write
    assert '"$t" 300 ' in write


def test_workers_that_go_first_would_wait():
    cluster = heads(1).model_copy(update={"waves": Waves(order="workers-first")})
    assert [text for _, text, _ in ALONE.warnings(cluster)] == [
        "Workers are applied first, and wait for resolvers that the heads do not run yet."
    ]


def test_what_keeps_dhcp_clients_off():
    cluster = site({"dns": ALONE})
    files = texts.writers_off(worker(cluster))
    assert files["/etc/dhcp/dhclient-enter-hooks.d/rackwright-dns"] == expected("dns/dhclient")
    assert files["/etc/dhcpcd.enter-hook"] == expected("dns/dhcpcd")
