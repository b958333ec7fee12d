"""Journal entries as `journalctl -o json` prints them, files with a header, and a journalctl that reads their text."""

from __future__ import annotations

import gzip
import json
import os
import struct
from pathlib import Path

from rackwright.logs import audit_files

T0 = 1_795_741_200.0
"""2026-11-27 01:00:00 UTC"""

JOURNALCTL = """\
#!/usr/bin/python3
import itertools, json, os, re, sys
number = lambda cursor: int(re.match("s=[0-9a-f]{32};i=([0-9a-f]+);", cursor)[1], 16)
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
if "field" in options:
    print("\\n".join(sorted({one[options["field"]] for one in entries})))
    sys.exit()
entries.sort(key=lambda one: number(one["__CURSOR"]))
groups = [[]]
for word in matches:
    if word == "+":
        groups.append([])
    else:
        groups[-1].append(word.partition("=")[::2])
if matches:
    entries = [one for one in entries if any(all(one.get(k) == v for k, v in group) for group in groups)]
if "cursor" in options:
    entries = [one for one in entries if number(one["__CURSOR"]) >= number(options["cursor"])]
if "after-cursor" in options:  # as 252 does it, whatever the first is
    entries = [one for one in entries if number(one["__CURSOR"]) >= number(options["after-cursor"])][1:]
time_of = lambda one: int(one["__REALTIME_TIMESTAMP"]) / 1e6
if "reverse" in options:  # from the last before --until on to the first before --since, whatever is behind that
    entries.reverse()
    since, until = (float(options.get(name, default)[1:]) for name, default in (("since", "@0"), ("until", "@1e99")))
    entries = itertools.dropwhile(lambda one: time_of(one) > until, entries)
    entries = itertools.takewhile(lambda one: time_of(one) >= since, entries)
for one in entries:
    print(json.dumps(one))
sys.exit(int(os.environ.get("JOURNALCTL_RC", "0")))
"""


LOGIN = {"SYSLOG_FACILITY": "4", "SYSLOG_IDENTIFIER": "sshd"}
"""What the audit trail is about."""
SERIES = "5" * 32
"""seqnum_id of all files."""


def entry(at, message, wrong=0.0, **fields):
    """One entry, `at` seconds after T0, which also orders it; `wrong`: seconds by which its clock is ahead."""
    up, stamp = int((10_000_000 + at) * 1e6), int((T0 + at + wrong) * 1e6)
    found = {
        "__REALTIME_TIMESTAMP": str(stamp),
        "__MONOTONIC_TIMESTAMP": str(up),
        "__CURSOR": f"s={SERIES};i={up:x};t={stamp:x}",
        "_BOOT_ID": "b" * 32,
        "MESSAGE": message,
    }
    defaults = {"PRIORITY": "6", "SYSLOG_FACILITY": "3", "_UID": "0", "_PID": "7", "_TRANSPORT": "journal"}
    return {**found, **defaults, **fields}


def kernel(at, message, **fields):
    """One that the kernel wrote."""
    defaults = {"_TRANSPORT": "kernel", "SYSLOG_FACILITY": "0", "SYSLOG_IDENTIFIER": "kernel"}
    found = entry(at, message, **{**defaults, **fields})
    return {key: value for key, value in found.items() if key not in ("_UID", "_PID")}


def header(entries):
    """A journal file's header, as systemd.io/JOURNAL_FILE_FORMAT has it, in front of nothing."""
    head = bytearray(272)
    head[:8] = b"LPKSHHRH"
    head[72:88] = bytes.fromhex(SERIES)
    if entries:
        first, last = (int(entries[place]["__REALTIME_TIMESTAMP"]) for place in (0, -1))
        number = int(entries[-1]["__MONOTONIC_TIMESTAMP"])
        struct.pack_into("<QQQQQ", head, 160, number, 0, 0, first, last)
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
        path.write_bytes(header(entries) + b"x" * size)
        Path(f"{path}.json").write_text("".join(json.dumps(one) + "\n" for one in entries))
        if entries:  # they arrived as they were written, by the server's clock
            arrived = T0 + int(entries[-1]["__MONOTONIC_TIMESTAMP"]) / 1e6 - 10_000_000
            os.utime(path, (arrived, arrived))
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

    def audited(self):
        """Entries of the whole audit trail, oldest day first."""
        found = []
        for _, path in audit_files.days(str(self.audit)):
            opened = gzip.open if path.endswith(".gz") else open
            with opened(path, "rt") as file:
                found += map(json.loads, file)
        return found
