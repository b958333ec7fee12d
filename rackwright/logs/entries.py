"""Log entries of all stores in one form, filters, and the newest matches. Standard library, Python 3.9."""

from __future__ import annotations

import heapq
import json
import re
import threading
from typing import Any

from rackwright.health.probe.kernel_events import Events, Surroundings

MESSAGE_MAX = 4096
NAME_MAX = 1024
"""Longest name, unit or control group: any user may log with a name as long as a message."""
ANSWER_MAX = 12 * 2**20
"""Longest answer in bytes of JSON: below the limit of rackwright.boundary."""
LINE_BYTES = 512
"""Bytes of a line besides its texts: keys, numbers, and the fields of a kernel complaint."""
AUDIT_FACILITIES = (4, 10)
"""auth and authpriv: sshd, sudo, su, PAM, systemd-logind, and runs of rackwright."""
KERNEL_FACILITY = 0
"""Kernel facility numbers; other facilities are what programs wrote into the kernel log (Documentation/ABI/testing/dev-kmsg)."""

MARK_UNIT = "rackwright-logs-mark.service"
"""Writes a line periodically, which distinguishes a dead node from a quiet one."""

Entry = dict[str, Any]
"""node, at, message, and further KEYS if known."""
KEYS = (
    "node",
    "at",
    "message",
    "name",
    "pid",
    "unit",
    "priority",
    "facility",
    "kernel",
    "uid",
    "trusted",
    "cgroup",
)


def of_journal(node: str, fields: dict[str, Any]) -> Entry | None:
    """An entry of `journalctl -o json`; None if it has no time or text."""
    stamp = fields.get("__REALTIME_TIMESTAMP")
    message = text_of(fields.get("MESSAGE"))
    if not isinstance(stamp, str) or not stamp.isdigit() or message is None:
        return None
    facility = whole(fields.get("SYSLOG_FACILITY"))
    kernel = fields.get("_TRANSPORT") == "kernel" and facility in (None, KERNEL_FACILITY)
    uid = whole(fields.get("_UID"))
    return {
        "node": node,
        "at": int(stamp) / 1e6,
        "message": message[:MESSAGE_MAX],
        "name": name_of(fields.get("SYSLOG_IDENTIFIER")) or name_of(fields.get("_COMM")),
        "pid": whole(fields.get("_PID")) or whole(fields.get("SYSLOG_PID")),
        "unit": name_of(fields.get("_SYSTEMD_UNIT")),
        "priority": whole(fields.get("PRIORITY")),
        "facility": facility,
        "kernel": kernel,
        "uid": uid,
        "trusted": is_trusted(kernel, uid),
        "cgroup": name_of(fields.get("_SYSTEMD_CGROUP")),
    }


def is_trusted(kernel: bool, uid: int | None) -> bool:
    """Whether the kernel or a process of root wrote it.

    _UID is the sender's real user id, set by the kernel. For sudo and su it is their caller's, and nothing else in an entry
    distinguishes them from another program of that user: in a user namespace, any process has all capabilities, and with
    a bind mount there, _EXE is /usr/bin/sudo.
    """
    return kernel or uid == 0


def name_of(value: Any) -> str | None:  # noqa: ANN401 - of JSON
    """The beginning of a field's text."""
    text = text_of(value)
    return None if text is None else text[:NAME_MAX]


def text_of(value: Any) -> str | None:  # noqa: ANN401 - of JSON
    """A field's text; journalctl prints a list of bytes if it is not UTF-8, and a list of values if it has several."""
    if isinstance(value, list):
        if value and all(isinstance(one, int) and 0 <= one < 256 for one in value):
            return bytes(value).decode("utf-8", "replace")
        value = value[-1] if value and isinstance(value[-1], str) else None
    return value if isinstance(value, str) else None


def whole(value: Any) -> int | None:  # noqa: ANN401 - of JSON
    """A number as text, or as such."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**63 else None


def complaint(entry: Entry) -> dict[str, Any] | None:
    """An XID, an SXid, an AER or another kernel complaint as fields; None for every other line."""
    if not entry.get("kernel"):
        return None
    events = Events(Surroundings())
    events.add(entry["at"], entry["message"])
    found = events.entries()
    if not found:
        return None
    wanted = ("kind", "device", "code", "severity", "cause", "recovery", "server", "driver")
    return {key: found[0][key] for key in wanted if found[0].get(key) is not None}


class Wanted:
    """Filter of a request; raises KeyError, TypeError or ValueError if it is invalid."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.nodes: list[str] = list(request["nodes"])
        self.since = float(request["since"])
        self.until = float(request["until"])
        self.lines = int(request["lines"])
        self.unit: str | None = request.get("unit")
        self.grep: str | None = request.get("grep")
        self.priority: int | None = request.get("priority")
        self.audit = bool(request.get("audit"))
        self.job = Job(request["job"]) if request.get("job") else None

    @property
    def units(self) -> tuple[str, ...] | None:
        """Units that a store may limit the query to, besides kernel lines; None: all."""
        if self.unit is not None:
            return (self.unit,)
        return self.job.units if self.job is not None else None

    def takes(self, entry: Entry) -> bool:
        """Whether it matches."""
        if not self.since <= entry["at"] <= self.until:
            return False
        if self.unit is not None and not _is_of(entry, self.unit):
            return False
        if self.unit != MARK_UNIT and _is_of(entry, MARK_UNIT):
            return False
        if self.priority is not None and (entry.get("priority") is None or entry["priority"] > self.priority):
            return False
        if self.grep is not None and self.grep.casefold() not in entry["message"].casefold():
            return False
        if self.audit and entry.get("facility") not in AUDIT_FACILITIES:
            return False
        return self.job is None or self.job.owns(entry)


def _is_of(entry: Entry, unit: str) -> bool:
    """systemd's messages about a unit belong to it too, as in `journalctl -u`."""
    if entry.get("unit") == unit:
        return True
    return entry.get("unit") == "init.scope" and entry.get("uid") == 0 and unit in entry["message"]


class Job:
    """Whether a line belongs to a job (rackwright.workload.protocol.JobTrace), as a request has it."""

    def __init__(self, request: dict[str, Any]) -> None:
        self.nodes, self.servers = frozenset(request["nodes"]), frozenset(request["servers"])
        self.units: tuple[str, ...] = tuple(request["units"])
        self._since, self._until = request["since"], request["until"]
        self._cgroup, self._named = re.compile(request["cgroup"]), re.compile(request["named"])

    def owns(self, entry: Entry) -> bool:
        """Lines of its processes, of the workload manager about it, and of the kernel on its nodes while it ran."""
        here = entry["node"] in self.nodes
        if here and self._cgroup.search(entry.get("cgroup") or ""):
            return True
        if here and entry.get("kernel"):
            return self._since is not None and self._since <= entry["at"] <= self._until
        serves = entry["node"] in self.servers
        if entry.get("unit") not in self.units or not (serves or (here and entry.get("uid") == 0)):
            return False  # a user's process may write anything, including lines that look like another job's
        return self._named.search(entry["message"]) is not None


class Newest:
    """The newest matching lines, up to the request's limit; thread-safe."""

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._most = wanted.lines + 1  # one more, to detect that more matched
        self._heap: list[tuple[float, int, int, Entry]] = []
        self._there: set[tuple[Any, ...]] = set()
        self._size = self._count = 0
        self._lock = threading.Lock()
        self._dropped = False

    @property
    def more(self) -> bool:
        """Whether older ones were dropped."""
        return self._dropped or len(self._heap) == self._most

    @property
    def floor(self) -> float:
        """Lines older than this are no longer needed."""
        return self._heap[0][0] if self.more else self._wanted.since

    def add(self, entry: Entry) -> None:
        """Add it if it matches and is new enough. A line that was sent twice counts once."""
        if entry["at"] < self.floor or not self._wanted.takes(entry):
            return
        size = _size(entry)
        with self._lock:
            if _key(entry) in self._there:
                return
            self._there.add(_key(entry))
            self._count += 1
            # stores are read backwards: of equal times, what comes later was written earlier
            heapq.heappush(self._heap, (entry["at"], -self._count, size, entry))
            self._size += size
            while len(self._heap) > self._most or self._size > ANSWER_MAX:
                _, _, gone_size, gone = heapq.heappop(self._heap)
                self._there.discard(_key(gone))
                self._size -= gone_size
                self._dropped = True

    def lines(self) -> list[Entry]:
        """Oldest first, with fields of kernel complaints."""
        newest = sorted(self._heap, key=_place)[-self._wanted.lines :]
        shown = [key for key in KEYS if key != "cgroup"]
        return [{**{key: one.get(key) for key in shown}, "fields": complaint(one)} for *_, one in newest]


def _key(entry: Entry) -> tuple[Any, ...]:
    return entry["node"], entry["at"], entry.get("pid"), entry["message"]


def _size(entry: Entry) -> int:
    """Bytes in an answer: JSON may need twelve per character."""
    return len(json.dumps([entry["message"], entry.get("name"), entry.get("unit")])) + LINE_BYTES


def _place(kept: tuple[float, int, int, Entry]) -> tuple[float, int]:
    return kept[:2]
