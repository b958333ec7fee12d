"""Docker's own package archive, for the roles that take packages from it."""

from __future__ import annotations

from rackwright.data import Site
from rackwright.operations import archives, files, packages
from rackwright.osfamily.names import names
from rackwright.render import render

ARCHIVE = "https://download.docker.com/linux"


def docker_archive(site: Site, url: str) -> None:
    """The package tool takes Docker's packages from `url`, signed by Docker's key and no other."""
    os, archive = site.node.os, names(site.node.family, "docker-archive")
    base, key = f"{url.rstrip('/')}/{os.docker_archive}", archive.paths["key"]
    packages.installed(name="Install what reads keys", packages=archive.packages)
    if (folder := archive.paths.get("key_folder")) is not None:
        files.directory(name="Make the folder of archive keys", path=folder)
    archives.key(
        name="Fetch the key of Docker's packages",
        path=key,
        url=f"{base}/gpg",
        fingerprint=archive.settings["fingerprint"],
    )
    files.file(
        name="Set Docker's package source",
        path=archive.paths["source"],
        content=render(archive.settings["template"], url=base, suite=os.codename, key=key),
    )
