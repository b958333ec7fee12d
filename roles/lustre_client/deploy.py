"""Applies the lustre_client role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import Site, site_of
from rackwright.model.platforms import Capability, has
from rackwright.mount_roles import declared_kernel
from rackwright.mounts import mounts_of
from rackwright.operations import dkms, files, packages, settings, units
from rackwright.operations.modules import kernel_headers, module_available
from rackwright.operations.mounts import declared
from rackwright.operations.package_archive import package_archive
from rackwright.osfamily.names import names
from rackwright.roles.lustre_client import texts
from rackwright.roles.lustre_client.options import LNET_UNIT, LustreClientOptions


@deploy("lustre_client")
def lustre_client(options: LustreClientOptions) -> None:
    """The packages, the modules, LNet, then the mounts."""
    site = site_of()
    if not has(site.node.platform, Capability.NETWORK_FILESYSTEMS):
        return
    if options.archive is not None:
        package_archive(site, "lustre", options.archive)
    _install(site, options)
    _lnet(site, options)
    declared(mounts_of(site.node, options))


def _install(site: Site, options: LustreClientOptions) -> None:
    if options.modules == "dkms":
        kernel_headers(site)
    packages.installed(
        name="Install the Lustre client",
        packages=options.packages(site.cluster, site.node),
        hold=True,
        disruptive=True,
        build_modules=False,
    )
    if options.modules == "dkms":
        of = names(site.node.family, "lustre-dkms")
        dkms.built(
            name="Build the Lustre modules",
            sources=of.paths["sources"].format(upstream=options.module_version),
            kernel=declared_kernel(site.cluster, site.node),
            _timeout=options.build_minutes * 60,
        )
    module_available(site, "lustre")


def _lnet(site: Site, options: LustreClientOptions) -> None:
    interfaces = options.interfaces(site.cluster, site.node)
    nids = tuple(one.nid for one in interfaces)
    content = texts.conf(site.cluster, site.node, options)
    files.file(name="Write the LNet networks", path=texts.CONF, content=content)
    units.unit(name="Configure LNet at boot", unit=LNET_UNIT, disruptive=False, after_reboot=True)
    # A restart would unload the modules below every mount, so what is new is added to the running LNet instead.
    settings.setting(
        name="Bring up the LNet networks",
        target="LNet's NIDs",
        read=texts.read_up(nids),
        want="\n".join(nids),
        write=texts.bring_up(interfaces),
        after_reboot=True,
    )
