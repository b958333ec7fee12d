"""Applies the efa role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import site_of
from rackwright.model.platforms import Capability, has
from rackwright.operations import archives, files, packages, settings
from rackwright.osfamily.names import names
from rackwright.roles.efa import texts
from rackwright.roles.efa.options import EfaOptions


@deploy("efa")
def efa(options: EfaOptions) -> None:
    """The installer as declared, run where another version ran last."""
    site = site_of()
    if not has(site.node.platform, Capability.KERNEL_MODULES):
        return
    files.directory(name="Create the download folder", path=texts.DOWNLOADS)
    if curl := names(site.node.family, "curl").packages:
        packages.installed(name="Install curl", packages=curl)
    archives.download(
        name="Fetch the EFA installer",
        path=f"{texts.DOWNLOADS}/{options.tarball}",
        url=texts.url(site.cluster, options),
        sha256=options.sha256,
    )
    settings.setting(
        name="Install EFA",
        target="aws-efa-installer",
        read=texts.READ_VERSION,
        want=options.version,
        write=texts.install(options),
        disruptive=True,  # libfabric and the driver change under what runs
        _timeout=options.install_minutes * 60,
    )
