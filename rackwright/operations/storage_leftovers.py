"""Unmounts and unexports filesystems that were removed from `storage:`."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from shlex import quote

from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.api.operation import operation
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.facts.storage_leftovers import HEADER, StorageFile, StorageFiles, undeclared
from rackwright.plan.changes import Change, record


@operation()
def removed() -> Generator[StringCommand, None, None]:
    """Ends undeclared mounts and exports and removes their files; a worker is drained first.

    A filesystem of purpose `state` stays mounted: a service would continue with an empty folder.
    """
    found: tuple[StorageFile, ...] = host.get_fact(StorageFiles)
    left = undeclared(site_of().node, found)
    if not left:
        host.noop("every mount and export of `storage:` is declared")
        return
    _keep_state(left)
    for file in left:
        if file.is_export:
            record(Change("file", file.path, "undeclared exports", None))
        else:
            record(Change("unit", file.name, "undeclared", None, disruptive=True))
    yield StringCommand(f"sh -ec {quote(chr(10).join(_commands(left)))}")


def _keep_state(left: Sequence[StorageFile]) -> None:
    state = [file for file in left if file.keeps_state]
    if state:
        units = " ".join(quote(file.name) for file in state)
        raise OperationError(
            f"{', '.join(file.path for file in state)}: undeclared, but may hold a service's state. Declare it "
            "again until that state is moved. Once the service uses the new folder, run `systemctl disable --now "
            f"{units}` on the node and remove these files"
        )


def _commands(left: Sequence[StorageFile]) -> Iterator[str]:
    units = [file.name for file in left if not file.is_export]
    # automount units first: they would mount again at the next access. They detach even a mount that is in use.
    for name in sorted(units):
        yield f"systemctl disable --quiet {quote(name)}"
        yield (
            f"systemctl stop {quote(name)} || "
            f"{{ systemctl status --no-pager --full --lines=15 {quote(name)} >&2; exit 1; }}"
        )
    exports = [quote(file.path) for file in left if file.is_export]
    # emptied but kept until the kernel has dropped them, so that the next run finds it if this one is interrupted
    yield from (f"echo {quote(HEADER)} >{path}" for path in exports)
    if exports:
        yield "if [ -e /proc/fs/nfsd/exports ]; then exportfs -ra; fi"  # no server, no exports
    yield f"rm -f -- {' '.join(quote(file.path) for file in left)}"
    if units:
        yield "systemctl daemon-reload"
