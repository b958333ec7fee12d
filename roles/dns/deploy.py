"""Applies the dns role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.operations import files, packages, settings, units
from rackwright.osfamily.names import names
from rackwright.roles.dns import texts
from rackwright.roles.dns.options import DnsOptions

RESOLVED = "systemd-resolved.service"


@deploy("dns")
def dns(options: DnsOptions) -> None:
    """The head's resolver answers before /etc/resolv.conf names it; other programs release that file last."""
    site = site_of()
    if options.serves(site.node):
        _unbound(site, options)
    writers = names(site.node.family, "resolv.conf").packages
    if writers:
        packages.absent(name="Remove packages that write /etc/resolv.conf", packages=writers)
    for path, content in host.loop(texts.writers_off(site.node).items()):  # type: ignore[no-untyped-call]
        if (folder := path.rpartition("/")[0]) != "/etc":
            files.directory(name=f"Create {folder}", path=folder)
        files.file(name=f"Write {path}", path=path, content=content)
    if site.node.family.has_networkmanager:
        units.unit(
            name="Reload NetworkManager",
            unit="NetworkManager.service",
            running=None,
            enabled=None,
            reload_on=(texts.NETWORKMANAGER,),
        )
    files.file(
        name="Write /etc/resolv.conf",
        path=texts.RESOLV_CONF,
        content=texts.resolv_conf(site.cluster, site.node, options),
        validate=texts.some_answer(site.cluster),  # nodes of one wave are applied at the same time
    )
    units.unit(name="Mask systemd-resolved", unit=RESOLVED, masked=True)


def _unbound(site: Site, options: DnsOptions) -> None:
    unbound = names(site.node.family, "unbound")
    # Its first start is with our configuration: the packaged one asks the root servers.
    packages.installed(name="Install unbound", packages=unbound.packages, start_daemons=False)
    if options.dnssec and (packaged := unbound.paths.get("packaged_trust_anchor")):
        anchor = unbound.paths["trust_anchor"]  # unbound-checkconf refuses settings that name a missing one
        settings.setting(
            name="Create unbound's trust anchor",
            target=anchor,
            read=f"test -s {anchor} && echo there",
            want="there",
            write=f"install -o unbound -g unbound -m 644 {packaged} {anchor}",
        )
    declared = texts.unbound_files(site.cluster, site.node, options)
    for path, content in host.loop(declared.items()):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=content, validate="unbound-checkconf %s")
    units.unit(
        name="Start unbound with its settings",
        unit=unbound.unit or "",
        restart_on=tuple(declared),
        disruptive=False,  # it is back in less than the second after which nodes ask again
    )
