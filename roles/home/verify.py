"""What the home role claims of the node that makes homes, and of every node that has them."""

from __future__ import annotations

from rackwright.claims import patient
from rackwright.claims.check import Check, CheckContext, NotInScope, Undetermined, fail
from rackwright.claims.files import as_rendered
from rackwright.claims.mount_probe import ask
from rackwright.claims.units import as_declared, runs, state_of
from rackwright.facts.mounts import MountTable
from rackwright.facts.quotas import DEFAULT, Limits, UserQuotas, differing
from rackwright.facts.users import User
from rackwright.model.cluster import Cluster, Node
from rackwright.model.interfaces import DeclaresUsers
from rackwright.model.storage import Filesystem
from rackwright.mounts import live
from rackwright.node_programs import one_text
from rackwright.roles.home import layout, paths
from rackwright.roles.home.options import HomeOptions

Context = CheckContext[HomeOptions]
_NAMED_MAX = 5
_LOOK = """
import os, stat
path, top, reading = arguments[0], os.stat(arguments[0] + "/."), {}
for name in arguments[1:]:
    try:
        one = os.lstat(os.path.join(path, name))
        reading[name] = [stat.S_ISDIR(one.st_mode), one.st_uid, stat.S_IMODE(one.st_mode), one.st_dev == top.st_dev]
    except FileNotFoundError:
        reading[name] = None
"""
"""The mount point, then users: of each whether it is a folder, its uid and mode, and whether it is on that filesystem."""


def _made(context: Context) -> str:
    lines = context.output(f"{paths.RUN} wrong").strip().splitlines()
    if lines != [paths.AS_DECLARED]:
        if not lines:
            raise Undetermined(f"{paths.PROGRAM} prints nothing")
        fail(_named(lines))
    as_rendered(
        context,
        {
            paths.PROGRAM: one_text("rackwright.roles.home.node"),
            paths.SETTINGS: layout.settings(context.cluster, context.node, context.options),
            **layout.units(context.options, layout.mounts(context.cluster, context.node, context.options)),
        },
    )
    made = layout.made_by(context.cluster, context.node, context.options)
    return ", ".join(f"{len(layout.users(context.cluster, one))} homes in {folder}" for one, folder in made)


def _named(lines: list[str]) -> str:
    more = f"; and {len(lines) - _NAMED_MAX} more" if lines[_NAMED_MAX:] else ""
    return f"{'; '.join(lines[:_NAMED_MAX])}{more}"


def _quotas(context: Context) -> str:
    found, elsewhere = [], []
    for one in layout.filesystems(context.node):
        path = layout.quota_on(context.node, one, context.options)
        if one.quota is None:
            continue
        if path is None:
            elsewhere.append(one)
            continue
        found.append(_quota(context, one, path))
    if not found:
        servers = ", ".join(server.name for one in elsewhere for server in one.servers)
        raise NotInScope(f"the quotas of {elsewhere[0].name} are managed on its servers ({servers})")
    return "; ".join(found)


def _quota(context: Context, one: Filesystem, path: str) -> str:
    context.output("sh -c %s", "command -v xfs_quota")
    quota = one.quota
    there = context.fact(UserQuotas, path, may_be_empty=True)
    if there is None:
        fail(f"{path} has no accounting of user quotas: it is not mounted, or mounted without uquota")
    if not there.enforced:
        fail(f"{path} accounts user quotas but does not enforce them")
    if quota is None:
        raise Undetermined(f"{one.name} declares no quota")
    users = {uid: Limits(*given) for uid, given in layout.limits(context.cluster, one).items()}
    default = Limits(*layout.limit(quota))
    wrong = [
        f"{'the limit of every user' if uid == DEFAULT else f'the limit of uid {uid}'} is {has}, not {wanted}"
        for uid, (has, wanted) in differing(there, default, users).items()
    ]
    if wrong:
        fail(f"on {path} {_named(wrong)}")
    return f"{path}: {default} for every user, enforced"


def _reached(context: Context) -> str:
    """Asked by separate processes: one that hangs is UNKNOWN, by name, within its deadline."""
    found = []
    for one in context.node.filesystems:
        users = _own_users(context.cluster, context.node, one)
        if one in layout.filesystems(context.node) and users:
            found.append(_reached_on(context, one, users))
    return ", ".join(found)


def _reached_on(context: Context, one: Filesystem, users: dict[str, int]) -> str:
    for user in users:
        account = context.fact(User, user, may_be_empty=True)
        if account is None:
            fail(f"{user} is not a user of this node")
        if account.home != layout.home(one, user):
            fail(f"the home of {user} is {account.home}, not {layout.home(one, user)}")
    answer = ask(context, (one,))[one.path]
    if answer.hangs:
        raise Undetermined(f"{one.path} does not answer within {one.stat_seconds:g} s")
    if answer.error:
        fail(f"{one.path} cannot be read: {answer.error} ({answer.text})")
    serves_in_place = context.node.name in one.server_nodes and one.export == one.path
    table = context.fact(MountTable, (one.path,))
    if live(table.get(one.path, ())) is None and not serves_in_place:
        fail(f"{one.path} is not mounted: homes would be on the node's own disk")
    try:
        seen = patient.run(context, one.path, _LOOK, one.path, *users, seconds=one.stat_seconds)
    except patient.AnswerError as error:
        fail(f"{one.path} cannot be read: {error}")
    wrong = [
        text
        for user, uid in users.items()
        if (text := _fault(one, user, uid, seen, context.options)) is not None
    ]
    if wrong:
        fail(_named(wrong))
    return f"{len(users)} homes on {one.path}"


def _fault(
    one: Filesystem,
    user: str,
    uid: int,
    seen: dict[str, tuple[bool, int, int, bool] | None],
    options: HomeOptions,
) -> str | None:
    path = layout.home(one, user)
    if user not in seen:
        raise Undetermined(f"the node did not report {path}")
    found = seen[user]
    if found is None:
        return f"{path} is missing"
    is_folder, owner, mode, same = found
    if not is_folder or not same:
        return f"{path} is not a folder on {one.name}"
    if owner != uid:
        return f"{path} belongs to uid {owner}, not to {user} ({uid})"
    return f"{path} has mode {mode:o}, not {options.mode}" if f"{mode:o}" != options.mode else None


def _own_users(cluster: Cluster, node: Node, one: Filesystem) -> dict[str, int]:
    """Users whom this node knows by declaration."""
    declares = node.offers(DeclaresUsers)
    known = {account.name for account in declares.accounts} if declares is not None else set()
    return {user: uid for user, uid in layout.users(cluster, one).items() if user in known}


def _members(context: Context) -> str:
    """The timer runs, and the last look found every group and made every home."""
    active = runs(context, paths.TIMER)
    if (state := state_of(context, paths.SERVICE)).active_state == "failed":
        fail(f"{paths.SERVICE} failed at its last run: see `journalctl -u {paths.SERVICE}` on the node")
    as_declared(context, paths.SERVICE, state)
    return f"{active}, every {context.options.every_minutes} min for {', '.join(context.options.groups)}"


def _makes(node: Node, options: HomeOptions) -> bool:
    return any(layout.folder(node, one, options) is not None for one in layout.filesystems(node))


def _has_groups(node: Node, options: HomeOptions) -> bool:
    return bool(options.groups) and _makes(node, options)


def _has_quotas(node: Node, options: HomeOptions) -> bool:
    """On the node that sets them; of filesystems that others serve, on the first node, which reports it."""
    return any(
        one.quota is not None
        and (
            layout.quota_on(node, one, options) is not None
            or (not one.server_nodes and one.kind.shared and one.nodes[:1] == (node.name,))
        )
        for one in layout.filesystems(node)
    )


def _has_users(node: Node, options: HomeOptions) -> bool:
    return node.offers(DeclaresUsers) is not None and any(
        one in node.filesystems for one in layout.filesystems(node)
    )


CHECKS: tuple[Check, ...] = (
    Check(
        "declared users own their homes",
        _made,
        applies=_makes,
        live=True,
        timeout_seconds=330,
    ),
    Check("homes are created for members of declared groups", _members, applies=_has_groups),
    Check("home quotas are as declared", _quotas, applies=_has_quotas),
    Check(
        "declared users' homes are on their mounted filesystem",
        _reached,
        applies=_has_users,
        live=True,
        timeout_seconds=150,
    ),
)
