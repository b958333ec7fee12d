"""Applies the beegfs role to a node."""

from __future__ import annotations

from pathlib import PurePosixPath

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.model.platforms import Capability, has
from rackwright.mount_roles import declared_kernel
from rackwright.mounts import mounts_of
from rackwright.operations import dkms, files, packages, settings, units
from rackwright.operations.certificates import issue_certificates
from rackwright.operations.modules import kernel_headers, module_available
from rackwright.operations.mounts import declared
from rackwright.operations.package_archive import package_archive
from rackwright.osfamily.names import names
from rackwright.roles.beegfs import texts
from rackwright.roles.beegfs.options import AUTH, AUTH_SECRET, FOLDER, BeegfsOptions, drop_in


@deploy("beegfs")
def beegfs(options: BeegfsOptions) -> None:
    """The packages and the shared secret, the servers, then the client's module and mounts."""
    site = site_of()
    if not has(site.node.platform, Capability.NETWORK_FILESYSTEMS):
        return
    if options.archive is not None:
        package_archive(site, "beegfs", options.archive)
    files.directory(name="Create the folder for BeeGFS settings", path=FOLDER)
    files.file(
        name="Write the BeeGFS connection secret",
        path=AUTH,
        content=site.secret(AUTH_SECRET).reveal(),
        mode="400",
        sensitive=True,
    )
    # The build reads its settings, so they are written first.
    for path, content in host.loop(texts.client_files(site.cluster, site.node, options).items()):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=content)
    if options.mounted(site.node):
        kernel_headers(site)
    packages.installed(
        name="Install BeeGFS",
        packages=options.packages(site.node),
        hold=True,
        disruptive=True,
        start_daemons=False,
        build_modules=False,
    )
    _servers(site, options)
    if options.mounted(site.node):
        _client(site, options)


def _servers(site: Site, options: BeegfsOptions) -> None:
    """The management daemon, the metadata server, the storage server: those that the node runs."""
    services = options.services(site.node)
    issue_certificates(options)
    for path, content in host.loop(texts.server_files(site.cluster, site.node, options).items()):  # type: ignore[no-untyped-call]
        files.directory(name=f"Create the folder for {path}", path=str(PurePosixPath(path).parent))
        files.file(name=f"Write {path}", path=path, content=content)
    if "mgmtd" in services:
        _mgmtd(site, options)
    for service, targets in host.loop(texts.targets(site.node, options).items()):  # type: ignore[no-untyped-call]
        for target in host.loop(targets):  # type: ignore[no-untyped-call]
            settings.setting(
                name=f"Prepare {target.folder} for BeeGFS",
                target=target.folder,
                read=texts.prepared(target),
                want="prepared",
                write=texts.prepare(service, target),
            )
        units.unit(
            name=f"Start beegfs-{service}",
            unit=f"beegfs-{service}.service",
            restart_on=(f"{FOLDER}/beegfs-{service}.conf", drop_in(service), AUTH),
        )


def _mgmtd(site: Site, options: BeegfsOptions) -> None:
    settings.setting(
        name="Create the management daemon's database",
        target=texts.DATABASE,
        read=f"[ -s {texts.DATABASE} ] && echo there",
        want="there",
        write=texts.INIT,
    )
    chains = tuple(one.chain for one in options.certificates(site.cluster, site.node))
    units.unit(
        name="Start beegfs-mgmtd",
        unit="beegfs-mgmtd.service",
        restart_on=(texts.MGMTD, AUTH, *chains),
    )


def _client(site: Site, options: BeegfsOptions) -> None:
    of = names(site.node.family, "beegfs-client")
    dkms.built(
        name="Build the BeeGFS module",
        sources=of.paths["sources"].format(upstream=options.module_version),
        kernel=declared_kernel(site.cluster, site.node),
        _timeout=options.build_minutes * 60,
    )
    module_available(site, "beegfs")
    declared(mounts_of(site.node, options))
