"""Applies the enroot_pyxis role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.extra_lines import named
from rackwright.model.types import NodeRole
from rackwright.operations import archives, files, packages, settings, units
from rackwright.operations.user_folders import user_folders
from rackwright.osfamily.names import names
from rackwright.roles.enroot_pyxis import texts
from rackwright.roles.enroot_pyxis.options import EnrootPyxisOptions


@deploy("enroot_pyxis")
def enroot_pyxis(options: EnrootPyxisOptions) -> None:
    """enroot, its settings and hooks, and the plugin before the line that makes Slurm load it."""
    site = site_of()
    files.directory(name="Create the download folder", path=texts.DOWNLOADS)
    if curl := names(site.node.family, "curl").packages:
        packages.installed(name="Install curl", packages=curl)
    _packages(site, options)
    if options.pyxis_source == "build":
        _build(site, options)
    declared = texts.declared(options)
    files.directory(name="Create the folder for hooks", path=texts.HOOKS)
    for path, content in host.loop(declared.items()):  # type: ignore[no-untyped-call]
        files.file(name=named(f"Write {path}", content), path=path, content=content)
    user_folders(site.node, texts.folders(options))
    for hook in host.loop(options.hooks):  # type: ignore[no-untyped-call]
        files.link(
            name=f"Enable {hook}", path=f"{texts.HOOKS}/{hook}", target=f"{texts.SHIPPED_HOOKS}/{hook}"
        )
    if site.node.holds(NodeRole.WORKER):
        # jobs keep running: their slurmstepd are separate processes
        units.unit(
            name="Load pyxis in slurmd",
            unit="slurmd.service",
            running=None,
            enabled=None,
            restart_on=(texts.PYXIS_CONF, texts.plugin(options)),
            disruptive=False,
        )


def _packages(site: Site, options: EnrootPyxisOptions) -> None:
    for file, (package, version) in host.loop(options.packages(site.node).items()):  # type: ignore[no-untyped-call]
        _download(site, options, file)
        archives.installed(
            name=f"Install {package}", package=package, version=version, path=f"{texts.DOWNLOADS}/{file}"
        )


def _build(site: Site, options: EnrootPyxisOptions) -> None:
    _download(site, options, options.tarball)
    packages.installed(
        name="Install the build tools for pyxis",
        packages=names(site.node.family, "pyxis-build").packages,
        start_daemons=False,
    )
    settings.setting(
        name="Build pyxis",
        target=f"pyxis {options.pyxis_version}, built for the installed Slurm",
        read=texts.built_read(options),
        want="current",
        write=texts.build(options),
    )


def _download(site: Site, options: EnrootPyxisOptions, file: str) -> None:
    archives.download(
        name=f"Fetch {file}",
        path=f"{texts.DOWNLOADS}/{file}",
        url=texts.url(site.cluster, options, file),
        sha256=options.sha256[file],
    )
