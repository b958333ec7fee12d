"""apptainer's packages and files."""

from __future__ import annotations

from rackwright.model.cluster import Cluster
from rackwright.render import render
from rackwright.roles.apptainer.options import ApptainerOptions
from rackwright.workload.user_folders import UserFolders

CONF = "/etc/apptainer/apptainer.conf"
PROFILE = "/etc/profile.d/rackwright-apptainer.sh"
RELEASES = "https://github.com/apptainer/apptainer/releases/download"


def url(cluster: Cluster, options: ApptainerOptions, file: str) -> str:
    """Where a package file comes from: the site's mirror, else the project's releases."""
    mirror = cluster.mirrors.files
    return f"{mirror.rstrip('/')}/{file}" if mirror else f"{RELEASES}/v{options.version}/{file}"


def folders(options: ApptainerOptions) -> UserFolders:
    """Where users keep images and builds."""
    return UserFolders("apptainer", (options.cache_root,) if options.cache_root is not None else ())


def declared(options: ApptainerOptions) -> dict[str, str]:
    """Every file of the role, by path."""
    files = {CONF: render("apptainer/apptainer.conf.j2", options=options)}
    if options.cache_root is not None:
        files[PROFILE] = render("apptainer/profile.sh.j2", root=options.cache_root)
    return files
