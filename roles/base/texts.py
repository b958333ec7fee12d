"""Files of the base role, as text: shared by the deploy and its checks."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.model.cluster import Cluster, Node
from rackwright.model.host_names import host_names
from rackwright.model.settings import Mirrors
from rackwright.model.sku import BLUEFIELD_3
from rackwright.model.types import Platform
from rackwright.osfamily.known import OsRelease
from rackwright.osfamily.names import names
from rackwright.render import render
from rackwright.roles.base.options import BaseOptions

SOURCES = "/etc/apt/sources.list.d/rackwright.sources"
STOCK_SOURCES = ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list.d/ubuntu.sources")
APT_PROXY = "/etc/apt/apt.conf.d/90rackwright-proxy"
AUTO_UPGRADES = "/etc/apt/apt.conf.d/20auto-upgrades"
APT_TIMERS = ("apt-daily.timer", "apt-daily-upgrade.timer")
NEEDRESTART = "/etc/needrestart/conf.d/90-rackwright.conf"
PIP = "/etc/pip.conf"


@dataclass(frozen=True)
class Repository:
    """One dnf repository."""

    name: str
    url: str


def hardware_tools(node: Node) -> tuple[str, ...]:
    """Packages of the tools that read the hardware of a node; a virtual machine has drives at most."""
    if node.platform is Platform.CONTAINER:
        return ()
    if node.platform is Platform.VM:
        return names(node.family, "drives").packages if node.sku.nvme else ()
    bluefield = any(nic.model == BLUEFIELD_3 for nic in node.sku.nics)
    more = names(node.family, "bluefield").packages if bluefield else ()
    return (*names(node.family, "hardware").packages, *more)


def hosts(cluster: Cluster, options: BaseOptions) -> str:
    """/etc/hosts, the same on every node."""
    return render(
        "base/hosts.j2", cluster=cluster.name, entries=list(host_names(cluster, options.extra_hosts))
    )


def package_files(cluster: Cluster, node: Node) -> dict[str, str | None]:
    """The package-source files that are rackwright's on this node: content, or None for "not there"."""
    mirrors = cluster.mirrors
    pip = None if mirrors.pypi is None else render("base/pip.conf.j2", index=mirrors.pypi)
    return {PIP: pip, **_SOURCE_FILES[node.family.package_tool](node.os, mirrors)}


def _apt_files(os: OsRelease, mirrors: Mirrors) -> dict[str, str | None]:
    proxy, archive = mirrors.apt_proxy, mirrors.apt
    return {
        APT_PROXY: None if proxy is None else render("base/apt-proxy.conf.j2", proxy=proxy),
        SOURCES: None if archive is None else apt_sources(os, archive.rstrip("/"), mirrors.apt_security),
    }


def apt_sources(os: OsRelease, archive: str, security: str | None) -> str:
    """The site's apt sources. Ubuntu keeps its security suite in the archive itself, Debian does not."""
    suites = [os.codename, f"{os.codename}-updates"]
    if security is None and os.security_in_archive:
        suites.append(f"{os.codename}-security")
    return render(
        "base/apt.sources.j2",
        archive=archive,
        suites=suites,
        components=os.components,
        keyring=os.archive_keyring,
        security=None if security is None else security.rstrip("/"),
        security_suite=f"{os.codename}-security",
    )


def _dnf_files(os: OsRelease, mirrors: Mirrors) -> dict[str, str | None]:
    """Without a mirror the distribution's files stay as installed, and rackwright writes none."""
    if mirrors.dnf is None:
        return {file.path: None for file in os.repository_files if not file.shipped}
    base = mirrors.dnf.rstrip("/")
    files: dict[str, str | None] = {}
    for file in os.repository_files:
        repositories = [Repository(name, f"{base}/{path}") for name, path in file.repositories.items()]
        files[file.path] = render("base/dnf.repo.j2", repositories=repositories, key=file.key)
    return files


_SOURCE_FILES = {"apt": _apt_files, "dnf": _dnf_files}


def archives_to_read(printed: str) -> str:
    """Archives in what `apt-get update --print-uris` prints: the part of each Release file's URI before its suite."""
    files = (line[1:].partition("'")[0] for line in printed.splitlines() if line.startswith("'"))
    releases = (uri.rpartition("/")[0] for uri in files if uri.endswith("/InRelease"))
    return "\n".join(f"{uri.partition('/dists/')[0].rstrip('/')}/" for uri in releases)
