"""Applies the hpc_stack role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.operations import archives, files, packages, settings
from rackwright.roles.hpc_stack import texts
from rackwright.roles.hpc_stack.options import HpcStackOptions
from rackwright.roles.hpc_stack.recipes import DOWNLOADS, Recipe, recipes


@deploy("hpc_stack")
def hpc_stack(options: HpcStackOptions) -> None:
    """Packages, NCCL as locked and held, what is built in the order of its needs, the users' environment."""
    site = site_of()
    packages.installed(name="Install MPI and its tools", packages=texts.packages(site.node, options))
    if nccl := texts.nccl(site.cluster, site.node, options):
        packages.installed(name="Install NCCL as locked", packages=nccl, hold=True)
    parts = recipes(site.cluster, site.node, options)
    if parts:
        files.directory(name="Create the download folder", path=DOWNLOADS)
    _build(options, parts)
    _environment(site, options, parts)


def _build(options: HpcStackOptions, parts: tuple[Recipe, ...]) -> None:
    for recipe in host.loop(parts):  # type: ignore[no-untyped-call]
        archives.download(
            name=f"Fetch the source code of {recipe.title}",
            path=recipe.tarball,
            url=recipe.url,
            sha256=recipe.sha256,
        )
        settings.setting(
            name=f"Build {recipe.title}",
            target=recipe.link,
            read=recipe.read,
            want=recipe.folder,
            write=recipe.write(options.build_jobs),
            _timeout=options.build_minutes * 60,
        )


def _environment(site: Site, options: HpcStackOptions, parts: tuple[Recipe, ...]) -> None:
    declared = texts.declared(options, parts)
    if any(text is not None for text in declared.values()):
        files.directory(name="Create the folder for module files", path=texts.MODULES)
        files.directory(name="Create the folder for Open MPI module files", path=f"{texts.MODULES}/openmpi")
    for path, content in host.loop(declared.items()):  # type: ignore[no-untyped-call]
        if content is None:
            files.absent(name=f"Remove {path}", path=path)
        else:
            files.file(name=f"Write {path}", path=path, content=content)
