"""Applies the ray_on_slurm role to a node."""

from __future__ import annotations

import hashlib

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.model.proxy import proxy_variables
from rackwright.operations import files, packages
from rackwright.operations.python_environments import environment
from rackwright.osfamily.names import names
from rackwright.roles.ray_on_slurm import places, texts
from rackwright.roles.ray_on_slurm.options import RayOnSlurmOptions


@deploy("ray_on_slurm")
def ray_on_slurm(options: RayOnSlurmOptions) -> None:
    """The environment, then what starts Ray from it."""
    site = site_of()
    packages.installed(
        name="Install what makes environments", packages=names(site.node.family, "ray").packages
    )
    lock = texts.lock_text(site.cluster, options)
    environment(
        name="Install the locked Python environment",
        root=places.ENVIRONMENTS,
        lock=lock,
        sha256=hashlib.sha256(lock.encode()).hexdigest(),
        python=options.python,
        source=options.pip_source(site.cluster),
        keep=options.keep,
        proxy=proxy_variables(site.cluster, site.node),
    )
    files.directory(name=f"Create {places.SHARE}", path=places.SHARE)
    for path, text in host.loop(texts.programs(options).items()):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=text, mode="755")
    for path, text in host.loop(texts.files(site.cluster).items()):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=text)
