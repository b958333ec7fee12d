"""systemd units: their state, and since when."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from shlex import quote

from pyinfra.api.facts import FactBase

from rackwright.facts.question import Question

PROPERTIES = (
    "LoadState,ActiveState,UnitFileState,NeedDaemonReload,StateChangeTimestamp,FragmentPath,DropInPaths"
)
_SHOW = """\
LC_ALL=C systemctl show --timestamp=us+utc {unit} \\
  -p {properties} 2>/dev/null
{newest}
: """


@dataclass(frozen=True)
class UnitState:
    """One unit. `changed` and `newest` are seconds since the epoch."""

    loaded: bool = False
    active: bool = False
    active_state: str = "missing"
    enabled: bool = False
    masked: bool = False
    file_state: str = ""
    needs_daemon_reload: bool = False
    changed: float = 0.0
    """When it last started, stopped or finished a reload."""
    fragment: str = ""
    """The unit file; empty where the unit is masked or has none."""
    drop_ins: tuple[str, ...] = ()
    newest: dict[str, float] = field(default_factory=dict)
    """By monitored path: the newest change at or below it; missing paths are left out."""

    def older_than(self, path: str) -> bool:
        """Whether something at or below the monitored path changed after the unit last did."""
        return self.newest.get(path, 0.0) > self.changed


_ENABLED = ("enabled", "static", "alias", "indirect", "generated")
"""What starts at boot by itself or by another unit; `enabled-runtime` ends with the next boot."""


def parse_unit(lines: list[str]) -> UnitState:
    """Parse the output of the fact's command; empty output means that the unit does not exist."""
    values: dict[str, str] = {}
    newest: dict[str, float] = {}
    for line in lines:
        if line.startswith("newest "):
            _, seconds, path = line.split(" ", 2)
            newest[path] = float(seconds)
        elif "=" in line:
            key, _, value = line.partition("=")
            values[key] = value
    active = values.get("ActiveState", "missing")
    file_state = values.get("UnitFileState", "")
    masked = values.get("LoadState") == "masked" or file_state.startswith("masked")
    return UnitState(
        loaded=values.get("LoadState") == "loaded",
        active=active in ("active", "reloading"),
        active_state=active,
        enabled=file_state in _ENABLED,
        masked=masked,
        file_state=file_state,
        needs_daemon_reload=values.get("NeedDaemonReload") == "yes",
        changed=_seconds(values.get("StateChangeTimestamp", "")),
        fragment="" if masked else values.get("FragmentPath", ""),
        drop_ins=tuple(values.get("DropInPaths", "").split()),
        newest=newest,
    )


def _seconds(stamp: str) -> float:
    """`Fri 2026-11-20 19:50:11.123456 UTC` as seconds since the epoch; empty is 0."""
    if not stamp or stamp == "n/a":
        return 0.0
    day_and_time = " ".join(stamp.split()[1:3])
    return datetime.strptime(day_and_time, "%Y-%m-%d %H:%M:%S.%f").replace(tzinfo=UTC).timestamp()


class Unit(FactBase[UnitState]):
    """State of a unit, and the newest change below each monitored path."""

    def command(self, unit: str, watch: tuple[str, ...] = ()) -> Question:
        newest = "\n".join(
            f"[ ! -e {quote(path)} ] || printf 'newest %s %s\\n' "
            f"\"$(find {quote(path)} -printf '%T@\\n' | sort -rn | head -n 1)\" {quote(path)}"
            for path in watch
        )
        return Question(
            _SHOW.format(unit=quote(unit), properties=PROPERTIES, newest=newest),
            "unit",
            unit=unit,
            watch=list(watch),
        )

    @staticmethod
    def default() -> UnitState:
        return UnitState()

    def process(self, output: list[str]) -> UnitState:
        return parse_unit(output)
