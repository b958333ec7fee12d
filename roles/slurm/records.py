"""The declared accounts, users and QOS in slurmdbd's terms."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta

from rackwright.model.cluster import Cluster
from rackwright.model.ranges import expand
from rackwright.roles.slurm import placement
from rackwright.roles.slurm.entities import Account, Limits, Qos, User
from rackwright.roles.slurm.options import SlurmOptions
from rackwright.roles.slurm.services import Reservation
from rackwright.workload.slurm.records import Member, Records, normal
from rackwright.workload.slurm.reservations import Reservation as Reserved
from rackwright.workload.slurm.srun import ACCOUNT


def declared_records(cluster: Cluster, options: SlurmOptions) -> Records:
    """All entities of the cluster file, and the burn-in's account."""
    accounts = {**options.accounts, ACCOUNT: _burnin(options)}
    members = {Member("root", ACCOUNT): _settings({"fairshare": 1})}
    for name, user in options.users.items():
        for account in dict.fromkeys((user.default_account, *user.accounts)):
            members[Member(name, account)] = _settings({"fairshare": user.fairshare, **_limits(user.limits)})
    return Records(
        clusters=frozenset({cluster.name}),
        qos={name: _qos(name, qos) for name, qos in options.qos.items()},
        accounts={name: _account(name, account) for name, account in accounts.items()},
        users={name: _user(user) for name, user in options.users.items()},
        members=members,
    )


def declared_reservations(cluster: Cluster, options: SlurmOptions) -> dict[str, Reserved]:
    """All reservations of the cluster file, by name."""
    everyone = frozenset(node.name for node in placement.workers(cluster))
    return {name: _reserved(one, everyone) for name, one in options.reservations.items()}


def _reserved(one: Reservation, everyone: frozenset[str]) -> Reserved:
    start = datetime.fromisoformat(one.start)
    return Reserved(
        start=start,
        end=datetime.fromisoformat(one.end) if one.end else start + _length(one.duration or ""),
        nodes=everyone if one.nodes == "ALL" else frozenset(expand(one.nodes)),
        users=frozenset(one.users),
        accounts=frozenset(one.accounts),
        flags=frozenset(one.flags),
    )


def _length(text: str) -> timedelta:
    """Of `D-HH:MM:00` or `HH:MM:00`."""
    days, _, clock = text.rpartition("-")
    hours, minutes, _ = clock.split(":")
    return timedelta(days=int(days or 0), hours=int(hours), minutes=int(minutes))


def _burnin(options: SlurmOptions) -> Account:
    """May use every QOS, since a partition may ask for any."""
    declared = options.accounts.get(ACCOUNT, Account(description="acceptance and burn-in runs"))
    qos = tuple(dict.fromkeys(("normal", *options.qos))) if options.qos else declared.qos
    return declared.model_copy(update={"qos": qos})


def _account(name: str, account: Account) -> dict[str, str]:
    return _settings(
        {
            "parent": account.parent,
            "description": account.description or name,
            "organization": account.organization,
            "fairshare": account.fairshare,
            **_limits(account.limits),
            "qos": ",".join(account.qos),
            "defaultqos": account.default_qos,
        }
    )


def _user(user: User) -> dict[str, str]:
    return _settings({"defaultaccount": user.default_account, "adminlevel": user.admin})


def _limits(limits: Limits) -> dict[str, object]:
    return {
        "grptres": _tres(limits.grp_tres),
        "grpjobs": limits.grp_jobs,
        "grpsubmit": limits.grp_submit_jobs,
        "maxtres": _tres(limits.max_tres_per_job),
        "maxjobs": limits.max_jobs,
        "maxsubmit": limits.max_submit_jobs,
        "maxwall": limits.max_wall,
    }


def _qos(name: str, qos: Qos) -> dict[str, str]:
    return _settings(
        {
            "description": qos.description or name,
            "priority": qos.priority,
            "preempt": ",".join(qos.preempt),
            "preemptmode": qos.preempt_mode,
            "gracetime": qos.grace_seconds,
            "flags": ",".join(qos.flags),
            "usagefactor": qos.usage_factor,
            "grptres": _tres(qos.grp_tres),
            "grpjobs": qos.grp_jobs,
            "maxwall": qos.max_wall,
            "maxtres": _tres(qos.max_tres_per_job),
            "maxtrespu": _tres(qos.max_tres_per_user),
            "maxtrespa": _tres(qos.max_tres_per_account),
            "maxjobspu": qos.max_jobs_per_user,
            "maxsubmitpu": qos.max_submit_jobs_per_user,
        }
    )


def _tres(tres: Mapping[str, int]) -> str:
    return ",".join(f"{name}={count}" for name, count in tres.items())


def _settings(values: Mapping[str, object]) -> dict[str, str]:
    found = {key: normal(key, str(value)) for key, value in values.items() if value is not None}
    return {key: value for key, value in found.items() if value}
