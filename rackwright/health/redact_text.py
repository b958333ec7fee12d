"""Patterns of names in free text. Each has a group `value`; the kind selects the replacement.

The text is untrusted: each pattern runs in linear time, because it is anchored to where a name begins.
"""

from __future__ import annotations

import re

SYSTEM_FOLDERS = frozenset(
    ("bin", "boot", "dev", "etc", "lib", "lib64", "proc", "run", "sbin", "sys", "tmp", "usr", "var")
)
_HEX = "[0-9a-fA-F]"
_OCTET = r"(?:\.\d{1,3})"

PATTERNS: tuple[tuple[str, re.Pattern[str]], ...] = tuple(
    (kind, re.compile(pattern))
    for kind, pattern in (
        ("shape", rf"(?<!{_HEX})(?P<value>(?:GPU-|MIG-)?{_HEX}{{8}}-(?:{_HEX}{{4}}-){{3}}{_HEX}{{12}})"),
        ("shape", rf"(?<![:{_HEX[1:-1]}])(?P<value>{_HEX}{{4}}(?::{_HEX}{{4}}){{3,7}})(?![:{_HEX[1:-1]}])"),
        ("shape", rf"(?<![:{_HEX[1:-1]}])(?P<value>{_HEX}{{2}}(?::{_HEX}{{2}}){{5}})(?![:{_HEX[1:-1]}])"),
        ("shape", rf"\benx(?P<value>{_HEX}{{12}})\b"),
        ("address", rf"(?<![\w.])(?P<value>(?:10|127){_OCTET}{{3}})(?![\w.])"),
        (
            "address",
            rf"(?<![\w.])(?P<value>(?:169\.254|172\.(?:1[6-9]|2\d|3[01])|192\.168){_OCTET}{{2}})(?![\w.])",
        ),
        ("address", r"(?P<value>\d{1,3}(?:\.\d{1,3}){3})(?=[@:/]|\s+not\b)"),
        ("host", r"(?:nfs|cifs|ceph|Lustre\w*): server (?P<value>[A-Za-z][\w.-]*)"),
        ("host", r"(?<![\w.-])(?:(?![A-Za-z])[\w.-])*(?P<value>[A-Za-z][\w.-]*)@(?:tcp|o2ib)\d*\b"),
        ("host", r"(?<![\w-])(?<![\w-]\.)(?:(?!\b[A-Za-z])[\w.-])*(?P<value>[A-Za-z][\w-]*(?:\.[\w-]+)+):/"),
        ("process", r"\bname=(?P<value>[^,\s]+)"),
        ("process", r"\bcomm[:= ] ?\"?(?P<value>[^\s\",:]+)"),
        ("process", r"\bcommand[:=] ?\"?(?P<value>[^\s\",:]+)"),
        ("process", r"(?:^|\s)(?P<value>[^\s\[\]:]+)\[\d+\]:"),
        ("process", r"\bComm: (?P<value>\S+)"),
        ("process", r"\bKilled process \d+,? \((?P<value>[^)]{0,64})\)"),
        ("process", r"(?:^|\] )(?P<value>\S+) invoked oom-killer"),
        ("process", r"\btask[ =](?P<value>[^\s,:=]+)(?=[:,])"),
        ("process", r"stuck for \d{1,9}s! \[(?P<value>[^\]]{1,64}):\d+\]"),
        ("number", r"\b(?:uid|UID)[=:_ ](?P<value>\d+)"),
        ("number", r"\buser-(?P<value>\d+)\.slice"),
        ("number", r"\buser@(?P<value>\d+)\.service"),
        ("path", r"(?<![\w.<\]])(?P<value>/[A-Za-z][\w.@+-]*(?:/[\w.@+-]+)+)"),
        ("path", r"(?<![\w.<\]/])(?P<value>/(?:home|root)/[^\s,;\"']+)"),
    )
)
