"""Parses a BMC's documents: vendors omit, rename and mistype members, so nothing here raises."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from rackwright.bmc.interface import Condition
from rackwright.boundary import printable

Document = dict[str, Any]
TEXT_MAX = 300
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")
_CONDITIONS = {
    "ok": Condition.OK,
    "informational": Condition.OK,
    "warning": Condition.WARNING,
    "degraded": Condition.WARNING,
    "critical": Condition.CRITICAL,
    "fatal": Condition.CRITICAL,
}
_NOT_THERE = {"absent"}
_NOT_USED = {"disabled", "standbyspare", "standbyoffline"}
_FAILED = {"unavailableoffline"}


def document(value: Any) -> Document:  # noqa: ANN401 - JSON data
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def sub(doc: Document, *names: str) -> Document:
    """An object within an object, e.g. `sub(system, "Boot")`."""
    for name in names:
        doc = document(doc.get(name))
    return doc


def listed(doc: Document, name: str) -> Iterator[Document]:
    """The objects in a list."""
    value = doc.get(name)
    for one in value if isinstance(value, list) else ():
        if isinstance(one, dict):
            yield one


def text(doc: Document, *names: str) -> str | None:
    """The first of these members that is non-empty text, made printable."""
    for name in names:
        value = doc.get(name)
        if isinstance(value, str) and value.strip():
            return printable(value.strip(), TEXT_MAX)
    return None


def number(doc: Document, *names: str) -> float | None:
    """The first of these members that is a number, or text that parses as one."""
    for name in names:
        value = doc.get(name)
        if isinstance(value, str) and len(value) < 32:
            try:
                value = float(value)
            except ValueError:
                continue
        if isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15:
            return float(value)  # NaN and infinity are not less than that
    return None


def link(doc: Document, name: str) -> str | None:
    """The path of another resource."""
    value = sub(doc, name).get("@odata.id")
    return value if isinstance(value, str) and value else None


def links(doc: Document, name: str) -> list[str]:
    """The paths in a list of resources."""
    found = [one.get("@odata.id") for one in listed(doc, name)]
    return [one for one in found if isinstance(one, str) and one]


def last_part(path: str) -> str:
    """The last component of a path: the resource's Id."""
    return path.rstrip("/").rpartition("/")[2]


def mac(value: Any) -> str | None:  # noqa: ANN401 - JSON data
    """A MAC in lower case with colons; None if it is invalid, or all zeros or ones."""
    if not isinstance(value, str) or len(value) > 32:
        return None
    digits = value.strip().lower().replace("-", ":")
    if re.fullmatch(r"[0-9a-f]{12}", digits):
        digits = ":".join(digits[place : place + 2] for place in range(0, 12, 2))
    good = _MAC.fullmatch(digits) and digits not in ("00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff")
    return digits if good else None


def condition(doc: Document) -> Condition:
    """The state of a part from its `Status`; a part that is not present is absent, even with a health."""
    status = sub(doc, "Status")
    state = (text(status, "State") or "").lower()
    if state in _NOT_THERE:
        return Condition.ABSENT
    health = severity(text(status, "Health", "HealthRollup"))
    if health is Condition.UNKNOWN and state in _NOT_USED:
        return Condition.ABSENT
    return Condition.CRITICAL if health is Condition.UNKNOWN and state in _FAILED else health


def severity(word: str | None) -> Condition:
    """A value of Redfish's Health or Severity."""
    return _CONDITIONS.get((word or "").lower(), Condition.UNKNOWN)
