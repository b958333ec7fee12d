"""Two heads that resolve names for a worker, and forward others to a resolver that answers, is silent, or is down.

The heads are Debian 12 and 13; the site's resolver is a program on the worker.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from ipaddress import IPv4Address

import pytest
import yaml

from rackwright.lab import names, network
from rackwright.roles.dns.wire import DnsQuestion, Reply, read
from tests.racks.site import Site, operations
from tests.racks.verified import named, results

pytestmark = [pytest.mark.lab, pytest.mark.proof]

_DECLARED = """\
version: 1
cluster: {name: "", domain: lab.test}
defaults: {os: debian-13, platform: container, sku: lab-node, lab: {cpus: 2, memory_mib: 768}}
networks:
  management: {purpose: management, cidr: 10.96.0.0/24, gateway: 10.96.0.1}
ssh: {user: rack, key: .lab/id_ed25519, known_hosts: .lab/known_hosts}
mirrors: {apt_proxy: "http://10.96.0.1:3142"}
nodes:
  - {nodes: head1, roles: [head], primary: true, addresses: {management: 10.96.0.10}}
  - {nodes: head2, roles: [head], os: debian-12, addresses: {management: 10.96.0.20}}
  - {nodes: worker1, roles: [worker], addresses: {management: 10.96.0.30}}
roles:
  base: {}
  access: {users: [{name: ada, uid: 3000}]}
  dns: {forward_to: [10.96.0.30]}
"""
_SITES_RESOLVER = """\
cat >/run/site.py <<'P'
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.bind(("10.96.0.30", 53))
while True:
    asked, client = s.recvfrom(4096)
    end = asked.index(b"\\0", 12) + 5
    address = asked[end - 4 : end] == b"\\0\\1\\0\\1"
    answer = b"\\xc0\\x0c\\0\\1\\0\\1\\0\\0\\0\\1\\0\\4" + bytes([192, 0, 2, 80]) if address else b""
    s.sendto(asked[:2] + b"\\x81\\x80\\0\\1" + bytes([0, 1 if answer else 0]) + bytes(4) + asked[12:end] + answer, client)
P
systemctl is-active -q site-resolver || systemd-run -q --unit site-resolver python3 /run/site.py
"""
EACH = "each declared resolver knows the node and its neighbour"
OUTSIDE = "an external name is answered or refused at once"
RESOLVED = "getent -s hosts:dns ahostsv4 {} | awk 'NR == 1 {{print $1}}'"
_ASK = """\
import socket, sys
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(5)
s.bind((sys.argv[1], 0))
s.sendto(bytes.fromhex(sys.argv[3]), (sys.argv[2], 53))
print(s.recv(4096).hex())
"""


@pytest.fixture(scope="module")
def rack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The rack, applied once."""
    site = Site(tmp_path_factory.mktemp("dns"), "dns", yaml.safe_load(_DECLARED))
    with site.booted():
        site.apply()
        yield site


@pytest.fixture
def site(rack: Site, put_right: Callable[[Site], None]) -> Site:
    """The rack as declared, with a site's resolver that answers."""
    put_right(rack)
    rack.on("worker1", _SITES_RESOLVER)
    return rack


def dns(site: Site, expect: int | None) -> dict[str, list[dict[str, str]]]:
    return results(site, expect, "--role", "dns")


@pytest.mark.smoke
def test_names_of_the_cluster_and_of_the_site_resolve_everywhere(site: Site):
    assert operations(site.plan(0)) == set()
    assert set(dns(site, 0)) == {"PASS"}
    for node in site.nodes:
        assert site.on(node, RESOLVED.format("head2.lab.test")).strip() == "10.96.0.20"
        assert site.on(node, RESOLVED.format("worker1")).strip() == "10.96.0.30"
        assert site.on(node, RESOLVED.format("example.com")).strip() == "192.0.2.80"
        assert site.on(node, RESOLVED.format("unknown.lab.test")).strip() == ""


def test_a_resolver_that_is_down_is_named_and_delays_no_lookup(site: Site):
    site.on("head1", "systemctl stop unbound.service")
    began = "date +%s%N; "
    printed = site.on("worker1", f"{began}{RESOLVED.format('head2.lab.test')}; {began}").split()
    assert printed[1] == "10.96.0.20"
    assert int(printed[2]) - int(printed[0]) < 3e9
    wrong = dns(site, 3)["FAIL"]
    assert ("worker1", "dns", EACH) in named(wrong)
    (evidence,) = [one["evidence"] for one in wrong if (one["node"], one["check"]) == ("worker1", EACH)]
    assert "head1 (10.96.0.10) does not answer" in evidence
    assert operations(site.plan(2)) == {("head1", "dns", "Start unbound with its settings")}
    site.apply()
    assert set(dns(site, 0)) == {"PASS"}


def test_a_site_s_resolver_that_is_silent_fails_outside_names_alone(site: Site):
    site.on("worker1", "systemctl kill -s STOP site-resolver")
    for head in ("head1", "head2"):
        site.on(head, "systemctl restart unbound.service")  # forgets what it was answered before
    try:
        wrong = dns(site, 3)["FAIL"]
        assert {(check, role) for _, role, check in named(wrong)} == {(OUTSIDE, "dns")}
        assert site.on("worker1", RESOLVED.format("head2.lab.test")).strip() == "10.96.0.20"
    finally:
        site.on("worker1", "systemctl kill -s CONT site-resolver")


def test_a_file_that_others_wrote_is_repaired(site: Site):
    site.on("worker1", "echo nameserver 192.0.2.9 >/etc/resolv.conf")
    site.on("head2", "ln -sf /run/systemd/resolve/stub-resolv.conf /etc/resolv.conf")
    wanted = {(node, "dns", "Write /etc/resolv.conf") for node in ("worker1", "head2")}
    assert operations(site.plan(2)) == wanted
    site.apply()
    assert operations(site.plan(0)) == set()
    assert set(dns(site, 0)) == {"PASS"}


def test_an_address_outside_the_cluster_is_refused(site: Site):
    stranger, question = "198.51.100.9", DnsQuestion("head1.lab.test")
    namespace = names.namespace(site.name)

    def inside(*command: str) -> str:
        done = subprocess.run(
            network.inside(namespace, list(command)), capture_output=True, text=True, check=True, timeout=30
        )
        return done.stdout

    def answer(source: str) -> Reply:
        asked = inside(sys.executable, "-c", _ASK, source, "10.96.0.10", question.message(1).hex())
        return read(bytes.fromhex(asked.strip()), question, 1)

    route = inside("ip", "-o", "route", "get", "10.96.0.10").split()
    bridge = route[route.index("dev") + 1]
    inside("ip", "address", "add", f"{stranger}/32", "dev", bridge)
    site.on("head1", f"ip route add {IPv4Address(stranger)} via 10.96.0.1")
    try:
        assert answer("10.96.0.1") == Reply("NOERROR", ("10.96.0.10",))
        assert answer(stranger) == Reply("REFUSED")
    finally:
        site.on("head1", f"ip route del {stranger}")
        inside("ip", "address", "del", f"{stranger}/32", "dev", bridge)
