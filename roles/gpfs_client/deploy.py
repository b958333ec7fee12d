"""Applies the gpfs_client role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.model.platforms import Capability, has
from rackwright.mount_roles import declared_kernel
from rackwright.mounts import mounts_of
from rackwright.operations import archives, files, packages, settings, units
from rackwright.operations.modules import kernel_headers
from rackwright.operations.mounts import declared
from rackwright.osfamily.names import names
from rackwright.roles.gpfs_client import readings
from rackwright.roles.gpfs_client.options import UNIT, GpfsClientOptions

DOWNLOADS = "/var/cache/rackwright"


@deploy("gpfs_client")
def gpfs_client(options: GpfsClientOptions) -> None:
    """The packages as declared, the kernel layer, then the mounts."""
    site = site_of()
    if not has(site.node.platform, Capability.NETWORK_FILESYSTEMS):
        return
    _install(site, options)
    _build(site, options)
    # A node that is not yet a member has nothing to start.
    units.unit(name="Start Storage Scale at boot", unit=UNIT, running=None, disruptive=False)
    declared(mounts_of(site.node, options))


def _install(site: Site, options: GpfsClientOptions) -> None:
    files.directory(name="Create the download folder", path=DOWNLOADS)
    kernel_headers(site)
    needs = (*names(site.node.family, "curl").packages, *names(site.node.family, "gpfs-build").packages)
    packages.installed(name="Install the build tools for the kernel layer", packages=needs)
    mirror = (site.cluster.mirrors.files or "").rstrip("/")
    for file, one in host.loop(options.packages.items()):  # type: ignore[no-untyped-call]
        path = f"{DOWNLOADS}/{file}"
        archives.download(name=f"Fetch {file}", path=path, url=f"{mirror}/{file}", sha256=one.sha256)
        archives.installed(name=f"Install {one.package}", package=one.package, version=one.version, path=path)
    packages.installed(name="Hold Storage Scale", packages=options.versions(), hold=True, disruptive=True)


def _build(site: Site, options: GpfsClientOptions) -> None:
    kernel = declared_kernel(site.cluster, site.node)
    of = readings.kernel_word(kernel)
    settings.setting(
        name="Build Storage Scale's kernel layer",
        target=f"module mmfs26 for {kernel or 'the running kernel'}",
        read=readings.layer(of),
        want="built",
        write=(
            f'[ "$(uname -r)" = {of} ] || {{ echo "mmbuildgpl builds for the running kernel, $(uname -r), not for "{of} >&2; '
            f"exit 1; }}\n{readings.BIN}/mmbuildgpl"
        ),
        after_reboot=True,
        _timeout=options.build_minutes * 60,
    )
