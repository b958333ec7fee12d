"""The hardware event log, from Redfish documents.

Each vendor has it elsewhere under another name: SEL, Sel, IML, EventLog, Log1, below the system or the manager.
Logs of logins, of the BMC itself and of crash dumps are not read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from rackwright.bmc.documents import Document, last_part, link, links, listed, number, severity, text
from rackwright.bmc.interface import Condition, LogEntry
from rackwright.bmc.redfish_tree import Tree

_BY_PREFERENCE = (
    *("sel", "iml", "platformlog", "standardlog", "eventlog", "log1", "log", "activelog"),
    *("lclog", "iel"),
)
"""Ids of the hardware log, lower case; a log with another name is read only if it is the only one."""
_OTHERS = (
    "audit",
    "dump",
    "postcode",
    "journal",
    "hostlogger",
    "security",
    "debug",
    "crash",
    "fault",
    "telemetry",
)
_SERVICES_MAX = 16
_PAGES_MAX = 40
_ENTRIES_MAX = 4000
_NO_TIME = datetime.min.replace(tzinfo=UTC)


def read_log(tree: Tree, limit: int) -> list[LogEntry]:
    """The newest entries, newest first; empty if the BMC has no log."""
    service = log_service(tree, tree.system())
    return entries_of(_newest(tree, link(service, "Entries"), limit))[:limit]


def log_room(tree: Tree, system: Document) -> tuple[int | None, bool]:
    """Percent of the log that is used, and whether a full log drops its oldest entries."""
    service = log_service(tree, system)
    wraps = text(service, "OverWritePolicy") == "WrapsWhenFull"
    room = number(service, "MaxNumberOfRecords")
    if room is None or room < 1:
        return None, wraps
    used = number(tree.optional(link(service, "Entries")), "Members@odata.count")
    return None if used is None or used < 0 else min(100, round(100 * used / room)), wraps


def log_service(tree: Tree, system: Document) -> Document:
    """The service with the hardware log; an empty document if there is none."""
    holders = [system, *tree.managers(system)]
    paths: list[str] = []
    for holder in holders:
        paths += links(tree.optional(link(holder, "LogServices")), "Members")[:_SERVICES_MAX]
    chosen = choose_log(paths)
    return tree.optional(chosen)


def choose_log(paths: Iterable[str]) -> str | None:
    """Of log services, the one with the hardware's events."""
    rank = {name: place for place, name in enumerate(_BY_PREFERENCE)}
    names = {path: last_part(path).lower() for path in paths}
    fit = {path: name for path, name in names.items() if not any(word in name for word in _OTHERS)}
    return min(fit, key=lambda path: rank.get(fit[path], len(rank)), default=None)


def entries_of(documents: Iterable[Document]) -> list[LogEntry]:
    """Entries, newest first; within a second in order of their numbers."""
    read = [(entry, number(doc, "Id", "RecordId") or 0.0) for doc in documents if (entry := entry_of(doc))]
    read.sort(key=lambda pair: (pair[0].when or _NO_TIME, pair[1]), reverse=True)
    return [entry for entry, _ in read]


def entry_of(doc: Document) -> LogEntry | None:
    """One entry; None if it is empty."""
    message = text(doc, "Message", "Name")
    if message is None:
        return None
    found = severity(text(doc, "Severity"))
    if doc.get("EntryCode") == "Deassert" and found is not Condition.UNKNOWN:
        found = Condition.OK  # the fault has ended
    return LogEntry(_time(text(doc, "Created", "EventTimestamp")), found, message, text(doc, "SensorType"))


def _time(written: str | None) -> datetime | None:
    try:
        when = datetime.fromisoformat(written or "")
        when = when if when.tzinfo is not None else when.replace(tzinfo=UTC)
        when = when.astimezone(UTC)
    except (ValueError, OverflowError):
        return None
    return when if when.year >= 2000 else None  # its clock was not set yet


def _newest(tree: Tree, path: str | None, limit: int) -> Iterator[Document]:
    """Entries including the newest; follows pages until they must have appeared."""
    seen = 0
    for _ in range(_PAGES_MAX):
        if path is None or seen >= _ENTRIES_MAX:
            return
        page = tree.optional(path)
        members = list(listed(page, "Members"))
        if members and all(len(one) == 1 for one in members):
            members = _of_the_newer_end(tree, links(page, "Members"), limit)
        yield from members
        seen += len(members)
        if seen >= limit and _is_newest_first(members):
            return
        following = page.get("Members@odata.nextLink")
        path = following if isinstance(following, str) and following else None


def _of_the_newer_end(tree: Tree, paths: list[str], limit: int) -> list[Document]:
    """Entries that must be read one by one: those at the end with the newest."""
    if len(paths) > limit:
        newest_first = _is_newest_first([tree.optional(paths[0]), tree.optional(paths[-1])])
        paths = paths[:limit] if newest_first else paths[-limit:]
    return [tree.optional(path) for path in paths]


def _is_newest_first(members: list[Document]) -> bool:
    times = [entry.when for one in members if (entry := entry_of(one)) and entry.when]
    return len(times) > 1 and times[0] > times[-1]
