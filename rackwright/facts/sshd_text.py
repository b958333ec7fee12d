"""Text of sshd's configuration files."""

from __future__ import annotations

import re
from collections.abc import Iterable

from rackwright.facts.lines import lines_of
from rackwright.facts.traces import SSHD_FOLDER

FOLDER_PATTERN = f"{SSHD_FOLDER}/*.conf"
"""What the distributions' main file includes."""

# strdelim() of OpenSSH's misc.c, read 2026-11-23: the keyword may be quoted, and one `=` may follow it.
_SETTING = re.compile(r'[ \t\r]*"?([A-Za-z0-9]+)"?[ \t\r]*=?[ \t\r]*(.*)', re.DOTALL)
_WITH_PORT = re.compile(r"(?:\[[^]]*\]|[^:\[\] ]+):(\d+)(?: |$)")


def setting(line: str) -> tuple[str, str]:
    """(keyword in lower case, value with single blanks); empty for a comment and an empty line."""
    found = _SETTING.match(line)
    return (found[1].lower(), " ".join(found[2].split())) if found is not None else ("", "")


def reads_folder(text: str) -> bool:
    """Whether sshd's main file with this text reads the folder of drop-ins for every connection."""
    for line in lines_of(text):
        keyword, value = setting(line)
        if keyword == "match":
            return False
        if keyword == "include" and FOLDER_PATTERN in value.split():
            return True
    return False


def ports(texts: Iterable[str]) -> set[int]:
    """Ports that sshd listens on with these files: Port and ListenAddress of sshd_config(5), read 2026-11-23."""
    named = [setting(line) for text in texts for line in lines_of(text)]
    own = {int(value) for keyword, value in named if keyword == "port" and value.isdecimal()}
    with_address = (_WITH_PORT.match(value) for keyword, value in named if keyword == "listenaddress")
    return (own or {22}) | {int(found[1]) for found in with_address if found is not None}
