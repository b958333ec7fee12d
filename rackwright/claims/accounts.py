"""Claims about users and groups, read with the facts that the deploy acts on."""

from __future__ import annotations

from rackwright.claims.check import CheckContext, Undetermined, fail
from rackwright.facts.users import UnixGroup, User, UserState
from rackwright.model.options import RoleOptions

_NO_SUCH_KEY = 2


def has_ids(context: CheckContext[RoleOptions], user: str, uid: int, gid: int) -> str:
    """A user has this uid, and its primary group this gid."""
    state = account(context, user)
    if state is None:
        fail(f"the user {user} does not exist")
    found = state.uid, context.fact(UnixGroup, state.group)
    if found != (uid, gid):
        fail(f"{user} has uid {found[0]} and gid {found[1]}, not {uid} and {gid}")
    return f"{user} is {uid}:{gid}"


def account(context: CheckContext[RoleOptions], user: str) -> UserState | None:
    """A user as the node resolves it; None only where getent reports that it does not exist."""
    state = context.fact(User, user, may_be_empty=True)
    if state is None and entry(context, "passwd", user) is not None:
        raise Undetermined(f"`id` does not report the groups of {user}")
    return state


def entry(context: CheckContext[RoleOptions], database: str, name: str) -> list[str] | None:
    """The fields of a line of `getent`, None where it reports that the entry does not exist."""
    result = context.host.run("getent %s %s", database, name)
    if result.rc == _NO_SUCH_KEY:
        return None
    if result.rc != 0 or ":" not in result.stdout:
        printed = result.stderr.strip() or f"status {result.rc}, {result.stdout.strip()[:40]!r}"
        raise Undetermined(f"`getent {database} {name}` cannot be read: {printed}")
    return str(result.stdout).strip().split(":")
