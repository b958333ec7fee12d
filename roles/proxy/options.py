"""Options of the proxy role."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from ipaddress import IPv4Address
from urllib.parse import urlsplit

from pydantic import Field, field_validator

from rackwright.model.cluster import Cluster, Node
from rackwright.model.host_names import host_name
from rackwright.model.options import RoleOptions
from rackwright.model.services import SetsProxy
from rackwright.model.strings import HttpUrl
from rackwright.model.text import mistake
from rackwright.model.types import NodeRole

_DIRECT = re.compile(r"\.?[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(/[0-9]{1,2})?(:[0-9]{1,5})?")


class ProxyOptions(RoleOptions, SetsProxy):
    """The proxy of login shells and of daemons that fetch from outside."""

    http: HttpUrl = Field(
        description="Proxy for http and, unless `https` is declared, for https. Reached by plain http and without "
        "credentials: every user of every node could read them."
    )
    https: HttpUrl | None = Field(default=None, description="Another proxy for https. None: that of `http`.")
    no_proxy: tuple[str, ...] = Field(
        default=(),
        description="Names, domains (`.example.com`) and networks (CIDR) that are reached directly, besides the "
        "cluster's own names and networks and the hosts of `mirrors`.",
    )
    probe: str = Field(
        default="example.com",
        description="A name outside, port 443 of which `verify` asks the proxy for. example.com is reserved (RFC 2606).",
    )

    @field_validator("http", "https")
    @classmethod
    def _is_a_proxy(cls, url: str | None) -> str | None:
        if url is None:
            return None
        parts = urlsplit(url)
        if parts.scheme != "http":
            raise mistake("A proxy is reached by plain http.", "e.g. `http://proxy.example.com:3128`")
        if parts.path.strip("/"):
            raise mistake("The URL of a proxy has no path.", f"write `http://{parts.netloc}`")
        return url.rstrip("/")

    @field_validator("no_proxy")
    @classmethod
    def _are_direct(cls, entries: tuple[str, ...]) -> tuple[str, ...]:
        for entry in entries:
            if not _DIRECT.fullmatch(entry):
                raise mistake(
                    f"{entry!r} is not a name, a domain or a network.", "e.g. `.example.com` or `10.1.0.0/16`"
                )
        return entries

    @field_validator("probe")
    @classmethod
    def _is_host_name(cls, name: str) -> str:
        return host_name(name)

    @property
    def urls(self) -> tuple[str, ...]:
        """Each proxy once."""
        return tuple(dict.fromkeys((self.http, self.https or self.http)))

    def direct(self, cluster: Cluster) -> tuple[str, ...]:
        """What is reached without the proxy, each once.

        Programs disagree: Go and curl read networks, Python does not; wget wants a dot before a domain and curl wants
        none; so domains stand twice. The heads' short names are there because services are on heads; other
        short names would make the variable as long as the cluster.
        """
        return tuple(
            dict.fromkeys(
                (
                    *("localhost", "127.0.0.1", "::1", cluster.domain, f".{cluster.domain}"),
                    *(str(network.cidr) for network in cluster.inner_networks),
                    *(node.name for node in cluster.holding(NodeRole.HEAD)),
                    *mirror_hosts(cluster),
                    *self.no_proxy,
                )
            )
        )

    def proxy_environment(self, cluster: Cluster, node: Node) -> Mapping[str, str]:
        """Variables in capitals, which Go and Python read as well as small ones."""
        return {
            "HTTP_PROXY": self.http,
            "HTTPS_PROXY": self.https or self.http,
            "NO_PROXY": ",".join(self.direct(cluster)),
        }

    def warnings(self, cluster: Cluster) -> Iterable[tuple[str, str, str | None]]:
        """apt, which has a separate proxy setting."""
        nodes = cluster.running("proxy", self)
        uses_apt = any(node.family.package_tool == "apt" for node in nodes)
        if uses_apt and cluster.mirrors.apt is None and cluster.mirrors.apt_proxy is None:
            yield (
                "http",
                "apt does not use this proxy.",
                f"declare `mirrors.apt_proxy`, e.g. `apt_proxy: {self.http}`, or `mirrors.apt`",
            )


def mirror_hosts(cluster: Cluster) -> tuple[str, ...]:
    """Hosts of the site's mirrors that are in none of the cluster's networks."""
    values = cluster.mirrors.model_dump(exclude_none=True).values()
    hosts = (urlsplit(value if "://" in value else f"//{value}").hostname or "" for value in values)
    return tuple(dict.fromkeys(host for host in hosts if not _inside(host, cluster)))


def _inside(host: str, cluster: Cluster) -> bool:
    try:
        address = IPv4Address(host)
    except ValueError:
        return host == cluster.domain or host.endswith(f".{cluster.domain}")
    return any(address in network.cidr for network in cluster.inner_networks)
