"""Slurm's reservations: read in one command, compared, and the scontrol commands that make them as declared.

Times have no zone: they are those of the controller's clock, as scontrol prints and reads them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from rackwright.model.ranges import fold
from rackwright.workload.slurm.output import parse_fields, parse_hostlist

_OUTPUT_ONLY = frozenset({"SPEC_NODES", "ALL_NODES"})
_STEPS = {"HOURLY": timedelta(hours=1), "WEEKLY": timedelta(weeks=1)}
_DAYS = {"WEEKDAY": frozenset(range(5)), "WEEKEND": frozenset({5, 6})}
_REPEATING = ("HOURLY", "DAILY", "WEEKDAY", "WEEKEND", "WEEKLY")


@dataclass(frozen=True)
class Reservation:
    """One reservation as it is, or as it should be."""

    start: datetime
    end: datetime
    nodes: frozenset[str]
    users: frozenset[str] = frozenset()
    accounts: frozenset[str] = frozenset()
    flags: frozenset[str] = frozenset()

    @property
    def repeats(self) -> str | None:
        """The flag by which it repeats."""
        return next((flag for flag in _REPEATING if flag in self.flags), None)

    @property
    def minutes(self) -> int:
        """Its length."""
        return int((self.end - self.start).total_seconds()) // 60


@dataclass(frozen=True)
class Found:
    """What slurmctld has, and the time in its zone."""

    now: datetime
    reservations: Mapping[str, Reservation]


@dataclass(frozen=True)
class ScontrolCommand:
    """One difference and the scontrol command that removes it."""

    target: str
    before: str | None
    after: str | None
    arguments: tuple[str, ...]


_READ = """\
command -v scontrol >/dev/null || exit 0
systemctl is-active -q slurmctld || {{ echo '# stopped'; exit 0; }}
end=$(($(date +%s) + {patience}))
until answer=$(SLURM_TIME_FORMAT=standard timeout 20 scontrol show reservation -o 2>/dev/null); do
  [ "$(date +%s)" -lt $end ] || {{ echo '# silent'; exit 0; }}
  sleep 1
done
date '+# zone %z'
printf '%s\\n' "$answer"
echo '# complete'
"""


def read_command(patience: int = 5) -> str:
    """The shell command whose output `parse` reads. `patience`: seconds until slurmctld has to answer."""
    return _READ.format(patience=patience)


def clock(zone: str) -> datetime:
    """The time now in the controller's zone, e.g. `+0100`. Not asked there: an unchanged node answers unchanged."""
    there = datetime.strptime(zone, "%z").tzinfo
    return datetime.now(there).replace(tzinfo=None, microsecond=0)


def parse(lines: Iterable[str]) -> Found | None:
    """None where slurmctld did not answer. Raises ValueError or KeyError on what cannot be read."""
    rows = list(lines)
    if "# complete" not in rows:
        return None
    zone = next((row for row in rows if row.startswith("# zone ")), "").removeprefix("# zone ")
    fields = parse_fields("\n".join(row for row in rows if row.startswith("ReservationName=")))
    return Found(clock(zone), {row["ReservationName"]: _reservation(row) for row in fields})


def _reservation(row: Mapping[str, str]) -> Reservation:
    return Reservation(
        start=datetime.fromisoformat(row["StartTime"]),
        end=datetime.fromisoformat(row["EndTime"]),
        nodes=frozenset(parse_hostlist(_given(row["Nodes"]))),
        users=frozenset(_given(row["Users"]).split(",")) - {""},
        accounts=frozenset(_given(row["Accounts"]).split(",")) - {""},
        flags=frozenset(_given(row["Flags"]).split(",")) - {""} - _OUTPUT_ONLY,
    )


def _given(text: str) -> str:
    return "" if text == "(null)" else text


def past(declared: Mapping[str, Reservation], now: datetime) -> tuple[str, ...]:
    """Names of declared reservations that are over."""
    return tuple(name for name, one in declared.items() if not one.repeats and one.end <= now)


def undeclared(found: Found, declared: Mapping[str, Reservation]) -> tuple[str, ...]:
    """Names of reservations that nothing declares."""
    return tuple(sorted(set(found.reservations) - set(declared)))


def scontrol_commands(
    found: Found, declared: Mapping[str, Reservation], *, prune: bool
) -> list[ScontrolCommand]:
    """All of them; reservations that are over are left out."""
    over = set(past(declared, found.now))
    commands: list[ScontrolCommand] = []
    for name, want in declared.items():
        there = found.reservations.get(name)
        if there is not None and name not in over:
            commands += _update(name, there, want, found.now)
        elif there is None and name not in over:
            commands.append(_create(name, want, found.now))
    gone = undeclared(found, declared) if prune else ()
    return commands + [
        ScontrolCommand(f"reservation {name}", "exists", None, ("delete", f"ReservationName={name}"))
        for name in gone
    ]


def _create(name: str, want: Reservation, now: datetime) -> ScontrolCommand:
    due = _next(want, now)
    pairs = [f"StartTime={'now' if due.start <= now else _time(due.start)}"]
    pairs += [f"Duration={due.minutes}" if want.repeats else f"EndTime={_time(due.end)}"]
    pairs += [f"Nodes={fold(due.nodes)}"]
    pairs += [f"Users={_list(due.users)}"] if due.users else []
    pairs += [f"Accounts={_list(due.accounts)}"] if due.accounts else []
    flags = due.flags - _OUTPUT_ONLY
    pairs += [f"Flags={_list(flags)}"] if flags else []
    return ScontrolCommand(
        f"reservation {name}", None, " ".join(pairs), ("create", f"ReservationName={name}", *pairs)
    )


def _update(name: str, there: Reservation, want: Reservation, now: datetime) -> Iterator[ScontrolCommand]:
    update = ("update", f"ReservationName={name}")
    target = f"reservation {name}"
    surplus, missing = there.flags - want.flags, want.flags - _OUTPUT_ONLY - there.flags
    if surplus:  # first: a reservation repeats in one way only
        yield ScontrolCommand(
            target,
            f"flags {_list(surplus)}",
            f"without {_list(surplus)}",
            (*update, f"Flags-={_list(surplus)}"),
        )
    pairs, before = [], []
    for key, is_, wanted in _differences(there, want, now):
        pairs.append(f"{key}={wanted}")
        before.append(f"{key}={is_}")
    if missing:
        pairs.append(f"Flags+={_list(missing)}")
        before.append(f"Flags={_list(there.flags)}")
    if pairs:
        yield ScontrolCommand(target, " ".join(before), " ".join(pairs), (*update, *pairs))


def _differences(there: Reservation, want: Reservation, now: datetime) -> Iterator[tuple[str, str, str]]:
    due = _next(want, now)
    if not _same_start(there, want, now):
        yield "StartTime", _time(there.start), _time(due.start)
    if want.repeats:
        if there.minutes != want.minutes:
            yield "Duration", str(there.minutes), str(want.minutes)
    elif there.end != want.end:
        yield "EndTime", _time(there.end), _time(want.end)
    if there.nodes != want.nodes:
        yield "Nodes", fold(there.nodes) if there.nodes else "", fold(want.nodes)
    if there.users != want.users:
        yield "Users", _list(there.users), _list(want.users)
    if there.accounts != want.accounts:
        yield "Accounts", _list(there.accounts), _list(want.accounts)


def _same_start(there: Reservation, want: Reservation, now: datetime) -> bool:
    """A repeating one moves on by itself, and one that has begun began when it was made."""
    repeats = want.repeats
    if repeats is None:
        return there.start == want.start or (want.start <= now and there.start <= now)
    if repeats == "HOURLY":
        return (there.start.minute, there.start.second) == (want.start.minute, want.start.second)
    same_day = repeats != "WEEKLY" or there.start.weekday() == want.start.weekday()
    return same_day and there.start.time() == want.start.time()


def _next(want: Reservation, now: datetime) -> Reservation:
    """The occurrence to create: slurmctld takes no repeating reservation that begins in the past."""
    repeats = want.repeats
    if repeats is None:
        return want
    step = _STEPS.get(repeats, timedelta(days=1))
    start = want.start
    if start <= now:
        start += step * ((now - start) // step + 1)
    days = _DAYS.get(repeats, frozenset(range(7)))
    for _ in range(7):
        if start.weekday() in days:
            break
        start += timedelta(days=1)
    return replace(want, start=start, end=start + (want.end - want.start))


def _time(moment: datetime) -> str:
    return moment.isoformat(timespec="seconds")


def _list(words: Iterable[str]) -> str:
    return ",".join(sorted(words))
