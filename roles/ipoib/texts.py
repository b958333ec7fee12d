"""The files of a node's IPoIB interfaces, and the shell that puts them in force and reads them back."""

from __future__ import annotations

from uuid import UUID, uuid5

from rackwright.model.cluster import Node
from rackwright.render import render
from rackwright.roles.ipoib.layout import Link

UNITS = "/etc/systemd/network"
PREFIX = "06-rackwright-ipoib-"
"""Another one than the role network's, which removes what has its own and is not declared there."""
KEYFILES = "/etc/NetworkManager/system-connections"
KEYFILE = "ipoib-rackwright-"
MODULES_LOAD = "/etc/modules-load.d/rackwright-ipoib.conf"
IN_FORCE = "in force"
_NAMESPACE = UUID("6d6c2f5a-3f55-5a0e-8f37-50a4c1d0f9be")


def files(node: Node, links: tuple[Link, ...]) -> dict[str, str]:
    """Path to text."""
    found = {
        f"{UNITS}/{PREFIX}{link.name}.link": render("ipoib/link.j2", link=link)
        for link in links
        if link.pci is not None
    }
    if node.os.network == "networkmanager":
        for link in links:
            uuid = uuid5(_NAMESPACE, f"{node.fqdn} {link.name}")
            path = f"{KEYFILES}/{KEYFILE}{link.name}.nmconnection"
            found[path] = render(
                "ipoib/keyfile.nmconnection.j2", link=link, uuid=uuid, id=f"{KEYFILE}{link.name}"
            )
        return found
    for link in links:
        # Ubuntu's too: netplan knows no children of InfiniBand ports, and networkd reads both its files and these
        found[f"{UNITS}/{PREFIX}{link.name}.network"] = render(
            "ipoib/network.j2", link=link, has_section=node.os.networkd_makes_ipoib
        )
        if link.parent is not None:
            found[f"{UNITS}/{PREFIX}{link.name}.netdev"] = render("ipoib/netdev.j2", link=link)
    return found


def mode(path: str) -> str:
    """NetworkManager wants its files readable by root alone."""
    return "600" if path.startswith(KEYFILES) else "644"


def of_ours() -> str:
    """Shell: the paths of all files that this role has written."""
    return f"ls -d {UNITS}/{PREFIX}* {KEYFILES}/{KEYFILE}*.nmconnection 2>/dev/null | sort"


def live(links: tuple[Link, ...]) -> str:
    """Shell that prints `in force`, or what is not."""
    return render("ipoib/live.sh.j2", links=links)


def activate(node: Node, links: tuple[Link, ...]) -> str:
    """Shell that puts the files in force."""
    return render(
        "ipoib/activate.sh.j2",
        links=links,
        networkmanager=node.os.network == "networkmanager",
        id=KEYFILE,
        sets_mode=not node.os.networkd_makes_ipoib,
    )
