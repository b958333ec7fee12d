"""Files of enroot and pyxis: what is downloaded, what is written."""

from __future__ import annotations

from shlex import quote

from rackwright.extra_lines import with_extra
from rackwright.model.cluster import Cluster
from rackwright.render import render
from rackwright.roles.enroot_pyxis.options import EnrootPyxisOptions
from rackwright.workload.user_folders import UserFolders

ENROOT_CONF = "/etc/enroot/enroot.conf"
TMPFILES = "/etc/tmpfiles.d/rackwright-enroot.conf"
PYXIS_CONF = "/etc/slurm/plugstack.conf.d/pyxis.conf"
HOOKS = "/etc/enroot/hooks.d"
SHIPPED_HOOKS = "/usr/share/enroot/hooks.d"
DOWNLOADS = "/var/cache/rackwright"
BUILT = "/usr/local/lib/slurm/spank_pyxis.so"
MARK = "/usr/local/share/pyxis/rackwright-built"
_FROM_PACKAGE = "/usr/lib/slurm/spank_pyxis.so"


def url(cluster: Cluster, options: EnrootPyxisOptions, file: str) -> str:
    """Where a file comes from: the site's mirror, else NVIDIA's releases on GitHub."""
    if cluster.mirrors.files:
        return f"{cluster.mirrors.files.rstrip('/')}/{file}"
    if file == options.tarball:
        return f"https://github.com/NVIDIA/pyxis/archive/refs/tags/v{options.pyxis_version}.tar.gz"
    return f"https://github.com/NVIDIA/enroot/releases/download/v{options.enroot_version}/{file}"


def plugin(options: EnrootPyxisOptions) -> str:
    """The SPANK plugin that Slurm loads."""
    return BUILT if options.pyxis_source == "build" else _FROM_PACKAGE


def folders(options: EnrootPyxisOptions) -> UserFolders:
    """Where users keep images and containers, and where enroot keeps what runs."""
    root = options.root
    return UserFolders(
        "enroot", ("/run/enroot", f"{root}/cache", f"{root}/data", f"{root}/tmp"), prefix="user-"
    )


def _lost_at_boot(options: EnrootPyxisOptions) -> tuple[str, ...]:
    """The others are on a disk, which may not be mounted: nothing is made below its mount point then."""
    return tuple(folder for folder in folders(options).parents if folder.startswith("/run/"))


def declared(options: EnrootPyxisOptions) -> dict[str, str]:
    """Every file the role writes, by path."""
    return {
        ENROOT_CONF: with_extra(
            render("enroot_pyxis/enroot.conf.j2", options=options), options.extra.enroot_conf
        ),
        TMPFILES: render("enroot_pyxis/tmpfiles.conf.j2", folders=_lost_at_boot(options)),
        PYXIS_CONF: render("enroot_pyxis/pyxis.conf.j2", options=options, plugin=plugin(options)),
    }


def built_read(options: EnrootPyxisOptions) -> str:
    """Shell: `current` when the plugin was built from this release for the Slurm that is installed."""
    version = quote(options.pyxis_version)
    return f'[ -s {BUILT} ] && [ "$(cat {MARK})" = {version}" $(srun --version)" ] && echo current'


def build(options: EnrootPyxisOptions) -> str:
    """Shell: builds and installs the plugin; the mark is written last."""
    return render(
        "enroot_pyxis/build.sh.j2",
        tarball=f"{DOWNLOADS}/{options.tarball}",
        version=options.pyxis_version,
        mark=MARK,
    )
