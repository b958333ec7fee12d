"""Applies the scratch role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.operations import files, units
from rackwright.operations.user_folders import no_user_folders, user_folders
from rackwright.roles.scratch import paths, texts
from rackwright.roles.scratch.options import ScratchOptions


@deploy("scratch")
def scratch(options: ScratchOptions) -> None:
    """The folders on the filesystem, the program with its settings, its hooks and its timer."""
    node = site_of().node
    path = options.filesystem_of(node).path
    if options.jobs:
        files.directory(name="Create the folder for jobs", path=f"{path}/{paths.JOBS}")
    for name in host.loop(options.shared):  # type: ignore[no-untyped-call]
        files.directory(name=f"Open {path}/{name} to every user", path=f"{path}/{name}", mode="1777")
    wanted = texts.files(node, options)
    folders = sorted({one.rpartition("/")[0] for one, file in wanted.items() if file is not None})
    for folder in host.loop(folders):  # type: ignore[no-untyped-call]
        files.directory(name=f"Create {folder}", path=folder)
    for one, declared in host.loop(wanted.items()):  # type: ignore[no-untyped-call]
        if declared is None:
            files.absent(name=f"Remove {one}", path=one)
        else:
            files.file(name=f"Write {one}", path=one, content=declared[0], mode=declared[1])
    if options.users:
        user_folders(node, texts.user_folders(node, options))
    else:
        no_user_folders(node, texts.user_folders(node, options))
    units.unit(
        name="Start the timer that removes leftovers",
        unit=paths.TIMER,
        restart_on=(f"{paths.UNITS}/{paths.TIMER}",),
        disruptive=False,
    )
