"""Claims about declared filesystems: mounted as declared, answering, writable, with free space.

Nothing here waits for a filesystem: a separate process probes each one, and a hung filesystem is reported by name as UNKNOWN
within its deadline.
"""

from __future__ import annotations

from shlex import quote

from rackwright.claims.check import Check, CheckContext, NotInScope, Undetermined, Warned, fail
from rackwright.claims.files import as_rendered
from rackwright.claims.mount_probe import Answer, ask
from rackwright.claims.units import runs
from rackwright.facts.mounts import MountTable
from rackwright.facts.storage_leftovers import StorageFiles, undeclared
from rackwright.model.cluster import Node
from rackwright.model.mount_names import unit_name
from rackwright.model.options import RoleOptions
from rackwright.model.platforms import Capability
from rackwright.model.storage import Filesystem, FilesystemKind, MountsFilesystems, ServesFilesystems
from rackwright.mounts import (
    automount_unit,
    differences,
    live,
    mount_unit,
    mounted_by,
    mounts_of,
    unit_texts,
)

Context = CheckContext[RoleOptions]
_NEEDS = frozenset({Capability.NETWORK_FILESYSTEMS})
_LONGEST_DEADLINE = 60
"""Default of `stat_seconds` in the cluster file, in seconds."""
_EXTRA_SECONDS = 30
"""Extra time of a check beyond its deadline: login, Python start, first mount."""


def _role(context: Context) -> MountsFilesystems:
    if not isinstance(context.options, MountsFilesystems):
        raise TypeError(f"{type(context.options).__name__} mounts no filesystems")
    return context.options


def _filesystems(context: Context) -> tuple[Filesystem, ...]:
    return mounted_by(context.node, _role(context).mounts_kinds)


def mounted(node: Node, options: RoleOptions) -> bool:
    """Whether the role mounts anything on the node."""
    return isinstance(options, MountsFilesystems) and bool(mounted_by(node, options.mounts_kinds))


def _writable(node: Node, options: RoleOptions) -> bool:
    kinds: frozenset[FilesystemKind] = getattr(options, "mounts_kinds", frozenset())
    return any(not one.read_only for one in mounted_by(node, kinds))


def _answers(
    context: Context, filesystems: tuple[Filesystem, ...], *, write: bool = False
) -> dict[str, Answer]:
    """The answer of each filesystem. If its mount timed out, it counts as hung: its server is down."""
    found = ask(context, filesystems, write=write)
    for one in filesystems:
        answer = found[one.path]
        if answer.error == "ENODEV" and _mount_timed_out(context, one):
            found[one.path] = Answer(answer.seconds, hangs=True)
    return found


def _mount_timed_out(context: Context, one: Filesystem) -> bool:
    """systemd's automounter returns ENODEV to all waiters, whether its mount was refused or ended by TimeoutSec."""
    return context.output("systemctl show -P Result %s", unit_name(one.path)).strip() == "timeout"


def _trouble(one: Filesystem, answer: Answer) -> str | None:
    """Why nothing more is known about a filesystem; None if it answered. Raises Failed if it answers with an error."""
    if answer.hangs:
        return f"{one.path} does not answer within {one.stat_seconds:g} s"
    if answer.error == "ESTALE":
        fail(f"{one.path} has a stale file handle: the server's folder was removed or replaced")
    if answer.error == "ENODEV":
        unit = quote(unit_name(one.path))
        fail(f"{one.path} cannot be mounted: `systemctl status {unit}` on the node shows why")
    if answer.error:
        fail(f"{one.path} cannot be read: {answer.error} ({answer.text})")
    return None


def answers_in_time(context: Context) -> str:
    """Every filesystem answers within its deadline; this also mounts automounted ones."""
    filesystems = _filesystems(context)
    found = _answers(context, filesystems)
    silent = [said for one in filesystems if (said := _trouble(one, found[one.path])) is not None]
    if silent:
        raise Undetermined("; ".join(silent))
    return ", ".join(f"{one.path} in {found[one.path].seconds:.3f} s" for one in filesystems)


def is_as_declared(context: Context) -> str:
    """The kernel's mount table has each filesystem with its declared source and options."""
    filesystems = _filesystems(context)
    answers = _answers(context, filesystems)  # the first use mounts it
    table = context.fact(MountTable, tuple(one.path for one in filesystems))
    wrong, found, silent = [], [], []
    for mount in mounts_of(context.node, _role(context)):
        path = mount.filesystem.path
        entry = live(table.get(path, ()))
        if entry is None and answers[path].hangs and path in table:
            silent.append(f"{path} is not mounted yet: its automount waits for the server")
            continue
        if entry is None:
            wrong.append(f"{path} is not mounted")
            continue
        wrong += [f"{path} {difference}" for difference in differences(mount, entry)]
        found.append(f"{path} from {entry.source} ({entry.type})")
    if wrong:
        fail("; ".join(wrong))
    if silent:
        raise Undetermined("; ".join(silent))
    return ", ".join(found)


def can_be_written(context: Context) -> str:
    """Each filesystem not declared read-only is writable: for root, or for its users if the server squashes root."""
    filesystems = tuple(one for one in _filesystems(context) if not one.read_only)
    found = _answers(context, filesystems, write=True)
    unknown, users_only, root_only = [], [], []
    for one in filesystems:
        answer = found[one.path]
        if _is_kerberos(one) and not answer.error and not answer.hangs and answer.writes is not True:
            users_only.append(one.path)
            continue
        if answer.error == "EROFS" or answer.writes is False:
            fail(f"{one.path} is not writable: {answer.text or 'the server refuses its users'}")
        if answer.only_root and _keeps_root(context, one):
            fail(
                f"{one.path} is not writable: the server is declared not to squash this node's root, but refuses it"
            )
        if answer.only_root:
            root_only.append(one.path)
            continue
        if answer.error in ("ENOSPC", "EDQUOT"):
            fail(f"{one.path} has no space for a file: {answer.text}")
        said = _trouble(one, answer)
        if said is None and answer.writes is None:
            said = f"{one.path}: the server squashes root, and no user's folder gives an answer instead"
        unknown += [said] if said is not None else []
    if unknown:
        raise Undetermined("; ".join(unknown))
    written = ", ".join(one.path for one in filesystems if one.path not in (*users_only, *root_only))
    untested = []
    if users_only:
        untested.append(
            f"only a user's Kerberos ticket, which root does not have, shows whether {', '.join(users_only)} can be written"
        )
    if root_only:
        untested.append(
            f"only root may write to {', '.join(root_only)}, but the server squashes root, and no user has a folder "
            "there to test instead"
        )
    if untested:
        raise NotInScope("; ".join((*untested, *((f"{written} can be written",) if written else ()))))
    return written


def _keeps_root(context: Context, one: Filesystem) -> bool:
    """Whether a server of the cluster is declared not to squash this node's root user."""
    return any(
        isinstance(given, ServesFilesystems)
        and one.kind in given.serves_kinds
        and context.node.name in given.roots(one)
        for name in one.server_nodes
        for given in context.cluster.by_name[name].options.values()
    )


def _is_kerberos(one: Filesystem) -> bool:
    return any(option.startswith("sec=krb5") for option in one.options)


def has_room(context: Context) -> str:
    """Each filesystem that the role mounts has free space."""
    return room_of(context, _filesystems(context))


def room_of(context: Context, filesystems: tuple[Filesystem, ...]) -> str:
    """Each has its declared share of free space and inodes; FAIL below half of that."""
    found = _answers(context, filesystems)
    silent, low, said = [], [], []
    for one in filesystems:
        answer = found[one.path]
        if (trouble := _trouble(one, answer)) is not None:
            silent.append(trouble)
            continue
        shares = _shares(one, answer)
        said.append(f"{one.path} has {' and '.join(text for text, _, _ in shares)}")
        for text, free, least in shares:
            if free < least / 2:
                fail(f"{one.path} has {text}, less than the declared {least:g} %")
            if free < least:
                low.append(f"{one.path} has {text}, less than the declared {least:g} %")
    if silent:
        raise Undetermined("; ".join(silent))
    if low:
        raise Warned("; ".join(low))
    return ", ".join(said)


def _shares(one: Filesystem, answer: Answer) -> list[tuple[str, float, float]]:
    """Free space and inodes as text, in percent, and the declared minimum; inodes only if the filesystem counts them."""
    if answer.blocks <= 0:
        raise Undetermined(f"{one.path} reports a size of 0")
    free = 100 * answer.available / answer.blocks
    shares = [(f"{free:.0f} % free", free, one.min_free_percent)]
    if answer.files > 0:
        files = 100 * answer.files_available / answer.files
        shares.append((f"{files:.0f} % of its inodes free", files, one.min_free_files_percent))
    return shares


def units_are_as_declared(context: Context) -> str:
    """The unit files are as rendered, and each filesystem is mounted at boot or at its first use."""
    texts: dict[str, str | None] = {}
    states = []
    for mount in mounts_of(context.node, _role(context)):
        texts |= unit_texts(mount)
        by_use = mount.filesystem.automount
        states.append(runs(context, automount_unit(mount) if by_use else mount_unit(mount)))
    return f"{as_rendered(context, texts)}; {', '.join(states)}"


def checks(role: str) -> tuple[Check, ...]:
    """The checks of a role that mounts filesystems; `role`: what it mounts, in the checks' names, e.g. `NFS`."""
    seconds = _LONGEST_DEADLINE + _EXTRA_SECONDS
    return (
        Check(
            f"{role} mount units are as declared and start at boot",
            units_are_as_declared,
            applies=mounted,
            needs=_NEEDS,
        ),
        Check(
            f"{role} filesystems answer within their deadlines",
            answers_in_time,
            applies=mounted,
            needs=_NEEDS,
            live=True,
            timeout_seconds=seconds,
        ),
        Check(
            f"{role} filesystems are mounted as declared",
            is_as_declared,
            applies=mounted,
            needs=_NEEDS,
            live=True,
            timeout_seconds=seconds,
        ),
        Check(
            f"{role} filesystems are writable",
            can_be_written,
            applies=_writable,
            needs=_NEEDS,
            live=True,
            timeout_seconds=seconds,
        ),
        Check(
            f"{role} filesystems have room",
            has_room,
            applies=mounted,
            needs=_NEEDS,
            live=True,
            timeout_seconds=seconds,
        ),
    )


def every_one_is_declared(context: Context) -> str:
    """Every mount unit and exports file that rackwright wrote for `storage:` is still declared."""
    found = context.fact(StorageFiles)
    if left := undeclared(context.node, found):
        fail(f"{', '.join(file.path for file in left)}: written by rackwright, but no longer declared")
    return f"{len(found)} files of mounts and exports"
