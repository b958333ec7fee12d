"""Applies the health role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.health.guard import places
from rackwright.model.cluster import Node
from rackwright.operations import files, packages, settings, trees, units
from rackwright.osfamily.names import names
from rackwright.roles.health import texts
from rackwright.roles.health.options import HealthRoleOptions
from rackwright.workload.health_timer import TIMER
from rackwright.workload.lookup import runs_jobs


@deploy("health")
def health(options: HealthRoleOptions) -> None:
    """After the workload manager, in whose folders the prolog and the epilog lie where it has any."""
    site = site_of()
    # Debian's python3-minimal cannot read nvidia-smi's XML.
    packages.installed(name="Install Python for the health probe", packages=("python3",))
    if texts.asks_bmc(site.node):
        packages.installed(
            name="Install the BMC tools",
            packages=names(site.node.family, "bmc").packages,
            start_daemons=False,
        )
    for path, mode in host.loop(texts.FOLDERS.items()):  # type: ignore[no-untyped-call]
        files.directory(name=f"Create {path}", path=path, mode=mode)
    trees.tree(
        name="Write the modules of the health check", path=texts.modules_folder(), files=texts.modules()
    )
    wanted = texts.files_of(site.cluster, site.node, options)
    for path, (content, mode) in host.loop(wanted.items()):  # type: ignore[no-untyped-call]
        files.file(name=f"Write {path}", path=path, content=content, mode=mode)
    if texts.asks_bmc(site.node):
        settings.setting(
            name="Load the BMC driver",
            target="module ipmi_devintf",
            read=texts.BMC_DEVICE,
            want="there",
            write=texts.LOAD_BMC_DEVICE,
        )
    for stage in host.loop(texts.STAGES):  # type: ignore[no-untyped-call]
        path = texts.drop_in(site.node, stage)
        if path is not None and path not in wanted:
            files.absent(name=f"Remove the health check from the {stage}", path=path)
    _timer(site.node)
    files.absent(name="Remove compiled code of an earlier version", path=places.OLD_CODE)
    files.absent(name="Remove metrics of an earlier version", path=places.OLD_METRICS)
    _one_version(texts.modules_folder())
    if runs_jobs(site.node):
        # slurmd has looked for it when it started, and looks again after an interval.
        settings.setting(
            name="Run the first health check",
            target="the node's first verdict",
            read=f"test -s {places.LAST} && echo there",
            want="there",
            write=places.PROGRAM,
        )


def _timer(node: Node) -> None:
    if texts.runs_by_timer(node):
        units.unit(
            name="Start the timer that runs the health check",
            unit=TIMER,
            restart_on=texts.TIMER_FILES[1:],
            disruptive=False,
        )
        return
    units.unit(
        name="Stop the timer of the health check", unit=TIMER, running=False, enabled=False, disruptive=False
    )
    for path in host.loop(texts.TIMER_FILES):  # type: ignore[no-untyped-call]
        files.absent(name=f"Remove {path}", path=path)


def _one_version(folder: str) -> None:
    """Last: a pass that began with the old program has loaded its modules two seconds later."""
    others = f"find {places.MODULES} -mindepth 1 -maxdepth 1 ! -name {folder.rpartition('/')[2]}"
    settings.setting(
        name="Remove modules of other versions",
        target="modules of other versions of the health check",
        read=f"{others} | grep -q . && echo there || echo none",
        want="none",
        write=f"sleep 2; {others} -exec rm -rf {{}} +",
    )
