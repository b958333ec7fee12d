"""Applies the dataset_cache role to a node; datasets are fetched by the timer or on request."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.operations import files, packages, units
from rackwright.osfamily.names import names
from rackwright.roles.dataset_cache import paths, texts
from rackwright.roles.dataset_cache.options import DatasetCacheOptions


@deploy("dataset_cache")
def dataset_cache(options: DatasetCacheOptions) -> None:
    """What copies, the program with its settings, the timer."""
    node = site_of().node
    if options.has_remote:
        packages.installed(name="Install rclone", packages=names(node.family, "rclone").packages)
    wanted = texts.files(node, options)
    folders = sorted({one.rpartition("/")[0] for one in wanted})
    for folder in host.loop(folders):  # type: ignore[no-untyped-call]
        files.directory(name=f"Create {folder}", path=folder)
    for one, declared in host.loop(wanted.items()):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {one}", path=one, content=declared[0], mode=declared[1])
    units.unit(
        name="Start the timer that fetches datasets",
        unit=paths.TIMER,
        running=options.keeps,
        enabled=options.keeps,
        restart_on=(f"{paths.UNITS}/{paths.TIMER}",) if options.keeps else (),
        disruptive=False,
    )
