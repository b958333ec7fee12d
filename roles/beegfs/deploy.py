"""Brings a node to what the beegfs role declares."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.model.platforms import Capability, has
from rackwright.mount_roles import declared_kernel
from rackwright.mounts import mounts_of
from rackwright.operations import dkms, files, modules, packages
from rackwright.operations.mounts import declared
from rackwright.operations.package_archive import package_archive
from rackwright.osfamily.names import names
from rackwright.roles.beegfs import texts
from rackwright.roles.beegfs.options import AUTH, AUTH_SECRET, FOLDER, BeegfsOptions
from rackwright.roles.beegfs.server_deploy import servers


@deploy("beegfs")
def beegfs(options: BeegfsOptions) -> None:
    """The packages and the shared secret, the servers, then the client's module and mounts."""
    site = site_of()
    if not has(site.node.platform, Capability.NETWORK_FILESYSTEMS):
        return
    if options.archive is not None:
        package_archive(site, "beegfs", options.archive)
    files.directory(name="Make the folder of BeeGFS' settings", path=FOLDER)
    files.file(
        name="Write the secret that BeeGFS' nodes authenticate with",
        path=AUTH,
        content=site.secret(AUTH_SECRET).reveal(),
        mode="400",
        sensitive=True,
    )
    # The build reads its settings, so they are written first.
    for path, content in host.loop(texts.client_files(site.cluster, site.node, options).items()):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=content)
    if options.mounted(site.node):
        modules.headers(site)
    packages.installed(
        name="Install BeeGFS",
        packages=options.packages(site.node),
        hold=True,
        disruptive=True,
        start_daemons=False,
        build_modules=False,
    )
    servers(site, options)
    if options.mounted(site.node):
        _client(site, options)


def _client(site: Site, options: BeegfsOptions) -> None:
    of = names(site.node.family, "beegfs-client")
    dkms.built(
        name="Build BeeGFS' module",
        sources=of.paths["sources"].format(upstream=options.module_version),
        kernel=declared_kernel(site.cluster, site.node),
        _timeout=options.build_minutes * 60,
    )
    modules.available(site, "beegfs")
    declared(mounts_of(site.node, options))
