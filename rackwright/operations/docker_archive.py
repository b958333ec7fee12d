"""Docker's own package archive, for the roles that take packages from it."""

from __future__ import annotations

from rackwright.data import Site
from rackwright.model.types import Family, OsRelease
from rackwright.operations import archives, files, packages
from rackwright.osfamily.names import release
from rackwright.render import render

ARCHIVE = "https://download.docker.com/linux"

# As docs.docker.com/engine/install publishes them, and as many public installation scripts and logs of dnf, which do
# not copy each other, have them (read 2026-11-21). A wrong one refuses the key and lets no other in.
DEB_FINGERPRINT = "9DC858229FC7DD38854AE2D88D81803C0EBFCD88"
RPM_FINGERPRINT = "060A61C51B558A7F742B77AAC52FEB6B621E9F35"

_DISTRIBUTION = {
    OsRelease.DEBIAN_12: "debian",
    OsRelease.DEBIAN_13: "debian",
    OsRelease.UBUNTU_22_04: "ubuntu",
    OsRelease.UBUNTU_24_04: "ubuntu",
    OsRelease.ROCKY_9: "centos",
    OsRelease.RHEL_9: "rhel",
}


def docker_archive(site: Site, url: str) -> None:
    """apt or dnf takes Docker's packages from `url`, signed by Docker's key and no other."""
    base = f"{url.rstrip('/')}/{_DISTRIBUTION[site.node.os]}"
    if site.node.family is Family.DEBIAN:
        path = "/etc/apt/keyrings/docker.asc"
        packages.installed(name="Install what reads keys", packages=("curl", "gpg"))
        files.directory(name="Make the folder of archive keys", path="/etc/apt/keyrings")
        archives.key(
            name="Fetch the key of Docker's packages",
            path=path,
            url=f"{base}/gpg",
            fingerprint=DEB_FINGERPRINT,
        )
        files.file(
            name="Set Docker's package source",
            path="/etc/apt/sources.list.d/docker.sources",
            content=render(
                "docker/docker.sources.j2", url=base, suite=release(site.node.os).codename, key=path
            ),
        )
        return
    path = "/etc/pki/rpm-gpg/RPM-GPG-KEY-docker"
    packages.installed(name="Install what reads keys", packages=("gnupg2",))
    archives.key(
        name="Fetch the key of Docker's packages", path=path, url=f"{base}/gpg", fingerprint=RPM_FINGERPRINT
    )
    files.file(
        name="Set Docker's package source",
        path="/etc/yum.repos.d/docker-ce.repo",
        content=render("docker/docker-ce.repo.j2", url=base, key=path),
    )
