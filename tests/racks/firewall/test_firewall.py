"""What comes in and what does not, on nodes of two distributions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from rackwright.lab import names
from rackwright.roles.firewall.rules import LIVE, READ, TABLE
from tests.racks.site import Site, operations
from tests.racks.stranger import plugged_in

pytestmark = pytest.mark.lab

HEAD, WORKER = "10.77.0.10", "10.77.0.11"
RULES = ("worker1", "firewall", "Load the firewall rules")
SOCKETS = "only declared services listen"
FOREIGN = """\
nft -f - <<'EOF'
table ip nat {
    chain DOCKER {
        type nat hook prerouting priority dstnat;
        tcp dport 8080 dnat to 172.17.0.2:80
    }
}
table inet kube-proxy {
    chain services {
        tcp dport 10250 accept
    }
}
EOF
"""


@contextmanager
def listening(site: Site, node: str, port: int, *options: str) -> Iterator[None]:
    """A program that waits for connections on every address."""
    unit = f"by-hand-{port}"
    site.on(
        node,
        f"systemd-run -q --collect --unit={unit} {' '.join(options)} -p WorkingDirectory=/run "
        f"python3 -m http.server {port} --bind 0.0.0.0; "
        f"for try in $(seq 100); do ss -Hltn | grep -q ':{port} ' && exit; sleep 0.1; done; exit 1",
    )
    try:
        yield
    finally:
        site.on(node, f"systemctl stop {unit}")


@contextmanager
def answering(site: Site, node: str, network: str) -> Iterator[None]:
    """The node has a route back to an undeclared network, so that only the rules keep it off."""
    site.on(node, f"ip route add {network} dev eth0")
    try:
        yield
    finally:
        site.on(node, f"ip route del {network} dev eth0")


@contextmanager
def unguarded(site: Site, node: str) -> Iterator[None]:
    """Without our table; afterwards an apply has brought it back."""
    site.on(node, f"nft delete table {TABLE}")
    try:
        yield
    finally:
        site.on(node, "systemctl reload rackwright-firewall")


def checked(site: Site, node: str, check: str) -> tuple[str, str]:
    """Status and evidence of one check."""
    results = site.cli("verify", str(site.file), "--role", "firewall", "--json", expect=None).json()[
        "results"
    ]
    (found,) = [one for one in results if (one["node"], one["check"]) == (node, check)]
    return found["status"], found["evidence"]


@pytest.mark.parametrize(("node", "address"), [("head1", HEAD), ("worker1", WORKER)])
def test_a_host_of_the_wrong_network_is_refused(site: Site, node: str, address: str):
    with (
        plugged_in(site, "192.0.2.9/24", "10.77.0.0/24") as stranger,
        answering(site, node, "192.0.2.0/24"),
        listening(site, node, 6817),
    ):
        assert stranger.connect(address, 22) == "refused"
        assert stranger.connect(address, 6817) == "refused"
        with unguarded(site, node):  # nothing else kept it off
            assert stranger.connect(address, 22) == "open"
            assert stranger.connect(address, 6817) == "open"
    with plugged_in(site, "10.77.0.99/24") as neighbour, listening(site, node, 6817):
        assert neighbour.connect(address, 22) == "open"
        assert neighbour.connect(address, 6817) == "open"


def test_a_forged_address_of_another_network_is_refused(site: Site):
    """One of the fabric, sent on the management network, to the node's address there and to that of the fabric."""

    with plugged_in(site, "10.79.0.99/32", "10.77.0.0/24", "10.79.0.11/32") as forger:
        for address in (WORKER, "10.79.0.11"):
            assert caught(site, lambda target=address: forger.send(target, 40000)) == ""
        with unguarded(site, "worker1"):
            for address in (WORKER, "10.79.0.11"):
                assert caught(site, lambda target=address: forger.send(target, 40000)) == "10.79.0.99"


_CATCH = """\
import socket
catcher = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
catcher.bind(("0.0.0.0", 40000))
catcher.settimeout(3)
open("/run/ready", "w").close()
try:
    print(catcher.recvfrom(100)[1][0], flush=True)
except TimeoutError:
    pass
"""


def caught(site: Site, send: Callable[[], None]) -> str:
    """The address from which a datagram came to the worker's UDP port 40000; empty: none came."""
    site.on(
        "worker1",
        f"rm -f /run/ready /run/caught; cat >/run/catch.py <<'EOF'\n{_CATCH}EOF\n"
        "systemd-run -q --unit=catch -p StandardOutput=file:/run/caught -p RemainAfterExit=yes "
        "python3 /run/catch.py; until [ -e /run/ready ]; do sleep 0.05; done",
    )
    send()
    return site.on(
        "worker1",
        'until [ "$(systemctl show -p SubState --value catch)" = exited ]; do sleep 0.1; done; '
        "systemctl stop catch; cat /run/caught",
    ).strip()


def test_what_is_declared_for_management_alone_is_kept_off_the_fabric(site: Site):
    with plugged_in(site, "10.79.0.99/25", bridge=names.bridge("10.79.0.0/25")) as peer:
        assert peer.connect("10.79.0.11", 22) == "refused"
        with listening(site, "worker1", 40001):  # as a rank of MPI does
            assert peer.connect("10.79.0.11", 40001) == "open"


def test_rules_of_others_survive_and_our_own_come_back(site: Site):
    site.on("worker1", FOREIGN)
    try:
        before = site.on("worker1", "nft -s list table ip nat; nft -s list table inet kube-proxy")
        for by_hand, reported in (
            (f"nft insert rule {TABLE} input tcp dport 4444 accept", "tcp dport 4444 accept"),
            (f"nft flush chain {TABLE} refused", "rules are missing"),
            (f"nft delete table {TABLE}", f"the table {TABLE} is not loaded"),
        ):
            site.on("worker1", by_hand)
            plan = site.plan(2)
            assert operations(plan) == {RULES}
            assert reported in shown_in_plan(plan)
            status, evidence = checked(site, "worker1", "the loaded firewall rules are as declared")
            assert (status, reported in evidence) == ("FAIL", True)
            site.converge()
            assert site.on("worker1", "nft -s list table ip nat; nft -s list table inet kube-proxy") == before
    finally:
        site.on("worker1", "nft delete table ip nat; nft delete table inet kube-proxy")


def shown_in_plan(plan: dict[str, Any]) -> str:
    """What the plan reports as present."""
    return " ".join(
        str(change["before"])
        for node in plan["nodes"]
        for operation in node["operations"]
        for change in operation["changes"]
    )


def test_the_distributions_own_unit_flushes_everything_and_ours_comes_back_with_it(site: Site):
    for verb in ("start", "reload", "restart", "stop"):
        site.on("worker1", f"systemctl {verb} nftables")
        assert site.on("worker1", LIVE).strip() == "as declared", verb
    site.on("worker1", "nft flush ruleset")  # by hand
    assert operations(site.plan(2)) == {RULES}
    site.converge()


def test_rules_that_lock_rackwright_out_are_taken_back_by_the_node(site: Site):
    before = site.on("worker1", f"nft -s list table {TABLE}")

    def lock_out(declared: dict[str, Any]) -> None:
        declared["roles"]["firewall"] |= {"zones": {"management": "closed"}, "ssh_from": ["192.0.2.0/24"]}

    with site.declaring(lock_out):
        wanted = operations(site.plan(2))
        assert RULES in wanted
        ran = site.apply(1)
        said = ran.out + ran.err
        assert "worker1: failed: firewall: Load the firewall rules" in said
        assert "the change of firewall was not confirmed" in said
        restored = [int(seconds) for seconds in re.findall(r"the node restored itself after (\d+) s", said)]
        assert len(restored) == 2, said
        assert max(restored) < 60, said  # armed for 20 s; the rest is a busy machine's
        assert site.on("worker1", f"nft -s list table {TABLE}") == before
        assert operations(site.plan(2)) == wanted  # it is not hidden, and would be tried again
    assert operations(site.plan(0)) == set()


def test_an_undeclared_socket_is_found_and_named(site: Site):
    assert checked(site, "worker1", SOCKETS)[0] == "PASS"
    with listening(site, "worker1", 4444):
        status, evidence = checked(site, "worker1", SOCKETS)
        assert status == "FAIL"
        assert evidence.startswith("nothing declares python3 on every address, tcp port 4444")

    def allow(declared: dict[str, Any]) -> None:
        declared["roles"]["firewall"]["site_listeners"] = [{"program": "python3", "ports": 4444}]

    with listening(site, "worker1", 4444), site.declaring(allow):
        assert checked(site, "worker1", SOCKETS)[0] == "PASS"
    with listening(site, "worker1", 4445, "--uid=ada"):  # as a user's notebook
        status, evidence = checked(site, "worker1", SOCKETS)
        assert (status, "1 of users and jobs" in evidence) == ("PASS", True)


def test_the_rules_are_there_after_a_reboot(site: Site):
    site.cli("lab", "reboot", "worker1", "-f", str(site.file))
    assert site.on("worker1", LIVE).strip() == "as declared"
    assert operations(site.plan(0)) == set()


def test_who_may_only_read_files_sees_no_drift_where_there_is_none(site: Site):
    """The drift check in pull mode has one capability, and no netlink."""
    site.on("worker1", f"cat >/run/read.sh <<'EOF'\n{READ}\nEOF")
    limits = "-p CapabilityBoundingSet=CAP_DAC_READ_SEARCH -p RestrictNamespaces=yes"
    families = "-p RestrictAddressFamilies='AF_UNIX AF_INET AF_INET6'"
    ask = f"systemd-run -q --collect --wait --pipe {limits} {families} sh /run/read.sh"
    assert site.on("worker1", ask).strip() == "as declared"
    site.on("worker1", "systemctl stop rackwright-firewall")
    try:
        assert site.on("worker1", ask).strip() == "rackwright-firewall.service is not active"
    finally:
        site.on("worker1", "systemctl start rackwright-firewall")
