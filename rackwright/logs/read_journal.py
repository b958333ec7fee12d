"""Reads the central journal on its server: files of systemd-journal-remote, and the audit trail beside them.

Standard library, Python 3.9.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rackwright.logs.answer import Reading, Unreadable, main
from rackwright.logs.audit_files import audit_entries
from rackwright.logs.entries import AUDIT_FACILITIES, of_journal
from rackwright.logs.journal_files import Journalctl, JournalFile, journal_files, newest, tries

_AT_ONCE = 8
"""Nodes that are read side by side: each is one journalctl."""


def read(settings: dict[str, Any], reading: Reading) -> None:
    """Each node's files, newest entries first; of the audit trail also what was copied, which is kept longer."""
    wanted = reading.wanted
    if wanted.audit:
        for entry in audit_entries(settings["audit"], wanted.since, reading.problem):
            if entry["node"] in wanted.nodes:
                reading.newest_lines.add(entry)
    try:
        files = journal_files(settings["folder"], settings["sources"])
    except (OSError, ValueError) as error:
        raise Unreadable(f"the central journal cannot be read: {error}") from None
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(lambda node: _read_node(settings, files.get(node, []), node, reading), wanted.nodes))


def _read_node(settings: dict[str, Any], files: list[JournalFile], node: str, reading: Reading) -> None:
    problems: list[str] = []
    for there in tries(settings["folder"], settings["sources"], node, files):
        problems = _read_files(there, node, reading)
    for text in problems:
        reading.problem(f"{node}: {text}")


def _read_files(files: list[JournalFile], node: str, reading: Reading) -> list[str]:
    """What could not be read of them."""
    wanted, kept = reading.wanted, reading.newest_lines
    overlapping = [one for one in files if _overlaps(one, kept.floor, wanted.until)]
    if not overlapping or reading.late:
        return []
    options = ["--reverse", f"--since=@{int(kept.floor)}", f"--until=@{math.ceil(wanted.until)}"]
    journal = Journalctl(overlapping, options, _matches(reading))
    for fields in journal:
        entry = of_journal(node, fields)
        if entry is None:
            continue
        if entry["at"] < kept.floor or reading.late:
            break
        kept.add(entry)
    return journal.problems


def _overlaps(file: JournalFile, since: float, until: float) -> bool:
    """Whether a file may have entries of that time; True where it does not say."""
    times = file.times()
    return times is None or (times[0] <= until and times[1] >= since)


def _matches(reading: Reading) -> list[str]:
    """What journalctl itself can leave out; `Wanted.takes` decides."""
    wanted = reading.wanted
    if wanted.audit:
        each = [f"SYSLOG_FACILITY={facility}" for facility in AUDIT_FACILITIES]
        return " + ".join(each).split(" ")
    if wanted.unit is not None:
        return [f"_SYSTEMD_UNIT={wanted.unit}", "+", "_SYSTEMD_UNIT=init.scope"]
    if wanted.job is not None:
        each = ["_TRANSPORT=kernel", *(f"_SYSTEMD_UNIT={unit}" for unit in wanted.job.units)]
        return " + ".join(each).split(" ")
    return [f"--priority={wanted.priority}"] if wanted.priority is not None else []


def last(settings: dict[str, Any], nodes: list[str]) -> dict[str, float | None]:
    """By the files' headers."""
    try:
        return newest(settings["folder"], settings["sources"], nodes)
    except (OSError, ValueError) as error:
        raise Unreadable(f"the central journal cannot be read: {error}") from None


if __name__ == "__main__":
    main(read, last)
