"""Files of the lldp role, and the shell with which it reads: shared by the deploy and its checks."""

from __future__ import annotations

from rackwright.model.cluster import Cluster, Node
from rackwright.render import render
from rackwright.roles.lldp.options import LldpOptions

SETTINGS = "/etc/lldpd.d/90-rackwright.conf"
UNIT = "lldpd.service"
_EACH_PORT = (
    "command -v ethtool >/dev/null && "
    'for d in /sys/class/net/*/device; do [ -e "$d" ] || continue; i=${d%/device}; i=${i##*/}; '
)
_FLAGS = 'ethtool --show-priv-flags "$i" 2>/dev/null'
AGENTS_ON = (
    f"{_EACH_PORT}{_FLAGS} | awk -F '[ :]+' -v i=\"$i\" "
    '\'$1 == "fw-lldp-agent" && $2 == "on" || $1 == "disable-fw-lldp" && $2 == "off" {print i}\'; '
    "done | sort | tr '\\n' ' ' | sed 's/^$/off/; s/ $//' | grep . || "
    "{ command -v ethtool >/dev/null && echo off; }"
)
"""Shell: interfaces whose firmware has an LLDP agent that is on, or `off`; fails without ethtool."""
AGENTS_OFF = (
    f'{_EACH_PORT}flags=$({_FLAGS}) || continue; case "$flags" in '
    '*fw-lldp-agent*) ethtool --set-priv-flags "$i" fw-lldp-agent off || exit 1;; '
    '*disable-fw-lldp*) ethtool --set-priv-flags "$i" disable-fw-lldp on || exit 1;; esac; done'
)


def settings(cluster: Cluster, node: Node, options: LldpOptions) -> str:
    """lldpd's settings."""
    return render(
        "lldp/lldpd.conf.j2",
        name=node.name,
        interval=options.interval_seconds,
        pattern=options.pattern(cluster, node),
    )
