"""Applies the proxy role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.operations import files, settings
from rackwright.roles.proxy import texts
from rackwright.roles.proxy.options import ProxyOptions


@deploy("proxy")
def proxy(options: ProxyOptions) -> None:
    """Login shells and dnf. Roles whose daemons fetch from outside put it into their own units; apt's is a mirror's."""
    site = site_of()
    files.file(
        name="Set the proxy in login shells",
        path=texts.PROFILE,
        content=texts.profile(site.cluster, site.node, options),
    )
    if site.node.family.package_tool == "dnf":
        wanted = texts.dnf_proxy(site.cluster, options)
        settings.setting(
            name="Set dnf's proxy",
            target="dnf's proxy",
            read=texts.DNF_READ,
            want=wanted,
            write=texts.dnf_write(wanted),
        )
