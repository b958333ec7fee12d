"""Files of the dns role, as text: shared by the deploy and its checks."""

from __future__ import annotations

from shlex import quote

from rackwright.model.cluster import Cluster, Node
from rackwright.osfamily.names import names
from rackwright.render import render
from rackwright.roles.dns import names as known
from rackwright.roles.dns.options import MOST_NAMESERVERS, DnsOptions, servers
from rackwright.roles.dns.wire import DnsQuestion

RESOLV_CONF = "/etc/resolv.conf"
NETWORKMANAGER = "/etc/NetworkManager/conf.d/90-rackwright-dns.conf"
LOOPBACK = "127.0.0.1"
WAIT_SECONDS = 300
"""How long a node waits for a resolver that a head installs in the same run."""
WAIT = """\
import socket, sys, time
lines = [line.split() for line in open(sys.argv[1])]
servers = [line[1] for line in lines if line[:1] == ["nameserver"]]
end = time.monotonic() + float(sys.argv[2])
while True:
    for server in servers:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
            s.settimeout(1)
            try:
                s.connect((server, 53))
                s.send(bytes.fromhex(sys.argv[3]))
                s.recv(512)
                sys.exit()
            except OSError:
                pass
    if time.monotonic() > end:
        sys.exit("no resolver answers: " + ", ".join(servers) + "; apply the heads first, or correct the addresses")
    time.sleep(1)
"""
"""A resolv.conf, seconds, a question in hex. Ends with an error where none of its resolvers answers by then."""


def nameservers(cluster: Cluster, node: Node, options: DnsOptions) -> tuple[str, ...]:
    """What the node asks, in this order; a head that runs a resolver asks its own first."""
    if options.resolver == "given":
        return tuple(map(str, options.nameservers))
    others = [str(cluster.management_address(head)) for head in servers(cluster) if head.name != node.name]
    own = [LOOPBACK] if options.serves(node) else []
    return tuple([*own, *others][:MOST_NAMESERVERS])


def resolv_conf(cluster: Cluster, node: Node, options: DnsOptions) -> str:
    """/etc/resolv.conf."""
    return render(
        "dns/resolv.conf.j2",
        search=options.search or (cluster.domain,),
        nameservers=nameservers(cluster, node, options),
        options=options.options,
    )


def some_answer(cluster: Cluster) -> str:
    """Shell, `%s` being a resolv.conf: fails unless one of its resolvers sends any answer."""
    question = DnsQuestion(cluster.domain).message(1).hex()
    return f"python3 -IS -c {quote(WAIT)} %s {WAIT_SECONDS} {question}"


def writers_off(node: Node) -> dict[str, str]:
    """Files that keep other programs from writing /etc/resolv.conf, by path."""
    paths = names(node.family, "resolv.conf").paths
    found = {path: render(f"dns/{program}.j2") for program, path in paths.items()}
    return found | (
        {NETWORKMANAGER: render("dns/networkmanager.conf.j2")} if node.family.has_networkmanager else {}
    )


def unbound_files(cluster: Cluster, node: Node, options: DnsOptions) -> dict[str, str]:
    """unbound's files by path, in the order in which they need each other; none where it does not run."""
    if not options.serves(node):
        return {}
    paths = names(node.family, "unbound").paths
    return {
        paths["names"]: render(
            "dns/names.conf.j2",
            cluster=cluster.name,
            zones=list(known.zones(cluster, complete=options.domain_is_complete)),
            records=list(known.records(cluster, node)),
        ),
        paths["conf"]: render(
            "dns/unbound.conf.j2",
            options=options,
            names=paths["names"],
            domain=cluster.domain,
            listen=(LOOPBACK, str(cluster.management_address(node))),
            networks=[str(network.cidr) for network in cluster.inner_networks],
            trust_anchor=paths["trust_anchor"],
        ),
    }
