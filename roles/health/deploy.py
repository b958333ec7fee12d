"""Brings a node to what the health role declares."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.health.guard import places
from rackwright.operations import files, packages, settings
from rackwright.roles.health import texts
from rackwright.roles.health.options import HealthRoleOptions


@deploy("health")
def health(options: HealthRoleOptions) -> None:
    """After Slurm, in whose folders the prolog and the epilog lie."""
    site = site_of()
    # Debian's python3-minimal cannot read nvidia-smi's XML.
    packages.installed(name="Install what the probe needs", packages=("python3",))
    for path in host.loop((places.FOLDER, places.DISABLED, places.STATE)):  # type: ignore[no-untyped-call]
        files.directory(name=f"Make {path}", path=path)
    files.directory(name="Make the folder of the health check", path=places.PROGRAM.rpartition("/")[0])
    wanted = texts.files_of(site.cluster, site.node, options)
    for path, (content, mode) in host.loop(wanted.items()):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=content, mode=mode)
    for stage in host.loop(texts.STAGES):  # type: ignore[no-untyped-call]
        if texts.drop_in(stage) not in wanted:
            files.absent(name=f"Leave the node's health out of the {stage}", path=texts.drop_in(stage))
    if texts.runs_jobs(site.node):
        # slurmd has looked for it when it started, and looks again after an interval.
        settings.setting(
            name="Look at the node for the first time",
            target="the node's first verdict",
            read=f"test -s {places.LAST} && echo there",
            want="there",
            write=places.PROGRAM,
        )
