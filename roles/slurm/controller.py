"""What surrounds slurmctld on a controller: the guard of its state, and what keeps a backup able to take over."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pyinfra.context import host

from rackwright.model.cluster import Node
from rackwright.operations import files, settings, units
from rackwright.roles.slurm import questions, standby, state, texts
from rackwright.roles.slurm.options import SlurmOptions


def guard_state(node: Node, options: SlurmOptions) -> None:
    """The guard before the daemon, and no folder of the same name on the disk of the node."""
    declared, mount = state.state_on(node, options), options.state_mount
    if declared is not None:
        _declared_state(declared)
        return
    for path in host.loop((state.PROGRAM, state.WAITER_PATH)):  # type: ignore[no-untyped-call]
        files.absent(name=f"Remove {path}", path=path)
    if mount is None:
        files.absent(name="Let slurmctld start without a declared mount", path=state.CONF)
        return
    files.directory(name="Make the folder of slurmctld's unit settings", path=str(Path(state.CONF).parent))
    files.file(
        name="Let slurmctld start only with its state mounted",
        path=state.CONF,
        content=texts.state_mount_conf(mount),
    )
    settings.setting(
        name="Find slurmctld's state on its file system",
        target=f"mount of {mount.path}",
        read=questions.mounted(mount),
        want=f"{mount.fstype} {mount.source}",
        write=questions.refuse_unmounted(mount),
    )


def _declared_state(declared: state.State) -> None:
    """The same for a filesystem that another role mounts: of `storage:`, or the node's own by storage_layout."""
    _write(state.files(declared), (state.PROGRAM,))
    if declared.units:
        settings.setting(
            name="Find slurmctld's state on its filesystem",
            target=f"filesystem of slurmctld's state ({declared.filesystem.name})",
            read=state.program(declared),
            want=state.AS_DECLARED,
            write=state.refuse(declared),
        )


def keep_standby_able(node: Node, options: SlurmOptions) -> None:
    """slurm.conf names the programs on all controllers; a backup restarts its slurmctld where they ask for it."""
    if not standby.forgets(node, options):  # a single controller, or no backup any more
        units.unit(
            name="Stop what starts a standby anew", unit=standby.PATH_UNIT, running=False, enabled=False
        )
    _write(standby.files(node, options), standby.PROGRAMS)
    if standby.forgets(node, options):
        units.unit(name="Start a standby anew that forgot the cluster's ID", unit=standby.PATH_UNIT)


def _write(wanted: Mapping[str, str | None], programs: tuple[str, ...]) -> None:
    """Files by path, after their folders; None for one that must not exist."""
    for folder in sorted({str(Path(path).parent) for path, content in wanted.items() if content is not None}):
        files.directory(name=f"Make {folder}", path=folder)
    for path, content in host.loop(wanted.items()):  # type: ignore[no-untyped-call]
        if content is None:
            files.absent(name=f"Remove {path}", path=path)
        else:
            files.file(
                name=f"Write {path}", path=path, content=content, mode="755" if path in programs else "644"
            )
