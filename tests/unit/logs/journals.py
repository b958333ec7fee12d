"""Journal entries as `journalctl -o json` prints them, files with a header, and a journalctl that reads their text."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path

T0 = 1_795_741_200.0
"""2026-11-27 01:00:00 UTC"""

JOURNALCTL = """\
#!/usr/bin/python3
import json, os, re, sys
files = [word[7:] for word in sys.argv if word.startswith("--file=")]
options = dict(word[2:].partition("=")[::2] for word in sys.argv[1:] if word.startswith("--"))
with open(os.environ["CALLS"], "a") as calls:
    calls.write(json.dumps(sys.argv[1:]) + "\\n")
for path in files:
    if os.path.exists(path + ".next"):  # the receiver closes it, just before it is opened here
        closed = path.replace(".journal", "@0-9-9.journal")
        for old, new in ((path, closed), (path + ".next", path)):
            for end in ("", ".json"):
                os.rename(old + end, new + end)
entries = []
matches = [word for word in sys.argv[1:] if not word.startswith("-")]
for path in files:
    if not os.path.exists(path + ".json"):  # as 252 and 257 do it: the others are not read either
        sys.stderr.write("<31>Failed to open journal file %s: Bad message\\n" % path)
        sys.exit("<27>Failed to open files: Bad message")
    sys.stderr.write("<31>File %s added.\\n" % path)
    found = [json.loads(line) for line in open(path + ".json")]
    if os.path.exists(path + ".damage"):
        if os.environ["SYSTEMD_LOG_LEVEL"] == "debug":
            said = "Can't iterate through %s, ignoring: Bad message" % path if matches else "Entry item 1 is bad, skipping over it."
            sys.stderr.write("<31>%s\\n" % said)
        found = [] if matches else found[1:]
    entries += found
entries.sort(key=lambda one: int(one["__REALTIME_TIMESTAMP"]))
for option, sign in (("since", 1), ("until", -1)):
    if option in options:
        bound = float(options[option][1:]) * 1e6
        entries = [one for one in entries if sign * int(one["__REALTIME_TIMESTAMP"]) >= sign * bound]
groups = [[]]
for word in matches:
    if word == "+":
        groups.append([])
    else:
        groups[-1].append(word.partition("=")[::2])
if matches:
    entries = [one for one in entries if any(all(one.get(k) == v for k, v in group) for group in groups)]
if "cursor" in options:
    entries = [one for one in entries if int(one["__CURSOR"]) >= int(options["cursor"])]
if "after-cursor" in options:  # as 252 does it, whatever the first is
    entries = [one for one in entries if int(one["__CURSOR"]) >= int(options["after-cursor"])][1:]
for one in reversed(entries) if "--reverse" in sys.argv else entries:
    print(json.dumps(one))
sys.exit(int(os.environ.get("JOURNALCTL_RC", "0")))
"""


def entry(at, message, **fields):
    """One entry, `at` seconds after T0; its cursor is its time."""
    stamp = str(int((T0 + at) * 1e6))
    defaults = {"PRIORITY": "6", "SYSLOG_FACILITY": "3", "_UID": "0", "_PID": "7", "_TRANSPORT": "journal"}
    return {"__REALTIME_TIMESTAMP": stamp, "__CURSOR": stamp, "MESSAGE": message, **defaults, **fields}


def kernel(at, message, **fields):
    """One that the kernel wrote."""
    defaults = {"_TRANSPORT": "kernel", "SYSLOG_FACILITY": "0", "SYSLOG_IDENTIFIER": "kernel"}
    found = entry(at, message, **{**defaults, **fields})
    return {key: value for key, value in found.items() if key not in ("_UID", "_PID")}


def header(first, last):
    """A journal file's header with these times, as systemd.io/JOURNAL_FILE_FORMAT has it, in front of nothing."""
    head = bytearray(272)
    head[:8] = b"LPKSHHRH"
    struct.pack_into("<QQ", head, 184, int(first * 1e6), int(last * 1e6))
    return bytes(head)


class Folder:
    """What systemd-journal-remote has written, beside a table of nodes and an empty audit trail."""

    def __init__(self, root: Path, monkeypatch) -> None:
        self.path, self.audit = root / "remote", root / "audit"
        self.sources = root / "sources.json"
        for folder in (self.path, self.audit):
            folder.mkdir()
        self.sources.write_text(json.dumps({"w1": 1, "w2": 2, "head1": 3}))
        self.calls = root / "calls"
        program = root / "bin" / "journalctl"
        program.parent.mkdir()
        program.write_text(JOURNALCTL)
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
        monkeypatch.setenv("CALLS", str(self.calls))

    @property
    def settings(self):
        return {"folder": str(self.path), "sources": str(self.sources), "audit": str(self.audit)}

    def write(self, number, entries, archived="", size=0):
        """The file of a node's number; `archived`: what a closed file has behind its name."""
        path = self.path / f"remote-127.1.0.{number}{archived}.journal"
        times = [int(one["__REALTIME_TIMESTAMP"]) / 1e6 for one in entries]
        path.write_bytes(header(min(times, default=0), max(times, default=0)) + b"x" * size)
        Path(f"{path}.json").write_text("".join(json.dumps(one) + "\n" for one in entries))
        return path

    def rotate_before_reading(self, number, entries):
        """The next reader finds another file of that name, with these entries, and this one under the name of a closed one."""
        self.write(number, entries, ".journal.next")
        new, path = (self.path / f"remote-127.1.0.{number}.journal{end}" for end in (".next.journal", ""))
        for end in ("", ".json"):
            os.rename(f"{new}{end}", f"{path}.next{end}")

    def damage(self, path):
        """What its first entry was is lost, and its index as well."""
        Path(f"{path}.damage").touch()

    def asked(self):
        """Arguments of every journalctl."""
        return (
            [json.loads(line) for line in self.calls.read_text().splitlines()] if self.calls.exists() else []
        )
