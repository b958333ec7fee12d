"""Paths, shell and readings of the weka_client role: shared by the deploy and its checks."""

from __future__ import annotations

import re
from shlex import quote
from typing import NamedTuple

from rackwright.claims.check import Undetermined
from rackwright.model.cluster import Cluster
from rackwright.roles.weka_client.options import WekaClientOptions

DOWNLOADS = "/var/cache/rackwright"
CONF = "/etc/wekaio/service.conf"
"""The agent's settings, where its cgroups mode is set: "Add clients" of WEKA's documentation, read 2026-11-26."""
READ_CGROUPS = f"sed -n 's/^cgroup_mode *= *//p' {CONF}"
WRITE_CGROUPS = f"sed -i '/^cgroup_mode *=/d' {CONF} && echo cgroup_mode=none >>{CONF}"
STATUS = "timeout 30 weka local status"
READ_VERSION = f"{STATUS} | sed -n 's/^Weka .*(CLI build \\([^)]*\\)).*/\\1/p'"
"""Shell: the installed version."""


class WekaStatus(NamedTuple):
    """The agent's report about this node."""

    running: str
    """Version of the running software; empty before the first mount."""
    installed: str
    cgroups: str
    containers: tuple[int, int]
    """How many run, of how many."""


def url(cluster: Cluster, options: WekaClientOptions) -> str:
    """Where the tarball comes from."""
    return f"{(cluster.mirrors.files or '').rstrip('/')}/{options.tarball}"


def install(options: WekaClientOptions) -> str:
    """Shell: unpacks the tarball into an empty folder and runs its installer.

    Source: WEKA's own Terraform modules, which do so with a tarball (install.sh in the folder weka-VERSION), and
    WEKA_CGROUPS_MODE of the documentation's "Add clients"; read 2026-11-26.
    """
    return (
        "set -e; t=$(mktemp -d); trap 'rm -rf \"$t\"' EXIT; "
        f'tar -xf {quote(f"{DOWNLOADS}/{options.tarball}")} -C "$t"; '
        f'cd "$t/weka-{options.version}"; WEKA_CGROUPS_MODE=none ./install.sh </dev/null'
    )


def parse_status(text: str) -> WekaStatus:
    """`weka local status`."""
    versions = re.search(r"^Weka (?:v(\S+) )?\(CLI build ([^)]+)\)", text, re.MULTILINE)
    cgroups = re.search(r"^Cgroups: mode=(\w+)", text, re.MULTILINE)
    containers = re.search(r"^Containers: (\d+)/(\d+) running", text, re.MULTILINE)
    if versions is None or cgroups is None or containers is None:
        raise Undetermined(f"`weka local status` prints an unknown format: {text.strip()[:80]!r}")
    return WekaStatus(versions[1] or "", versions[2], cgroups[1], (int(containers[1]), int(containers[2])))
