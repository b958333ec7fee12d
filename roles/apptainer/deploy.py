"""Applies the apptainer role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.operations import archives, files, packages
from rackwright.operations.user_folders import no_user_folders, user_folders
from rackwright.render import render
from rackwright.roles.apptainer import texts
from rackwright.roles.apptainer.options import ApptainerOptions

_KEY_SERVER = "https://keyserver.ubuntu.com/pks/lookup?op=get&options=mr&search=0x"
_DOWNLOADS = "/var/cache/rackwright"


@deploy("apptainer")
def apptainer(options: ApptainerOptions) -> None:
    """The packages, then the settings: the package would ask about a configuration file that is already there."""
    site = site_of()
    if options.source == "release":
        _release(site, options)
    else:
        if options.source == "ppa":
            _ppa(site, options)
        packages.installed(name="Install apptainer", packages=options.packages)
    if not options.setuid:
        packages.absent(name="Remove the setuid starter", packages=("apptainer-suid",))
    if options.cache_root is not None:
        user_folders(site.node, texts.folders(options))
    else:
        no_user_folders(site.node, texts.folders(options))
        files.absent(name="Keep caches in homes", path=texts.PROFILE)
    for path, content in host.loop(texts.declared(options).items()):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=content)


def _release(site: Site, options: ApptainerOptions) -> None:
    packages.installed(name="Install curl", packages=("curl",))
    files.directory(name="Create the download folder", path=_DOWNLOADS)
    for file in host.loop(options.package_files(site.node)):  # type: ignore[no-untyped-call]
        path = f"{_DOWNLOADS}/{file}"
        url = texts.url(site.cluster, options, file)
        archives.download(name=f"Fetch {file}", path=path, url=url, sha256=options.sha256[file])
        archives.installed(
            name=f"Install {file}", package=file.partition("_")[0], version=options.version or "", path=path
        )


def _ppa(site: Site, options: ApptainerOptions) -> None:
    key = "/etc/apt/keyrings/apptainer.asc"
    fingerprint = options.ppa_fingerprint or ""
    packages.installed(name="Install curl and gpg", packages=("curl", "gpg"))
    files.directory(name="Create the folder for archive keys", path="/etc/apt/keyrings")
    archives.key(
        name="Fetch the PPA key", path=key, url=f"{_KEY_SERVER}{fingerprint}", fingerprint=fingerprint
    )
    files.file(
        name="Add the PPA as a package source",
        path="/etc/apt/sources.list.d/apptainer.sources",
        content=render("apptainer/ppa.sources.j2", suite=site.node.os.codename, key=key),
    )
