"""The filesystem that holds slurmctld's state on a controller, and the texts that guard it."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.model.cluster import Node
from rackwright.model.mount_names import unit_name
from rackwright.model.storage import (
    Filesystem,
    FilesystemKind,
    FilesystemPurpose,
    MakesFilesystems,
    Mount,
    made_below,
    mount_of,
)
from rackwright.render import render
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm.sections import STATE_UNIT_FILES

AS_DECLARED = "as declared"
CONF, WAITER_PATH = STATE_UNIT_FILES
PROGRAM = "/usr/libexec/rackwright/slurmctld-state"
WAITER = WAITER_PATH.rpartition("/")[2]


@dataclass(frozen=True)
class Place:
    """A folder that is mounted, and what the kernel's table may show there."""

    path: str
    types: tuple[str, ...]
    sources: tuple[str, ...] = ()
    """Empty: any, for a filesystem on the node's own drives."""

    @property
    def patterns(self) -> str:
        """As patterns of the shell's `case`."""
        ends = tuple(f"{source}'" for source in self.sources) or ("'*",)
        return "|".join(f"'{type} {end}" for type in self.types for end in ends)


@dataclass(frozen=True)
class State:
    """How one controller gets the filesystem of its state: the same files by another way on a node that serves it."""

    filesystem: Filesystem
    places: tuple[Place, ...]
    """What has to be mounted; the filesystem itself is the last."""
    export: str | None = None
    """On a node that serves it: the folder that its path shows."""
    mount: Mount | None = None
    """On a client."""

    @property
    def name(self) -> str:
        """As the cluster file has it: `storage.NAME`, or the folder that storage_layout mounts it on."""
        name = self.filesystem.name
        return name if name.startswith("/") else f"storage.{name}"

    @property
    def units(self) -> tuple[str, ...]:
        """Mount units without which slurmctld stops."""
        return tuple(unit_name(path) for path in self.mount_points)

    @property
    def mount_points(self) -> tuple[str, ...]:
        """What has to be mounted, and where nfs_server binds the export."""
        bound = (self.filesystem.path,) if self.export not in (None, self.filesystem.path) else ()
        return tuple(dict.fromkeys((*(place.path for place in self.places), *bound)))


def is_below(path: str, folder: str) -> bool:
    """Whether a path is a folder, or below it."""
    return path == folder or path.startswith(f"{folder}/")


def holder(node: Node, options: SlurmOptions) -> Filesystem | None:
    """The declared filesystem that a node uses and that state_dir is on."""
    return declared_for(node, options.state_dir)


def declared_for(node: Node, folder: str) -> Filesystem | None:
    """The declared filesystem that a node uses and that a folder is on."""
    return next((one for one in node.filesystems if is_below(folder, one.path)), None)


def state_on(node: Node, options: SlurmOptions) -> State | None:
    """How a controller gets its state; None where nothing that is declared holds it, or state_mount alone."""
    undeclared = holder(node, options) is None
    if undeclared and (options.backups or options.state_mount is not None):
        return None  # a pair cannot share one node's own drives
    return held_on(node, options.state_dir)


def held_on(node: Node, folder: str) -> State | None:
    """How a node gets a folder, by `storage:` or else by storage_layout; None where neither holds it."""
    one = declared_for(node, folder)
    if one is None:
        return _on_own_drives(node, folder)
    if one.kind is FilesystemKind.LOCAL:
        return State(one, _made(node, one.path))
    if node.name in one.server_nodes:
        export = one.export or one.path
        return State(one, _made(node, export), export=export)
    mount = mount_of(node, one)
    if mount is None:
        return None
    place = Place(one.path, mount.types or (mount.type,), mount.sources or (mount.what,))
    return State(one, (place,), mount=mount)


def _on_own_drives(node: Node, folder: str) -> State | None:
    """The filesystem that the node makes, where `storage:` has no entry for it; it goes by its folder."""
    places = _made(node, folder)
    if not places:
        return None
    path = places[-1].path
    one = Filesystem(
        name=path,
        kind=FilesystemKind.LOCAL,
        purpose=FilesystemPurpose.STATE,
        path=path,
        nodes=(node.name,),
    )
    return State(one, places)


def _made(node: Node, folder: str) -> tuple[Place, ...]:
    """The filesystem on the node's own drives that a folder is on; none: it is on the system's own disk."""
    makes, path = node.offers(MakesFilesystems), made_below(node, folder)
    if makes is None or path is None:
        return ()
    return (Place(path, (makes.made_filesystems(node)[path],)),)


def program(state: State) -> str:
    """PROGRAM: prints AS_DECLARED, or what is wrong and exits 1; `wait` starts slurmctld once it is right, `start` is asked before."""
    return render("slurm/state.sh.j2", state=state, as_declared=AS_DECLARED)


def conf(state: State) -> str:
    """CONF: slurmctld starts with its state and stops with it."""
    return render("slurm/state-guard.conf.j2", state=state, program=PROGRAM, waiter=WAITER)


def waiter(state: State) -> str:
    """WAITER: after a boot at which the filesystem came later than slurmctld."""
    return render("slurm/state-waiter.service.j2", state=state, program=PROGRAM)


def files(state: State) -> dict[str, str | None]:
    """What guards the state, by path; None for what a controller with its state on the system's disk does not have."""
    if not state.units:
        return dict.fromkeys((CONF, PROGRAM, WAITER_PATH))
    return {PROGRAM: program(state), WAITER_PATH: waiter(state), CONF: conf(state)}


def refuse(state: State) -> str:
    """Asks once more, as the filesystem may have been mounted meanwhile; reports what is missing and fails."""
    return (
        f"found=$({PROGRAM}) || {{ echo \"$found. {state.name} holds slurmctld's state: slurmctld was left as it is, "
        'since with another folder it would lose all jobs" >&2; exit 1; }'
    )
