"""Applies the containerd role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.operations import files, packages, units
from rackwright.operations.docker_archive import docker_archive
from rackwright.operations.registry_files import registry_files
from rackwright.roles.containerd import texts
from rackwright.roles.containerd.options import ContainerdOptions


@deploy("containerd")
def containerd(options: ContainerdOptions) -> None:
    """Configuration first, so that the package starts the daemon with it."""
    site = site_of()
    if options.source == "docker":
        docker_archive(site, options.repository)
    declared = texts.declared(site.cluster, site.node, options, lambda name: site.secret(name).reveal())
    secret = texts.with_logins(site.cluster, options)
    # the mode that containerd 1.7.24 of Debian 13 was seen to give it
    files.directory(name="Create containerd's data folder", path=options.root, mode="700")
    folders = [path.rpartition("/")[0] for path in declared if path != texts.CRICTL]
    for folder in host.loop([*dict.fromkeys(folders), texts.REGISTRIES]):  # type: ignore[no-untyped-call]
        files.directory(name=f"Create {folder}", path=folder)
    for path, content in host.loop(declared.items()):  # type: ignore[no-untyped-call]
        files.file(
            name=f"Write {path}",
            path=path,
            content=content,
            mode="600" if path in secret else "644",
            sensitive=path in secret,
        )
    registry_files(options, None, None)
    names = texts.names(site.node, options)
    packages.installed(name="Install containerd", packages=names.packages)
    units.unit(
        name="Start containerd with its settings",
        unit=texts.UNIT,
        restart_on=(texts.CONF, texts.DROP_IN),
        disruptive=False,  # every container has its own shim, to which the daemon reconnects
    )
