"""Applies the slurm_exporter role to a head."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.operations import files, trees, users
from rackwright.operations import units as systemd
from rackwright.operations.exporters import install_exporter, run_exporter
from rackwright.roles.slurm_exporter import texts
from rackwright.roles.slurm_exporter.options import COLLECTOR, UNITS, SlurmExporterOptions


@deploy("slurm_exporter")
def slurm_exporter(options: SlurmExporterOptions) -> None:
    """After Slurm, whose user the collector is; the server's user first, since no package makes it."""
    node = site_of().node
    user = options.names(node).settings["user"]
    programs, units = texts.programs(node, options), texts.units(node, options)
    users.group(name="Create group slurm_exporter", group=user, system=True)
    users.user(
        name="Create user slurm_exporter",
        user=user,
        group=user,
        shell="/usr/sbin/nologin",
        home="/nonexistent",
        system=True,
        create_home=False,
    )
    files.directory(name="Create the folder for programs", path=texts.MODULES.rpartition("/")[0])
    trees.tree(name="Write the modules of slurm_exporter", path=texts.MODULES, files=texts.modules())
    for path, text in host.loop(programs.items()):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=text, mode="755")
    for path, text in host.loop(units.items()):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=text)
    install_exporter(options, texts.arguments(site_of().cluster, node, options))
    read = (*programs, texts.MODULES)
    systemd.unit(
        name="Start the slurm_exporter collector",
        unit=COLLECTOR,
        restart_on=(f"{UNITS}/{COLLECTOR}", *read),
        disruptive=False,
    )
    run_exporter(options, restart_on=(f"{UNITS}/{options.unit(node)}", *read))
