"""What the base role writes, as text: shared by the deploy and its checks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from shlex import quote

from rackwright.model.cluster import Cluster, Node
from rackwright.model.types import Family, OsRelease
from rackwright.osfamily.names import release
from rackwright.render import render
from rackwright.roles.base.options import BaseOptions

SOURCES = "/etc/apt/sources.list.d/rackwright.sources"
STOCK_SOURCES = ("/etc/apt/sources.list.d/debian.sources", "/etc/apt/sources.list.d/ubuntu.sources")
APT_PROXY = "/etc/apt/apt.conf.d/90rackwright-proxy"
AUTO_UPGRADES = "/etc/apt/apt.conf.d/20auto-upgrades"
APT_TIMERS = ("apt-daily.timer", "apt-daily-upgrade.timer")
NEEDRESTART = "/etc/needrestart/conf.d/90-rackwright.conf"
PIP = "/etc/pip.conf"
ROCKY_REPOSITORIES = "/etc/yum.repos.d/rocky.repo"
ROCKY_EXTRAS = "/etc/yum.repos.d/rocky-extras.repo"
RHEL_REPOSITORIES = "/etc/yum.repos.d/rackwright.repo"

_ROCKY_KEY = "/etc/pki/rpm-gpg/RPM-GPG-KEY-Rocky-9"
_RHEL_KEY = "/etc/pki/rpm-gpg/RPM-GPG-KEY-redhat-release"


@dataclass(frozen=True)
class HostsEntry:
    """One line of /etc/hosts, the canonical name first."""

    address: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Repository:
    """One dnf repository."""

    name: str
    url: str


def hosts_entries(cluster: Cluster, options: BaseOptions) -> Iterator[HostsEntry]:
    """Every node on every network, then the declared extra hosts.

    The management address carries the node's name; the others `name-network` or, where a network
    has rails, `name-network-railN`.
    """
    for node in cluster.nodes:
        yield HostsEntry(str(cluster.management_address(node)), (node.fqdn, node.name))
        for entry in node.addresses:
            if entry.network == cluster.management.name:
                continue
            rail = f"-rail{entry.rail}" if cluster.networks[entry.network].rails > 1 else ""
            yield HostsEntry(str(entry.address), (f"{node.name}-{entry.network}{rail}",))
    for extra in options.extra_hosts:
        yield HostsEntry(str(extra.address), extra.names)


def hosts(cluster: Cluster, options: BaseOptions) -> str:
    """/etc/hosts, the same on every node."""
    return render("base/hosts.j2", cluster=cluster.name, entries=list(hosts_entries(cluster, options)))


def resolv_conf(cluster: Cluster, options: BaseOptions) -> str | None:
    """/etc/resolv.conf, or None when it is not declared."""
    if options.resolver is None:
        return None
    search = options.resolver.search or (cluster.domain,)
    return render("base/resolv.conf.j2", nameservers=options.resolver.nameservers, search=search)


def package_files(cluster: Cluster, node: Node) -> dict[str, str | None]:
    """The package-source files that are rackwright's on this node: content, or None for "not there"."""
    mirrors = cluster.mirrors
    pip = None if mirrors.pypi is None else render("base/pip.conf.j2", index=mirrors.pypi)
    if node.family is Family.EL:
        return {PIP: pip, **_dnf_files(node.os, mirrors.dnf)}
    proxy = mirrors.apt_proxy
    return {
        PIP: pip,
        APT_PROXY: None if proxy is None else render("base/apt-proxy.conf.j2", proxy=proxy),
        SOURCES: None
        if mirrors.apt is None
        else apt_sources(node.os, mirrors.apt.rstrip("/"), mirrors.apt_security),
    }


def apt_sources(os: OsRelease, archive: str, security: str | None) -> str:
    """The site's apt sources. Ubuntu keeps its security suite in the archive itself, Debian does not."""
    here = release(os)
    suites = [here.codename, f"{here.codename}-updates"]
    if security is None and os in (OsRelease.UBUNTU_22_04, OsRelease.UBUNTU_24_04):
        suites.append(f"{here.codename}-security")
    return render(
        "base/apt.sources.j2",
        archive=archive,
        suites=suites,
        components=here.components,
        keyring=here.archive_keyring,
        security=None if security is None else security.rstrip("/"),
        security_suite=f"{here.codename}-security",
    )


def _dnf_files(os: OsRelease, base: str | None) -> dict[str, str | None]:
    """Rocky: its own files, in the layout of its mirrors. RHEL: a file of ours, as `dnf reposync` lays it.

    Without a mirror Rocky's files stay as installed and ours is not there.
    """
    if base is None:
        return {RHEL_REPOSITORIES: None} if os is OsRelease.RHEL_9 else {}
    base = base.rstrip("/")
    if os is OsRelease.RHEL_9:
        parts = [
            Repository(f"rhel-9-{part}", f"{base}/rhel-9-for-$basearch-{part}-rpms")
            for part in ("baseos", "appstream")
        ]
        return {RHEL_REPOSITORIES: render("base/dnf.repo.j2", repositories=parts, key=_RHEL_KEY)}
    main, extras = (
        [Repository(part.lower(), f"{base}/$releasever/{part}/$basearch/os/") for part in parts_]
        for parts_ in (("BaseOS", "AppStream", "CRB"), ("extras",))
    )
    return {
        ROCKY_REPOSITORIES: render("base/dnf.repo.j2", repositories=main, key=_ROCKY_KEY),
        ROCKY_EXTRAS: render("base/dnf.repo.j2", repositories=extras, key=_ROCKY_KEY),
    }


_FIREWALL = "f=firewall-cmd; systemctl -q is-active firewalld || f=firewall-offline-cmd"
_PERMANENT = "$([ $f = firewall-offline-cmd ] || echo --permanent)"


def firewall_read(networks: Iterable[str]) -> str:
    """Shell: `trusted` when firewalld, running or not, trusts each network, or is not installed."""
    asked = "".join(f" && $f {_PERMANENT} --zone=trusted --query-source={quote(net)} >&2" for net in networks)
    return f"rpm -q firewalld >&2 || {{ echo trusted; exit; }}; {_FIREWALL}; true{asked} && echo trusted"


def firewall_write(networks: Iterable[str]) -> str:
    """Shell: firewalld trusts each network, from now on and after a restart."""
    added = "".join(f"$f {_PERMANENT} --zone=trusted --add-source={quote(net)}; " for net in networks)
    return f"set -e; {_FIREWALL}; {added}[ $f = firewall-offline-cmd ] || firewall-cmd --reload"


def cluster_networks(cluster: Cluster) -> tuple[str, ...]:
    """Every network of the cluster in CIDR form, in file order."""
    return tuple(str(network.cidr) for network in cluster.networks.values())
