"""Rules of sudoers files, split as sudo's lexer splits them, and what the distributions ship of them."""

from __future__ import annotations

import re
from collections.abc import Collection

from rackwright.facts.lines import lines_of
from rackwright.facts.traces import SUDOERS

# sudo's plugins/sudoers/toke.l, read 2026-11-23: a `#` before digits is a uid; a comment ends at the newline, also after
# a backslash; blanks may follow the backslash that continues a line; the path of an include may have a `#`.
_COMMENT = re.compile(r"#(?!-?\d).*")
_CONTINUES = re.compile(r"\\[ \t]*\r?$")
_INCLUDE = re.compile(r"[ \t]*@include|#include(dir)?[ \t]")

# What is active in /etc/sudoers of sudo on Debian 12 and 13, Ubuntu 22.04 and 24.04 (/snap/bin), EL 8 and 9
# (env_keep, visiblepw, the groups), read 2026-11-23.
_FLAG = (
    r"env_reset|mail_badpass|use_pty|always_set_home|match_group_by_gid|always_query_group_plugin|!visiblepw"
)
_BIN = r"(/usr(/local)?)?/s?bin|/snap/bin"
_VARIABLE = (
    r"COLORS|DISPLAY|HOSTNAME|HISTSIZE|INPUTRC|KDEDIR|LS_COLORS|MAIL|PS1|PS2|QTDIR|USERNAME|LANG|LC_[A-Z]+|LANGUAGE|"
    r"LINGUAS|_XKB_CHARSET|XAUTHORITY"
)
_STOCK = re.compile(
    r"(root|%sudo|%admin|%wheel) ALL ?= ?\(ALL( ?: ?ALL)?\) ALL"
    rf"|[@#]includedir {re.escape(SUDOERS)}\.d/?"
    rf"|Defaults ({_FLAG})"
    rf'|Defaults secure_path ?= ?(?P<quote>"?)({_BIN})(:({_BIN}))*(?P=quote)'
    rf'|Defaults env_keep ?\+?= ?"({_VARIABLE})( ({_VARIABLE}))*"'
)
_EVERYTHING = re.compile(r"\S+ ALL ?= ?(\((ALL|root)( ?: ?(ALL|root))?\) ?)?([A-Z_]+ ?: ?)*NOPASSWD ?: ?ALL")


def rules(text: str) -> list[tuple[str, str]]:
    """(lines of the file, their rule in one line with single blanks); the rule of a comment is empty."""
    found: list[tuple[str, str]] = []
    whole: list[str] = []
    parts: list[str] = []
    for line in lines_of(text):
        whole.append(line)
        code = line if _INCLUDE.match(whole[0]) else _COMMENT.sub("", line)
        parts.append(_CONTINUES.sub("", code))
        if parts[-1] == code:
            found.append(("\n".join(whole), _one_line(parts)))
            whole, parts = [], []
    return found if not whole else [*found, ("\n".join(whole), _one_line(parts))]


def _one_line(parts: list[str]) -> str:
    return re.sub(r"[ \t]+", " ", " ".join(part.removesuffix("\r") for part in parts)).strip(" ")


def is_stock(rule: str) -> bool:
    """Whether a distribution ships this rule."""
    return _STOCK.fullmatch(rule) is not None


def is_of(rule: str, user: str) -> bool:
    """Whether it is a rule of this user and of no other."""
    first, _, rest = rule.partition(" ")
    return first == user and not rest.startswith(",")


def makes_root(rule: str, names: Collection[str]) -> bool:
    """Whether a rule lets one of these users and `%groups` run everything as root without a password."""
    return rule.partition(" ")[0] in (*names, "ALL") and _EVERYTHING.fullmatch(rule) is not None
