"""Applies the weka_client role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import Site, site_of
from rackwright.model.platforms import Capability, has
from rackwright.mounts import mounts_of
from rackwright.operations import archives, files, packages, settings, units
from rackwright.operations.modules import kernel_headers
from rackwright.operations.mounts import declared
from rackwright.osfamily.names import names
from rackwright.roles.weka_client import texts
from rackwright.roles.weka_client.options import AGENT, TOKEN, WekaClientOptions


@deploy("weka_client")
def weka_client(options: WekaClientOptions) -> None:
    """The agent as declared, its cgroups mode, then the mounts."""
    site = site_of()
    if not has(site.node.platform, Capability.NETWORK_FILESYSTEMS):
        return
    _install(site, options)
    settings.setting(
        name="Prevent WEKA's cgroups from hiding cores",
        target="cgroup_mode of the WEKA agent",
        read=texts.READ_CGROUPS,
        want="none",
        write=texts.WRITE_CGROUPS,
    )
    if options.stored_as is not None:
        files.file(
            name="Write the WEKA mount token",
            path=TOKEN,
            content=site.secret(options.stored_as).reveal(),
            mode="600",
            sensitive=True,
        )
    units.unit(name="Start the WEKA agent", unit=AGENT, restart_on=(texts.CONF,))
    declared(mounts_of(site.node, options))


def _install(site: Site, options: WekaClientOptions) -> None:
    modules_need = names(site.node.family, "weka-build").packages
    kernel_headers(site)
    files.directory(name="Create the download folder", path=texts.DOWNLOADS)
    packages.installed(
        name="Install the dependencies of the WEKA installer",
        packages=(*names(site.node.family, "curl").packages, *modules_need),
    )
    archives.download(
        name="Fetch the WEKA client",
        path=f"{texts.DOWNLOADS}/{options.tarball}",
        url=texts.url(site.cluster, options),
        sha256=options.sha256,
    )
    settings.setting(
        name="Install the WEKA client",
        target="weka",
        read=texts.READ_VERSION,
        want=options.version,
        write=texts.install(options),
        disruptive=True,  # the agent below every mount is replaced
        _timeout=options.install_minutes * 60,
    )
