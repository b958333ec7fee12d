"""Complaints in the kernel's log of the last day, with their times."""

from __future__ import annotations

import json
import re
from typing import Any

from rackwright.health.probe.source import Source, Unavailable, number

DAY = 86400
KEPT_PER_KIND = 200

KINDS = (
    ("xid", r"NVRM: Xid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+)"),
    ("sxid", r"SXid \((?:PCI:)?([0-9a-fA-F:.]+)\): (\d+),? ?(.*)"),
    ("gpu_lost", r"NVRM: .*(?:has fallen off the bus|RmInitAdapter failed|rm_init_adapter failed)"),
    ("driver_mismatch", r"NVRM: API mismatch"),
    ("aer_uncorrected", r"AER: (?:Multiple )?Uncorrect|PCIe Bus Error: severity=Uncorrect"),
    ("aer_corrected", r"AER: (?:Multiple )?Correct|PCIe Bus Error: severity=Correct"),
    ("pcie_limited", r"available PCIe bandwidth, limited by"),
    ("mce", r"(?i)mce: .*Machine check|\[Hardware Error\]: .*(?:MCE|CPU \d+|Machine check)"),
    ("memory_uncorrected", r"EDAC .*\bUE\b|Memory failure: 0x|Uncorrected hardware memory error"),
    ("memory_corrected", r"EDAC .*\bCE\b|Corrected hardware memory error"),
    ("oom", r"Out of memory: Killed process|oom-kill:.*global_oom"),
    ("lockup", r"soft lockup|hard LOCKUP|rcu.*self-detected stall|blocked for more than \d+ seconds"),
    ("io_error", r"I/O error, dev |nvme\d+: I/O .*timeout|controller is down; will reset|Buffer I/O error"),
    ("fs_error", r"EXT4-fs error|XFS \(.*(?:[Cc]orruption|shut ?down)|BTRFS.*error|Remounting filesystem read-only"),
    ("fs_stalled", r"nfs: server .* not responding|LustreError: .*(?:evicted|timed out)"),
    ("link_down", r"\b(\S+?):? (?:NIC )?Link is Down|(\S+): Link down|(\S+): Lost carrier"),
    ("thermal", r"temperature above threshold, cpu clock throttled"),
)  # fmt: skip
"""Patterns, compiled when a line asks for them: most passes meet none."""
HINT = re.compile(
    r"NVRM|Xid|AER|PCIe|mce:|Hardware Error|EDAC|emory|oom-kill|lockup|LOCKUP|stall|blocked for"
    r"|I/O|down|error|orruption|responding|ink |carrier|temperature"
)


def kernel_log(source: Source, request: dict[str, Any]) -> dict[str, Any]:
    """What the kernel complained about: from the journal, else from its ring buffer."""
    since = max(source.now() - DAY, float(request.get("log_since") or 0))
    try:
        lines, where = from_journal(source, since), "journalctl"
    except Unavailable as error:
        try:
            lines, where = from_dmesg(source, since), "dmesg"
        except Unavailable as second:
            raise Unavailable(f"{error}; {second}") from None
    entries, counts = sort_out(lines)
    return {"from": where, "since": int(since), "entries": entries, "counts": counts, "lines": len(lines)}


def from_journal(source: Source, since: float) -> list[tuple[float, str]]:
    """(time, message) of every kernel line in the journal of this boot since then."""
    command = ["journalctl", "-k", "-b", "-q", "--no-pager", "-o", "json", "--output-fields=MESSAGE"]
    text = source.run([*command, f"--since=@{since:.0f}"], 5.0)
    lines = []
    for line in text.splitlines():
        try:
            entry = json.loads(line)
            at = int(entry["__REALTIME_TIMESTAMP"]) / 1e6
            message = entry["MESSAGE"]
        except (ValueError, KeyError, TypeError):
            raise Unavailable(f"`journalctl -o json` printed something else: {line[:80]}") from None
        if isinstance(message, list):  # bytes, where the message is no text
            message = bytes(message).decode("utf-8", "replace")
        if message is not None:
            lines.append((at, message))
    if not lines and not source.run(
        ["journalctl", "-k", "-b", "-q", "--no-pager", "-n", "1", "-o", "cat"], 5.0
    ):
        raise Unavailable("journalctl: no kernel line of this boot")  # then silence says nothing
    return lines


def from_dmesg(source: Source, since: float) -> list[tuple[float, str]]:
    """(time, message) of every line in the ring buffer since then; times reckoned from the uptime."""
    booted = source.now() - float(number(source.text("/proc/uptime")) or 0)
    lines = []
    text = source.run(["dmesg"], 5.0)
    for line in text.splitlines():
        found = re.match(r"\[\s*(\d+\.\d+)\] (.*)", line)
        if found and booted + float(found.group(1)) >= since:
            lines.append((booted + float(found.group(1)), found.group(2)))
    if not re.search(r"^\[\s*\d", text, re.MULTILINE):
        raise Unavailable("dmesg: no line with a time")
    return lines


def sort_out(lines: list[tuple[float, str]]) -> tuple[list[dict[str, Any]], dict[str, int]]:
    """The lines that are complaints, by kind; the last of each kind are kept, all are counted."""
    kept: dict[str, list[dict[str, Any]]] = {kind: [] for kind, _ in KINDS}
    for at, message in lines:
        if not HINT.search(message):
            continue
        for kind, pattern in KINDS:
            found = re.search(pattern, message)
            if found:
                kept[kind].append(entry(at, kind, message, found))
                break
    counts = {kind: len(entries) for kind, entries in kept.items()}
    return [one for entries in kept.values() for one in entries[-KEPT_PER_KIND:]], counts


def entry(at: float, kind: str, message: str, found: Any) -> dict[str, Any]:  # noqa: ANN401 - a Match
    """One complaint; XIDs and SXids with their number and device."""
    told: dict[str, Any] = {"at": round(at, 3), "kind": kind, "message": message[:400]}
    if kind in ("xid", "sxid"):
        told["device"] = found.group(1).lower()
        told["code"] = int(found.group(2))
    if kind == "link_down":
        told["device"] = next((group for group in found.groups() if group), None)
    return told
