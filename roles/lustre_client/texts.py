"""Files of the lustre_client role, and the shell and text that it reads: shared by the deploy and its checks."""

from __future__ import annotations

import re
from shlex import quote

from rackwright.claims.check import Undetermined
from rackwright.model.cluster import Cluster, Node
from rackwright.render import render
from rackwright.roles.lustre_client.options import Interface, LustreClientOptions

CONF = "/etc/lnet.conf"
"""What lnet.service imports: lustre/scripts/systemd/lnet.service.in of lustre-release, read 2026-11-26."""
SHOW = "timeout 20 lnetctl net show"
CHECK = "timeout 40 lfs check servers"
_SERVER = re.compile(r"^(?P<name>\S+-(?:MDT|OST)[0-9a-f]{4}-\S+|MGC\S+) (?P<state>active|inactive)\.$")
_BROKEN = re.compile(r"check '(?P<name>[^']+)': (?P<why>.+)")
_HAS = 'awk -v n="$n" \'$2 == "nid:" && $3 == n { f = 1 } END { exit !f }\''
"""Shell: whether what is piped in, of SHOW, has the NID $n."""


def conf(cluster: Cluster, node: Node, options: LustreClientOptions) -> str:
    """LNet's networks, each interface a separate member, as multi-rail requires."""
    nets: dict[str, list[Interface]] = {}
    for one in options.interfaces(cluster, node):
        nets.setdefault(one.net, []).append(one)
    return render("lustre_client/lnet.conf.j2", nets=nets)


def read_up(nids: tuple[str, ...]) -> str:
    """Shell: those of the declared NIDs that LNet has, one a line, in the order declared."""
    words = " ".join(quote(nid) for nid in nids)
    return f'there=$({SHOW}) || exit 1; for n in {words}; do echo "$there" | {_HAS} && echo "$n"; done; :'


def bring_up(interfaces: tuple[Interface, ...]) -> str:
    """Shell: adds those of the interfaces that LNet does not have, and no other.

    `lnetctl import` fails where LNet has one of them (EEXIST), and adds none after that one in the same network:
    lustre_lnet_ioctl_config_ni of lustre-release 2.15, read 2026-11-26.
    """
    each = (
        f'n={quote(one.nid)}; echo "$there" | {_HAS} || '
        f"timeout 60 lnetctl net add --net {quote(one.net)} --if {quote(one.name or '')} || exit 1"
        for one in interfaces
    )
    return "\n".join((f"there=$({SHOW}) || exit 1", *each))


def parse_nids(text: str) -> dict[str, str]:
    """`lnetctl net show`: status by NID, without the loopback's."""
    found: dict[str, str] = {}
    nid = None
    for line in text.splitlines():
        if (match := re.fullmatch(r"\s+- nid: (\S+)", line)) is not None:
            nid = match[1]
        elif nid is not None and (match := re.fullmatch(r"\s+status: (\S+)", line)) is not None:
            found[nid], nid = match[1], None
    if not text.lstrip().startswith("net:") or not found:
        raise Undetermined(f"lnetctl prints no networks: {text.strip()[:80]!r}")
    return {nid: state for nid, state in found.items() if not nid.endswith("@lo")}


def parse_servers(text: str) -> tuple[tuple[str, ...], dict[str, str]]:
    """`lfs check servers`: those that answer, and what is wrong with the others."""
    active, wrong = [], {}
    for line in text.splitlines():
        if (match := _SERVER.match(line.strip())) is not None:
            if match["state"] == "active":
                active.append(match["name"])
            else:
                wrong[match["name"]] = "inactive"
        elif (match := _BROKEN.search(line)) is not None:
            wrong[match["name"]] = match["why"].strip()
    if not active and not wrong:
        raise Undetermined(f"lfs names no server: {text.strip()[:80]!r}")
    return tuple(active), wrong
