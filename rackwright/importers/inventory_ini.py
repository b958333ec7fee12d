"""Ansible's INI inventories: `[group]`, `[group:children]`, `[group:vars]`, and hosts with variables on their line.

A host's line is split as a shell does it, with quotes and comments; a line of `[group:vars]` has everything after
the first `=` as its value, quotes around the whole of it removed.
"""

from __future__ import annotations

import re
import shlex

from rackwright.documents.nearest import suggest
from rackwright.importers.inventory import Inventory, Variable, Variables
from rackwright.importers.records import quoted

_SECTION = re.compile(r"\[([^\[\]:\s]+)(?::([^\[\]\s]+))?\]\s*(?:[#;].*)?")
_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_PORT = re.compile(r"(.+):(\d{1,5})")
_KINDS = ("children", "vars")


def read_ini(text: str, file: str, into: Inventory) -> None:
    """Add the hosts, groups and variables of an INI inventory; mistakes are noted with their line."""
    group, kind = "ungrouped", "hosts"
    used: dict[str, str] = {}
    for number, raw in enumerate(text.split("\n"), 1):
        line, where = raw.strip(), f"{file}:{number}"
        if not line or line[0] in "#;":
            continue
        if line.startswith("["):
            match = _SECTION.fullmatch(line)
            kind = (match[2] or "hosts") if match is not None else "broken"
            if match is None:
                into.mistakes.append(f"{where}: {quoted(line)} is not a section, e.g. `[workers]`.")
            elif kind not in ("hosts", *_KINDS):
                hint = suggest(kind, _KINDS, what="kinds")
                into.mistakes.append(f"{where}: A section has no kind {quoted(kind)}; {hint}")
                kind = "broken"
            else:
                group = match[1]
                into.group(group)
        elif kind == "children":
            child = line.split("#")[0].split(";")[0].strip()
            into.group(group).children.setdefault(child, where)
            used.setdefault(child, where)
        elif kind == "vars":
            _variable(into, group, line, where)
        elif kind == "hosts":
            _host(into, group, line, where)
    for child, where in used.items():
        if child not in into.groups:
            into.mistakes.append(
                f"{where}: Unknown group {quoted(child)}; {suggest(child, into.groups, what='groups')}"
            )


def _variable(into: Inventory, group: str, line: str, where: str) -> None:
    key, sign, value = (part.strip() for part in line.partition("="))
    if not sign or not _KEY.fullmatch(key):
        into.mistakes.append(f"{where}: Expected `variable=value`.")  # the line may hold a password
        return
    into.group(group).variables[key] = Variable(_unquoted(value), where)


def _unquoted(text: str) -> str:
    whole = len(text) > 1 and text[0] == text[-1] and text[0] in "\"'" and text[0] not in text[1:-1]
    return text[1:-1] if whole else text


def _host(into: Inventory, group: str, line: str, where: str) -> None:
    try:
        pattern, *pairs = shlex.split(line, comments=True) or ("",)
    except ValueError:
        into.mistakes.append(f"{where}: A quote is not closed on its line.")
        return
    if not pattern:
        return
    variables: Variables = {}
    for number, pair in enumerate(pairs, 1):
        key, sign, value = pair.partition("=")
        if not sign or not _KEY.fullmatch(key):
            into.mistakes.append(
                f"{where}: {quoted(pattern)}: word {number} after the host is not `variable=value`."
            )
            return
        variables[key] = Variable(value, where)
    port = _PORT.fullmatch(pattern)
    if port is not None and "]" not in port[2] and pattern.count("[") == port[1].count("["):
        pattern = port[1]
        variables.setdefault("ansible_port", Variable(port[2], where))
    into.add_hosts(pattern, group, variables, where)
