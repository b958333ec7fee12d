"""Slurm's accounting records: QOS, accounts, users and their memberships, read in one command of sacctmgr."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from shlex import quote

Settings = Mapping[str, str]
"""sacctmgr's column names, lower case, to normal values; what is not set is not in it."""

QOS_COLUMNS = (
    "description",
    "priority",
    "preempt",
    "preemptmode",
    "gracetime",
    "flags",
    "usagefactor",
    "grptres",
    "grpjobs",
    "maxwall",
    "maxtres",
    "maxtrespu",
    "maxtrespa",
    "maxjobspu",
    "maxsubmitpu",
)
LIMIT_COLUMNS = (
    "fairshare",
    "grptres",
    "grpjobs",
    "grpsubmit",
    "maxtres",
    "maxjobs",
    "maxsubmit",
    "maxwall",
    "qos",
    "defaultqos",
)
_LISTS = frozenset({"preempt", "flags", "qos"})
_TRES = frozenset({"grptres", "maxtres", "maxtrespu", "maxtrespa"})
_MIB = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024**2, "P": 1024**3}


@dataclass(frozen=True)
class Member:
    """A user in an account; `partition` is empty where the membership holds for all."""

    user: str
    account: str
    partition: str = ""

    def __str__(self) -> str:
        return f"{self.user} in {self.account}" + (f" on {self.partition}" if self.partition else "")


@dataclass(frozen=True)
class Records:
    """slurmdbd's entities of one cluster, or what they should be."""

    clusters: frozenset[str] = frozenset()
    qos: Mapping[str, Settings] = field(default_factory=dict)
    accounts: Mapping[str, Settings] = field(default_factory=dict)
    """`parent`, `description`, `organization` and the limits."""
    users: Mapping[str, Settings] = field(default_factory=dict)
    """`defaultaccount` and `adminlevel`."""
    members: Mapping[Member, Settings] = field(default_factory=dict)


def normal(column: str, value: str) -> str:
    """One spelling of a value, whichever of Slurm's it came in; a normal value can be given back."""
    text = value.strip()
    if not text:
        return ""
    if column in _LISTS:
        return ",".join(sorted(word.strip() for word in text.split(",") if word.strip()))
    if column in _TRES:
        return ",".join(sorted(_normal_tres(word) for word in text.split(",")))
    if column == "gracetime":
        return str(_seconds(text))
    if column == "maxwall" and not text.isdigit():  # a plain number is minutes, and is normal
        return "" if text.upper() == "UNLIMITED" else str(_seconds(text) // 60)
    if column == "usagefactor":
        return f"{float(text):g}"
    if column in ("description", "organization", "adminlevel", "preemptmode", "defaultqos", "fairshare"):
        return text.lower()  # sacctmgr folds them
    return text


def settings(columns: Iterable[str], values: Iterable[str]) -> dict[str, str]:
    """Columns to normal values, without those that are not set."""
    found = {column: normal(column, value) for column, value in zip(columns, values, strict=False)}
    return {column: value for column, value in found.items() if value}


def _normal_tres(word: str) -> str:
    name, _, count = word.partition("=")
    if name == "mem" and count[-1:] in _MIB:
        return f"mem={round(float(count[:-1]) * _MIB[count[-1]])}"
    return f"{name}={count}"


def _seconds(text: str) -> int:
    """Of `[D-]HH:MM:SS`, or a plain number of seconds."""
    days, _, clock = text.rpartition("-")
    total = 0
    for part in clock.split(":"):
        total = total * 60 + int(part)
    return int(days or 0) * 86400 + total


class Unread(StrEnum):
    """Why the records of an installed slurmdbd are not known."""

    STOPPED = "stopped"
    SILENT = "silent"


# A daemon that is not ready refuses at once, and then another try may help; one that does not
# answer for 20 s will not do so the next time either.
_HERE = """\
systemctl cat slurmdbd >/dev/null 2>&1 || exit 0
systemctl is-active -q slurmdbd || { echo '# stopped'; exit 0; }
"""
_ELSEWHERE = "command -v sacctmgr >/dev/null || exit 0\n"
_READ = """\
ask() {{ timeout 20 sacctmgr -nP show "$@" 2>/dev/null; }}
end=$(($(date +%s) + {patience}))
until ask cluster format=cluster >/dev/null; do
  [ "$(date +%s)" -lt $end ] || {{ echo '# silent'; exit 0; }}
  sleep 1
done
echo '# cluster'; ask cluster format=cluster || exit 0
echo '# qos'; ask qos format=name,{qos} || exit 0
echo '# account'; ask account format=account,description,organization || exit 0
echo '# user'; ask user format=user,defaultaccount,admin || exit 0
echo '# association'; ask assoc wopl where cluster={cluster} format=account,user,partition,parentname,{limits} || exit 0
echo '# complete'
"""


def read_command(cluster: str, patience: int = 5, *, local: bool = True) -> str:
    """The shell command whose output `parse` reads; prints no `# complete` where slurmdbd is silent.

    `patience`: seconds that slurmdbd may take until it answers for the first time. `local`: it runs on this node.
    """
    columns = {"qos": ",".join(QOS_COLUMNS), "limits": ",".join(LIMIT_COLUMNS)}
    asked = _READ.format(**columns, cluster=quote(cluster), patience=patience)
    return (_HERE if local else _ELSEWHERE) + asked


def parse(lines: Iterable[str]) -> Records | None:
    """Records from the command's output; None where slurmdbd did not answer all of it."""
    sections: dict[str, list[list[str]]] = {}
    current: list[list[str]] = []
    for line in lines:
        if line.startswith("# "):
            current = sections.setdefault(line[2:].strip(), [])
        elif line:
            current.append(line.split("|"))
    if "complete" not in sections:
        return None
    accounts: dict[str, dict[str, str]] = {}
    members: dict[Member, Settings] = {}
    for account, user, partition, parent, *limits in sections["association"]:
        if user:
            members[Member(user, account, partition)] = settings(LIMIT_COLUMNS, limits)
        else:
            accounts[account] = {"parent": parent, **settings(LIMIT_COLUMNS, limits)}
    for account, *words in sections["account"]:
        if account in accounts:  # others belong to another cluster of the same database
            accounts[account].update(settings(("description", "organization"), words))
    here = {member.user for member in members}
    return Records(
        clusters=frozenset(row[0] for row in sections["cluster"]),
        qos={name: settings(QOS_COLUMNS, values) for name, *values in sections["qos"]},
        accounts=accounts,
        users={
            name: settings(("defaultaccount", "adminlevel"), values)
            for name, *values in sections["user"]
            if name in here
        },
        members=members,
    )
