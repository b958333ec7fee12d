"""Reads the central journal on its server: files of systemd-journal-remote, and the audit trail next to them.

Standard library, Python 3.9.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

from rackwright.logs.answer import Reading, Unreadable, main
from rackwright.logs.audit_files import audit_entries
from rackwright.logs.boots import ALL, Boot, boots
from rackwright.logs.entries import AUDIT_FACILITIES, of_journal
from rackwright.logs.journal_files import (
    LINE_MAX,
    Journalctl,
    JournalFile,
    journal_files,
    newest,
    overlapping,
    tries,
)

_AT_ONCE = 8
"""Nodes that are read in parallel: each is one journalctl."""


def read(settings: dict[str, Any], reading: Reading) -> None:
    """Each node's files, newest entries first; for the audit trail also the copies, which are kept longer."""
    wanted = reading.wanted
    if wanted.audit:
        for entry in audit_entries(settings["audit"], wanted.since, reading.problem):
            if reading.late:
                break
            if entry["node"] in wanted.nodes:
                reading.newest_lines.add(entry)
    try:
        files = journal_files(settings["folder"], settings["sources"])
    except (OSError, ValueError) as error:
        raise Unreadable(f"cannot read the central journal: {error}") from None
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(lambda node: _read_node(settings, files.get(node, []), node, reading), wanted.nodes))


def _read_node(settings: dict[str, Any], files: list[JournalFile], node: str, reading: Reading) -> None:
    problems: list[str] = []
    for there in tries(settings["folder"], settings["sources"], node, files):
        problems = _read_files(there, node, reading)
    for text in problems:
        reading.problem(f"{node}: {text}")


def _read_files(files: list[JournalFile], node: str, reading: Reading) -> list[str]:
    """What could not be read of them. Damaged files are read whole: boots cannot be located reliably in them."""
    of_time = overlapping(files, reading.newest_lines.floor, reading.wanted.until)
    if not of_time or reading.late:
        return []
    for boot in boots(of_time):
        problems = _read_boot(of_time, boot, node, reading)
        if problems:
            return problems if boot == ALL else _read_boot(of_time, ALL, node, reading)
    return []


def _read_boot(files: list[JournalFile], boot: Boot, node: str, reading: Reading) -> list[str]:
    """What could not be read of it."""
    wanted, kept = reading.wanted, reading.newest_lines
    options = boot.options(kept.floor, wanted.until)
    if options is None or reading.late:
        return []
    journal = Journalctl(files, options, boot.matches(_matches(reading)))
    for fields in journal:
        entry = of_journal(node, fields)
        if entry is None:
            continue
        if entry["at"] < kept.floor - boot.set_back or reading.late:
            break
        kept.add(entry)
    if journal.too_long:
        reading.problem(f"{node}: {journal.too_long} entries of more than {LINE_MAX >> 20} MiB were skipped")
    return journal.problems


def _matches(reading: Reading) -> list[str]:
    """Filters that journalctl can apply; `Wanted.takes` decides."""
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
        raise Unreadable(f"cannot read the central journal: {error}") from None


if __name__ == "__main__":
    main(read, last)
