"""What `storage:` no longer declares is unmounted and no longer exported."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from shlex import quote

from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.api.operation import operation
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.facts.storage_leftovers import StorageFile, StorageFiles, undeclared
from rackwright.plan.changes import Change, record


@operation()
def removed() -> Generator[StringCommand, None, None]:
    """Mounts and exports whose filesystem left the declaration end, and their files go; a worker is drained first.

    What was declared as service state is not unmounted: a service would go on with an empty folder.
    """
    found: tuple[StorageFile, ...] = host.get_fact(StorageFiles)
    left = undeclared(site_of().node, found)
    if not left:
        host.noop("every mount and export of `storage:` is declared")
        return
    _keep_state(left)
    for file in left:
        if file.is_export:
            record(Change("file", file.path, "exports that nothing declares any more", None))
        else:
            record(Change("unit", file.name, "not declared any more", None, disruptive=True))
    yield StringCommand(f"sh -ec {quote(chr(10).join(_commands(left)))}")


def _keep_state(left: Sequence[StorageFile]) -> None:
    state = [file for file in left if file.keeps_state]
    if state:
        units = " ".join(quote(file.name) for file in state)
        raise OperationError(
            f"{', '.join(file.path for file in state)}: no longer declared, and the state of a service was on it. Declare "
            "it again until that state is moved. Once the service uses the new place, on the node: `systemctl disable "
            f"--now {units}`, and remove these files"
        )


def _commands(left: Sequence[StorageFile]) -> Iterator[str]:
    units = [file.name for file in left if not file.is_export]
    # an automount unit first: it would mount again at the next use
    for name in sorted(units):
        yield f"systemctl disable --quiet {quote(name)}"
        yield (
            f"systemctl stop {quote(name)} || "
            f"{{ systemctl status --no-pager --full --lines=15 {quote(name)} >&2; exit 1; }}"
        )
    yield f"rm -f -- {' '.join(quote(file.path) for file in left)}"
    if units:
        yield "systemctl daemon-reload"
    if len(units) < len(left):
        # without a server the kernel exports nothing
        yield "if [ -e /proc/fs/nfsd/exports ]; then exportfs -ra; fi"
