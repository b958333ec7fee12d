"""The sacctmgr commands that bring the accounting records to their declaration, in an order it accepts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from rackwright.workload.slurm.records import Member, Records, Settings

BUILT_IN = "root"
"""Slurm's own account and user; never added, never removed."""
BUILT_IN_QOS = "normal"

# What `show` calls a column is not always what `add` and `modify` call it.
_SET = {
    "grpsubmit": "grpsubmitjobs",
    "maxsubmit": "maxsubmitjobs",
    "maxsubmitpu": "maxsubmitjobsperuser",
    "maxtres": "maxtresperjob",
}
_TRES = frozenset({"grptres", "maxtres", "maxtrespu", "maxtrespa"})
_EMPTY_CLEARS = frozenset({"preempt", "qos"})
_FALLBACK = {
    "fairshare": "1",
    "priority": "0",
    "usagefactor": "1",
    "preemptmode": "cluster",
    "gracetime": "0",
}


@dataclass(frozen=True)
class SacctmgrCommand:
    """One difference and the sacctmgr command that removes it."""

    target: str
    before: str | None
    after: str | None
    arguments: tuple[str, ...]


def sacctmgr_commands(
    cluster: str, found: Records, declared: Records, *, prune: bool
) -> list[SacctmgrCommand]:
    """All of them, in the order in which sacctmgr accepts them."""
    needed = [*_cluster(cluster, found), *_qos(found, declared), *_accounts(cluster, found, declared)]
    needed += _members(cluster, found, declared)
    return needed + (list(_removals(cluster, found, declared)) if prune else [])


def undeclared(cluster: str, found: Records, declared: Records) -> list[str]:
    """What `prune` would remove, e.g. `user bob`."""
    return [command.target for command in _removals(cluster, found, declared)]


def _cluster(cluster: str, found: Records) -> Iterator[SacctmgrCommand]:
    if cluster not in found.clusters:
        yield SacctmgrCommand(f"cluster {cluster}", None, "registered", ("add", "cluster", cluster))


def _qos(found: Records, declared: Records) -> Iterator[SacctmgrCommand]:
    for name, want in declared.qos.items():
        target, is_ = f"qos {name}", found.qos.get(name)
        if is_ is None:  # what it preempts may not exist yet
            plain = {key: value for key, value in want.items() if key != "preempt"}
            yield SacctmgrCommand(target, None, _shown(want), ("add", "qos", name, *_pairs(plain)))
    for name, want in declared.qos.items():
        is_ = found.qos.get(name)
        where = ("modify", "qos", "where", f"name={name}", "set")
        if is_ is not None:
            yield from _modified(f"qos {name}", is_, want, where)
        elif want.get("preempt"):
            yield SacctmgrCommand(
                f"qos {name}", None, f"preempt={want['preempt']}", (*where, f"preempt={want['preempt']}")
            )


def _accounts(cluster: str, found: Records, declared: Records) -> Iterator[SacctmgrCommand]:
    for name in _parents_first(declared.accounts):
        target, want, is_ = f"account {name}", declared.accounts[name], found.accounts.get(name)
        if is_ is None:
            yield SacctmgrCommand(
                target, None, _shown(want), ("add", "account", name, f"cluster={cluster}", *_pairs(want))
            )
            continue
        # Descriptions belong to the account itself, all else to its place in this cluster.
        for keys in (("description", "organization"), None):
            part = [_only(settings, keys, ("description", "organization")) for settings in (is_, want)]
            at = () if keys else (f"cluster={cluster}",)
            where = ("modify", "account", "where", f"name={name}", *at, "set")
            yield from _modified(target, part[0], part[1], where)


def _only(settings: Settings, keys: tuple[str, ...] | None, others: tuple[str, ...]) -> Settings:
    return {key: value for key, value in settings.items() if (key in keys if keys else key not in others)}


def _members(cluster: str, found: Records, declared: Records) -> Iterator[SacctmgrCommand]:
    here = f"cluster={cluster}"
    known = set(found.users)
    # The default account comes first: a user's first account becomes the default.
    for member in sorted(declared.members, key=lambda m: (m.user, not _is_default(declared, m), m.account)):
        want, is_ = declared.members[member], found.members.get(member)
        user = declared.users.get(member.user, {})
        if is_ is not None:
            where = (
                "modify",
                "user",
                "where",
                f"name={member.user}",
                f"account={member.account}",
                here,
                "set",
            )
            yield from _modified(f"user {member}", is_, want, where)
            continue
        extra = {} if member.user in known else user
        known.add(member.user)
        add = ("add", "user", member.user, f"account={member.account}", here, *_pairs({**extra, **want}))
        yield SacctmgrCommand(f"user {member}", None, _shown({**extra, **want}), add)
    for name, want in declared.users.items():
        if name in found.users:
            at = ("modify", "user", "where", f"name={name}", here, "set")
            yield from _modified(f"user {name}", found.users[name], want, at)


def _is_default(declared: Records, member: Member) -> bool:
    return declared.users.get(member.user, {}).get("defaultaccount") == member.account


def _removals(cluster: str, found: Records, declared: Records) -> Iterator[SacctmgrCommand]:
    here = f"cluster={cluster}"
    leaving = {user for user in found.users if user not in declared.users and user != BUILT_IN}
    for user in sorted(leaving):
        yield SacctmgrCommand(
            f"user {user}", "exists", None, ("remove", "user", "where", f"name={user}", here)
        )
    for member in sorted(found.members, key=str):
        if (
            member in declared.members
            or member.user in leaving
            or (member.user, member.account) == (BUILT_IN,) * 2
        ):
            continue
        where = [f"name={member.user}", f"account={member.account}", here]
        where += [f"partition={member.partition}"] if member.partition else []
        yield SacctmgrCommand(f"user {member}", "exists", None, ("remove", "user", "where", *where))
    alone = found.clusters <= {cluster}
    at = () if alone else (here,)  # with a cluster, only the account's place in it goes, not the account
    for name in reversed(list(_parents_first(found.accounts))):
        if name not in declared.accounts and name != BUILT_IN:
            yield SacctmgrCommand(
                f"account {name}", "exists", None, ("remove", "account", "where", f"name={name}", *at)
            )
    if alone:  # QOS have no cluster: another one may need them
        for name in sorted(set(found.qos) - set(declared.qos) - {BUILT_IN_QOS}):
            yield SacctmgrCommand(f"qos {name}", "exists", None, ("remove", "qos", "where", f"name={name}"))


def _parents_first(accounts: Mapping[str, Settings]) -> Iterator[str]:
    left = sorted(accounts)
    while left:
        ready = [name for name in left if accounts[name].get("parent", "") not in left]
        yield from ready or left  # a ring is refused long before; never loop on one
        left = [name for name in left if name not in ready] if ready else []


def _modified(
    target: str, is_: Settings, want: Settings, where: tuple[str, ...]
) -> Iterator[SacctmgrCommand]:
    wrong = [
        key
        for key in dict.fromkeys((*want, *is_))
        if is_.get(key, _FALLBACK.get(key, "")) != want.get(key, _FALLBACK.get(key, ""))
    ]
    if wrong:
        before = _shown({key: is_.get(key, "-") for key in wrong})
        after = _shown({key: want.get(key, _FALLBACK.get(key, "-")) for key in wrong})
        pairs = tuple(_pair(key, want.get(key, _FALLBACK.get(key, "")), is_.get(key, "")) for key in wrong)
        yield SacctmgrCommand(target, before, after, (*where, *pairs))


def _pairs(settings: Settings) -> tuple[str, ...]:
    return tuple(_pair(key, value, "") for key, value in settings.items() if value)


def _pair(key: str, value: str, before: str) -> str:
    """`key=value` as `set` takes it; what was set before and is not any more is cleared."""
    word = _SET.get(key, key)
    if key in _TRES:
        kept = {part.partition("=")[0] for part in value.split(",")}
        gone = [part.partition("=")[0] for part in before.split(",") if part.partition("=")[0] not in kept]
        value = ",".join([*([value] if value else []), *(f"{name}=-1" for name in gone if name)])
    elif not value and key not in _EMPTY_CLEARS:
        value = "-1"
    return f"{word}={value}"


def _shown(settings: Settings) -> str:
    return " ".join(f"{key}={value}" for key, value in settings.items() if value) or "exists"
