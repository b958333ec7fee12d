"""The shell of a change: what puts the files in force, what shows that they are, and who has to answer then."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from rackwright.facts import rollback
from rackwright.model.cluster import Cluster, Node
from rackwright.render import render
from rackwright.roles.network import texts
from rackwright.roles.network.layout import Device, Layout

KEY = "network"
IN_FORCE = "in force"
_RUN = "/run/rackwright-network"
"""What each bond and VLAN was made from: a changed one has to be made anew."""
_PING_SECONDS = 1
_FILE = re.compile(r"(?:05-rackwright-(.+)\.(?:netdev|network)|rackwright-(.+)\.nmconnection)")


@dataclass(frozen=True)
class _Virtual:
    name: str
    wanted: str


def activate(cluster: Cluster, node: Node, layout: Layout, stale: Iterable[str]) -> str:
    """Shell that puts the files in force. `stale`: paths of files that are to go."""
    return render(
        "network/activate.sh.j2",
        virtual=[_Virtual(device.name, _wanted(device)) for device in layout.virtual],
        gone=sorted(_names(stale) - {device.name for device in layout.devices} - _port_names(stale)),
        ports=layout.ports,
        carried=layout.carried,
        run=_RUN,
        wait=_PING_SECONDS * cluster.ssh.time_factor,
        apply=_apply(node, layout),
    )


def _apply(node: Node, layout: Layout) -> str:
    """The command of the program that configures the network."""
    if node.os.network == "networkd":
        # a reload leaves the addresses of files that are gone, and makes no netdev anew
        return "systemctl restart systemd-networkd.service"
    if node.os.network == "netplan":
        return "netplan apply"
    ups = "\n".join(
        f"    nmcli --wait 30 connection up rackwright-{device.name} || status=1"
        for device in sorted(layout.devices, key=lambda device: device.controller is not None)
    )
    return (
        "nmcli connection reload\nstatus=0\n"
        f'if [ "$RACKWRIGHT_ROLLBACK" = no ]; then\n{ups}\n'
        "else\n    for path in /sys/class/net/*; do\n"
        '        [ ! -e "$path/device" ] || nmcli --wait 30 device connect "${path##*/}" || status=1\n'
        '    done\nfi\n[ "$status" = 0 ]'
    )


def _wanted(device: Device) -> str:
    return render("network/netdev.j2", device=device).strip()


def _names(paths: Iterable[str]) -> set[str]:
    found = (_FILE.fullmatch(path.rpartition("/")[2]) for path in paths)
    return {match[1] or match[2] for match in found if match}


def _port_names(paths: Iterable[str]) -> set[str]:
    names = (path.rpartition("/")[2] for path in paths)
    return {name.removeprefix(texts.PREFIX).removesuffix(".link") for name in names if name.endswith(".link")}


def probe(cluster: Cluster, layout: Layout) -> str:
    """Shell that fails where a network's peers do not answer as they did, or not to packets of its MTU."""
    return render(
        "network/probe.sh.j2",
        carried=layout.carried,
        saved=f"{rollback.FOLDER}/{KEY}",
        wait=_PING_SECONDS * cluster.ssh.time_factor,
    )


def live(layout: Layout) -> str:
    """Shell that prints `in force`, or what is not."""
    return render("network/live.sh.j2", devices=layout.devices)


def check(node: Node) -> str:
    """Shell that refuses before anything changes: another program must not manage the ports as well."""
    lines = [
        "set -u",
        (
            "others=$(cat /etc/network/interfaces /etc/network/interfaces.d/* 2>/dev/null |"
            ' awk \'$1 == "iface" && $2 != "lo" {print $2}\' | xargs)'
        ),
        'if [ -n "$others" ]; then',
        '    echo "ifupdown manages $others as well: remove them from /etc/network/interfaces"; exit 1',
        "fi",
    ]
    if node.os.network == "networkd":
        lines += [
            (
                "[ -e /etc/systemd/system/multi-user.target.wants/systemd-networkd.service ] ||"
                ' { echo "systemd-networkd is not enabled on this node"; exit 1; }'
            )
        ]
    if node.os.network == "netplan":
        lines += ["chmod 755 %s && netplan generate --root-dir %s"]
    if node.os.network == "networkmanager":
        lines += [
            (
                "nmcli -t general status >/dev/null ||"
                ' { echo "NetworkManager is not running on this node"; exit 1; }'
            )
        ]
    return "\n".join(lines)
