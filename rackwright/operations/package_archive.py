"""Package archives that a role's options declare, each with its trusted key."""

from __future__ import annotations

from rackwright.data import Site
from rackwright.model.package_archive import PackageArchive
from rackwright.operations import archives, files, packages
from rackwright.osfamily.names import names
from rackwright.render import render


def package_archive(site: Site, name: str, archive: PackageArchive) -> None:
    """The package tool takes packages from this archive, signed by its key and no other."""
    of = names(site.node.family, "package-archive")
    key = of.paths["key"].format(name=name)
    packages.installed(name="Install what reads keys", packages=of.packages)
    if (folder := of.paths.get("key_folder")) is not None:
        files.directory(name="Make the folder of archive keys", path=folder)
    archives.key(
        name=f"Fetch the key of the archive {name}",
        path=key,
        url=archive.key_url,
        fingerprint=archive.fingerprint,
    )
    files.file(
        name=f"Set the package source {name}",
        path=of.paths["source"].format(name=name),
        content=render(of.settings["template"], name=name, archive=archive, key=key),
    )
