"""What the proxy role writes and reads, as text: shared by the deploy and its checks."""

from __future__ import annotations

from shlex import quote

from rackwright.model.cluster import Cluster, Node
from rackwright.render import render
from rackwright.roles.proxy.options import ProxyOptions

PROFILE = "/etc/profile.d/rackwright-proxy.sh"
DNF = "/etc/dnf/dnf.conf"
NO_PROXY = "none"
"""What DNF_READ prints where dnf has no proxy."""
DNF_READ = f"p=$(sed -n 's/^[[:space:]]*proxy[[:space:]]*=[[:space:]]*//p' {DNF}) && echo ${{p:-{NO_PROXY}}}"
"""Shell: dnf's own proxy."""


def profile(cluster: Cluster, node: Node, options: ProxyOptions) -> str:
    """Variables of login shells, in both spellings: curl reads `http_proxy` in small letters alone."""
    variables = options.proxy_environment(cluster, node).items()
    return render("proxy/profile.sh.j2", variables=[(name, quote(value)) for name, value in variables])


def dnf_proxy(cluster: Cluster, options: ProxyOptions) -> str:
    """dnf's proxy, or NO_PROXY where a mirror of the site replaces the distribution's repositories."""
    return NO_PROXY if cluster.mirrors.dnf is not None else options.https or options.http


def dnf_write(proxy: str) -> str:
    """Shell: gives dnf this proxy; dnf.conf has one section."""
    remove = f"sed -i '/^[[:space:]]*proxy[[:space:]]*=/d' {DNF}"
    if proxy == NO_PROXY:
        return remove
    append = f"/^\\[main\\]/a proxy={proxy}"
    return f"{remove} && sed -i {quote(append)} {DNF}"
