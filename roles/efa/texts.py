"""Paths, and the shell of the efa role: shared by the deploy and its checks. Readings are pure."""

from __future__ import annotations

import re
from shlex import quote

from rackwright.claims.check import Undetermined
from rackwright.model.cluster import Cluster
from rackwright.roles.efa.options import EfaOptions

DOWNLOADS = "/var/cache/rackwright"
INSTALLED = "/opt/amazon/efa_installed_packages"
READ_VERSION = f"sed -n 's/^# *EFA installer version: *//p' {INSTALLED}"
"""Shell: the version of the installer that ran last."""
PROVIDER = "timeout 60 /opt/amazon/efa/bin/fi_info -p efa -t FI_EP_RDM"
HUGE_PAGES = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages"
_AMAZON = "https://efa-installer.amazonaws.com"


def url(cluster: Cluster, options: EfaOptions) -> str:
    """Where the tarball comes from: the site's mirror, else Amazon."""
    return f"{str(cluster.mirrors.files or _AMAZON).rstrip('/')}/{options.tarball}"


def install(options: EfaOptions) -> str:
    """Shell: unpacks the tarball into an empty folder and runs the installer."""
    skip = "" if options.kernel_module else " --skip-kmod"
    return (
        "set -e; t=$(mktemp -d); trap 'rm -rf \"$t\"' EXIT; "
        f'tar -xzf {quote(f"{DOWNLOADS}/{options.tarball}")} -C "$t"; '
        f'cd "$t/aws-efa-installer"; ./efa_installer.sh -y{skip} </dev/null'
    )


def parse_domains(text: str) -> tuple[str, ...]:
    """`fi_info -p efa`: the domain of each device, e.g. `rdmap16s27-rdm`."""
    providers = set(re.findall(r"^provider:\s*(\S+)", text, re.MULTILINE))
    domains = re.findall(r"^\s+domain:\s*(\S+)", text, re.MULTILINE)
    if not domains or providers != {"efa"}:
        raise Undetermined(f"fi_info prints no domains of the provider efa: {text.strip()[:80]!r}")
    return tuple(dict.fromkeys(domains))


def parse_count(text: str) -> int:
    """A number in a file of sysfs."""
    if not text.strip().isdecimal():
        raise Undetermined(f"the kernel does not print a number of huge pages: {text.strip()[:40]!r}")
    return int(text)
