"""Applies the ray_on_slurm role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.operations import files
from rackwright.operations.python_environments import locked_environment
from rackwright.roles.ray_on_slurm import places, texts
from rackwright.roles.ray_on_slurm.options import RayOnSlurmOptions


@deploy("ray_on_slurm")
def ray_on_slurm(options: RayOnSlurmOptions) -> None:
    """The environment, then what starts Ray from it."""
    site = site_of()
    locked_environment(options)
    files.directory(name=f"Create {places.SHARE}", path=places.SHARE)
    for path, text in host.loop(texts.programs(options).items()):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=text, mode="755")
    for path, text in host.loop(texts.files(site.cluster).items()):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=text)
