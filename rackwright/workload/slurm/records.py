"""Slurm's accounting records: QOS, accounts, users and their memberships, read in one command of sacctmgr."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
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
_TIME_MAX = 40
"""Characters of a time."""
_LISTS = frozenset({"preempt", "flags", "qos"})
_TRES = frozenset({"grptres", "maxtres", "maxtrespu", "maxtrespa"})
BUILT_IN_TRES = frozenset({"cpu", "mem", "energy", "node", "billing", "fs/disk", "vmem", "pages"})
"""As a new slurmdbd 24.11 lists them (sacctmgr show tres, Debian 13, 2026-11-23)."""
CELL_MAX_CHARACTERS = 16 * 2**10
_NAME = re.compile(r"[^\s,=|;&$`'\"\\<>()]*")
_NAMED = {"cluster": 1, "qos": 1, "account": 1, "user": 1, "association": 4}
"""How many columns of each section, from the first, are names."""
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
    tres: frozenset[str] = BUILT_IN_TRES
    """What slurmdbd can count; others, such as `gres/gpu`, come with the first slurmctld that names them."""


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


def limited_tres(records: Records) -> frozenset[str]:
    """What any limit of these records counts."""
    return frozenset(word.partition("=")[0] for value in _tres_values(records) for word in value.split(","))


def _tres_values(records: Records) -> Iterator[str]:
    for entities in (records.qos, records.accounts, records.members):
        for settings in entities.values():
            yield from (value for column, value in settings.items() if column in _TRES and value)


def countable(declared: Records, tres: frozenset[str]) -> Records:
    """The declaration without limits on what slurmdbd cannot count yet, which sacctmgr refuses."""

    def kept(settings: Settings) -> dict[str, str]:
        found = {key: _kept_tres(value, tres) if key in _TRES else value for key, value in settings.items()}
        return {key: value for key, value in found.items() if value}

    return replace(
        declared,
        qos={name: kept(settings) for name, settings in declared.qos.items()},
        accounts={name: kept(settings) for name, settings in declared.accounts.items()},
        members={member: kept(settings) for member, settings in declared.members.items()},
    )


def _kept_tres(value: str, tres: frozenset[str]) -> str:
    return ",".join(word for word in value.split(",") if word.partition("=")[0] in tres)


def _normal_tres(word: str) -> str:
    name, _, count = word.partition("=")
    if name == "mem" and count[-1:] in _MIB:
        return f"mem={round(float(count[:-1]) * _MIB[count[-1]])}"
    return f"{name}={count}"


def _seconds(text: str) -> int:
    """Of `[D-]HH:MM:SS`, or a plain number of seconds."""
    if len(text) > _TIME_MAX:
        raise ValueError(f"not a time of Slurm's: {text[:_TIME_MAX]}")
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
echo '# tres'; ask tres format=type,name || exit 0
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
    """Records from the command's output; None where slurmdbd did not answer all of it.

    ValueError for anything else, which a broken head may print.
    """
    try:
        return _parse(lines)
    except (LookupError, ArithmeticError, TypeError) as error:
        raise ValueError(f"sacctmgr printed something else: {type(error).__name__}: {error}") from None


def _parse(lines: Iterable[str]) -> Records | None:
    sections: dict[str, list[list[str]]] = {}
    current: list[list[str]] = []
    for line in lines:
        if line.startswith("# "):
            current = sections.setdefault(line[2:].strip(), [])
        elif line:
            current.append([_plain(cell) for cell in line.split("|")])
    if "complete" not in sections:
        return None
    _check_names(sections)
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
        tres=frozenset("/".join(filter(None, row)) for row in sections["tres"]),
    )


def _plain(cell: str) -> str:
    """A cell as it is; ValueError where it could forge what an operator reads."""
    if not cell.isprintable() or len(cell) > CELL_MAX_CHARACTERS:
        raise ValueError(f"sacctmgr printed a value that is too long or not printable: {cell[:40]!r}")
    return cell


def _check_names(sections: Mapping[str, list[list[str]]]) -> None:
    """Names go into commands of sacctmgr: there a comma begins another name, and a blank another word."""
    for section, columns in _NAMED.items():
        for row in sections[section]:
            wrong = next((name for name in row[:columns] if not _NAME.fullmatch(name)), None)
            if wrong is not None:
                raise ValueError(f"sacctmgr lists a {section} with the name {wrong[:40]!r}")
