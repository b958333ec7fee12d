"""Applies the cvmfs role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.operations import files, packages, units
from rackwright.osfamily.names import names
from rackwright.roles.cvmfs import texts
from rackwright.roles.cvmfs.options import CvmfsOptions


@deploy("cvmfs")
def cvmfs(options: CvmfsOptions) -> None:
    """The client, its settings, and an automount for each repository; autofs is not used."""
    site = site_of()
    packages.installed(name="Install CernVM-FS", packages=names(site.node.family, "cvmfs").packages)
    if options.packages:
        packages.installed(name="Install repository addresses and keys", packages=options.packages)
    files.directory(
        name=f"Create {options.cache}", path=options.cache, mode="700", owner="cvmfs", group="cvmfs"
    )
    for path, content in host.loop(  # type: ignore[no-untyped-call]
        texts.files(site.cluster, site.node, options).items()
    ):
        files.file(name=f"Write {path}", path=path, content=content)
    for name in host.loop(options.mounted):  # type: ignore[no-untyped-call]
        units.unit(name=f"Mount {name} on first use", unit=texts.automount(name))
    # A mounted repository keeps the settings that it was mounted with.
    for name in host.loop(options.mounted):  # type: ignore[no-untyped-call]
        units.unit(
            name=f"Mount {name} with its settings",
            unit=texts.mount(name),
            running=None,
            enabled=None,
            restart_on=texts.read_by(name, options),
        )
