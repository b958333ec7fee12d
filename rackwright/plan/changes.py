"""What an operation would change, recorded before it yields its first command.

pyinfra only knows that an operation changes something, not what. Each operation of
rackwright.operations compares, records every difference it found here, and only then yields
commands. The engine collects the records into the plan; under the stock pyinfra CLI, with no
collector registered, they are logged.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

from rackwright.boundary import printable

if TYPE_CHECKING:  # plans are read and shown by processes that never load pyinfra
    from pyinfra.api.host import Host

Kind = Literal[
    "file",
    "directory",
    "link",
    "package",
    "unit",
    "sysctl",
    "user",
    "group",
    "slurm",
    "database",
    "setting",
    "certificate",
    "disk",
    "reboot",
]
"""What was changed. A new kind needs a drift in tests/racks/kinds.py, seeded and found."""

MASK = "(sensitive)"
_DIFF_LINES_MAX = 2000
_VALUE_MAX = 10_000
"""Characters of a value. Longer ones are cut off: they are shown, not used."""
_EQUAL_PAIRS_MAX = 100_000
"""Pairs of equal lines in two texts that are compared line by line: of more difflib makes minutes of work."""
_CHANGES = " changes"


@dataclass(frozen=True)
class Change:
    """One difference between what is declared and what is there."""

    kind: Kind
    target: str
    """A path, package, unit, key or entity name."""
    before: str | None
    """What is there, None if nothing is."""
    after: str | None
    """What will be there, None if it will be removed."""
    diff: tuple[str, ...] = ()
    """Unified diff of a text file, without line ends; empty when sensitive or binary."""
    because: str | None = None
    """What causes it, e.g. "/etc/slurm/slurm.conf changes"."""
    disruptive: bool = False
    """Interrupts something that runs: a restart, a reboot, a stop."""
    erases: str | None = None
    """Serial of the disk whose content it destroys; it is carried out only after that was typed for this run."""
    content: str | None = field(default=None, repr=False)
    """The whole text of a file that is not sensitive, for `rackwright render`; not in the plan."""

    def __post_init__(self) -> None:
        """Text from a node becomes printable: it is shown to operators, in plans, journals and reports."""
        shown = {
            name: printable(value, _VALUE_MAX)
            for name in ("target", "before", "after", "because", "erases")
            if (value := getattr(self, name)) is not None
        }
        for name, value in shown.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "diff", tuple(map(_printable_line, self.diff)))

    def is_because_of(self, target: str) -> bool:
        """Whether a change of `target`, or of something it holds, causes this one."""
        if self.because is None or not self.because.endswith(_CHANGES):
            return False
        causes = tuple(self.because.removesuffix(_CHANGES).split(", "))
        return bool(_among(causes, {target}))

    def to_json(self) -> dict[str, Any]:
        """As plain JSON data, for plan.json."""
        return {key: value for key, value in asdict(self).items() if key != "content"}


Collector = Callable[["Host", Change], None]
_collector: Collector | None = None
_pending: WeakKeyDictionary[Host, set[str]] = WeakKeyDictionary()
_removed: WeakKeyDictionary[Host, set[str]] = WeakKeyDictionary()
_reboots: WeakKeyDictionary[Host, list[Change]] = WeakKeyDictionary()
_waiting: WeakKeyDictionary[Host, bool] = WeakKeyDictionary()


def collect_with(collector: Collector | None) -> None:
    """Send every change recorded from now on to `collector` instead of the log."""
    global _collector
    _collector = collector


def record(*changes: Change, of_access: bool = False) -> None:
    """Record what the operation now being prepared or executed is about to change.

    `of_access`: only modes and owners change, which no daemon has to read again.
    """
    # processes that only read plans never load pyinfra
    from pyinfra import logger
    from pyinfra.context import ctx_host

    host: Host = ctx_host.get()  # type: ignore[no-untyped-call]
    for change in changes:
        if not of_access:
            _pending.setdefault(host, set()).add(change.target)
        if change.after is None:
            _removed.setdefault(host, set()).add(change.target)
        if change.kind == "reboot":
            _reboots.setdefault(host, []).append(change)
        if _collector is not None:
            _collector(host, change)
        else:
            logger.info(
                f"{host.print_prefix}~ {change.kind} {change.target}: {change.before} -> {change.after}"
            )
            for line in change.diff:
                logger.info(f"{host.print_prefix}    {line}")


def pending(host: Host, targets: tuple[str, ...]) -> tuple[str, ...]:
    """Those of `targets` that an earlier operation of this run changes on this host.

    A target also counts when something below it changes ("/etc/munge" for "/etc/munge/munge.key").
    """
    return _among(targets, _pending.get(host, set()))


def removed(host: Host, targets: tuple[str, ...]) -> tuple[str, ...]:
    """Those of `targets` that this run removes: afterwards nothing on the node shows that they existed."""
    return _among(targets, _removed.get(host, set()))


def reboot_is_due(host: Host) -> bool:
    """Whether an earlier operation of this run found something on this host that only a reboot brings."""
    return bool(_reboots.get(host))


def waits_for_reboot(host: Host) -> bool:
    """As `reboot_is_due`; where it is, the plan counts the operation at hand among those that wait for the reboot."""
    if not reboot_is_due(host):
        return False
    _waiting[host] = True
    return True


def took_to_waiting(host: Host) -> bool:
    """Whether the operation that was just prepared waits for a reboot; asked once for each operation."""
    return _waiting.pop(host, False)


def caused_by(targets: tuple[str, ...]) -> str:
    """Text of `Change.because` for changes of the same run."""
    return ", ".join(targets) + _CHANGES


def _among(targets: tuple[str, ...], known: set[str]) -> tuple[str, ...]:
    return tuple(
        target for target in targets if any(name == target or name.startswith(f"{target}/") for name in known)
    )


def _printable_line(line: str) -> str:
    """With its tabs."""
    return line if line.isprintable() else "\t".join(map(printable, line.split("\t")))


def _equal_pairs(before: list[str], after: list[str]) -> int:
    """How many pairs of equal lines difflib has to consider; of 200 lines or more it leaves out the frequent ones."""
    there = Counter(before)
    frequent = len(after) // 100 + 1 if len(after) >= 200 else len(after)
    return sum(there[line] * count for line, count in Counter(after).items() if count <= frequent)


def text_diff(path: str, before: str | None, after: str | None) -> tuple[str, ...]:
    """Unified diff of two texts, three lines of context, at most 2000 lines.

    Of texts that repeat the same lines too often, which a node may make up to keep us busy, it has their sizes.
    """
    was, becomes = (before or "").splitlines(), (after or "").splitlines()
    if _equal_pairs(was, becomes) > _EQUAL_PAIRS_MAX:
        return (
            f"--- {path} (on the node)",
            f"+++ {path}",
            f"@@ -1,{len(was)} +1,{len(becomes)} @@ not compared: too many lines are equal",
        )
    lines = list(
        difflib.unified_diff(
            was,
            becomes,
            fromfile=f"{path} (on the node)" if before is not None else "/dev/null",
            tofile=path if after is not None else "/dev/null",
            lineterm="",
        )
    )
    if len(lines) > _DIFF_LINES_MAX:
        left_out = len(lines) - _DIFF_LINES_MAX
        lines = [*lines[:_DIFF_LINES_MAX], f"... {left_out} more lines"]
    return tuple(lines)
