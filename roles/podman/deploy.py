"""Applies the podman role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.operations import files, packages
from rackwright.operations.registry_files import registry_files
from rackwright.operations.user_folders import no_user_folders, user_folders
from rackwright.roles.podman import texts
from rackwright.roles.podman.options import PodmanOptions


@deploy("podman")
def podman(options: PodmanOptions) -> None:
    """Settings, then the packages: podman has no daemon, so nothing is ever restarted."""
    site = site_of()
    files.directory(name="Create podman's folder", path="/etc/containers")
    files.directory(name="Create the folder for registries", path=texts.REGISTRIES.rpartition("/")[0])
    files.directory(name="Create podman's data folder", path=options.graph_root, mode="700")
    if options.rootless_root is not None:
        user_folders(site.node, texts.folders(options))
    else:
        no_user_folders(site.node, texts.folders(options))
    for path, content in host.loop(texts.declared(site.cluster, site.node, options).items()):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=content)
    logins = options.auth_json(lambda name: site.secret(name).reveal())
    registry_files(options, texts.LOGINS, logins)
    packages.installed(name="Install podman", packages=texts.packages(site.node.os))
