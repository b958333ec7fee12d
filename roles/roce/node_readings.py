"""What tools print of a NIC's quality of service, as text by key. Part of the program on the node: see node.py."""

from __future__ import annotations

import json
import re

NOT_SET = "not set"
CELL_MAX = 1024
"""Bytes; more than a cell of any NIC."""


class UnreadableError(Exception):
    """Carries why."""


def priorities(text: str) -> str:
    """`dcb pfc show`: those that are on, with commas."""
    line = re.search(r"^prio-pfc((?: [0-7]:(?:on|off))+)\s*$", text, re.MULTILINE)
    if line is None:
        raise UnreadableError(f"dcb printed no priorities: {text[:80]!r}")
    return ",".join(re.findall(r"([0-7]):on", line.group(1)))


def dcb_dscp(text: str) -> dict[str, str]:
    """`dcb -N app show dev X dscp-prio`: priority by DSCP; empty: none is mapped, and the NIC trusts the VLAN tag."""
    if not text.strip():
        return {}
    found = dict(re.findall(r"\b([0-9]+):([0-7])\b", text))
    if "dscp-prio" not in text or not found:
        raise UnreadableError(f"dcb printed no map of DSCPs: {text[:80]!r}")
    return found


def dcb_mode(text: str) -> str:
    """`dcb dcbx show dev X`: `host` where the operating system decides, else `firmware`."""
    if not text.strip():
        return "firmware"
    return "host" if "host" in text.split() else "firmware"


def mlnx_qos(text: str) -> dict[str, str]:
    """What `mlnx_qos -i X` prints, by key."""
    found: dict[str, str] = {}
    if mode := re.search(r"^DCBX mode:\s*(OS|Firmware) controlled", text, re.MULTILINE):
        found["dcbx"] = "host" if mode.group(1) == "OS" else "firmware"
    if trust := re.search(r"^Priority trust state:\s*(\w+)", text, re.MULTILINE):
        found["trust"] = trust.group(1)
    if pfc := re.search(r"^PFC configuration:\n.*\n\s*enabled((?:\s+[01]){8})\s*$", text, re.MULTILINE):
        states = pfc.group(1).split()
        found["pfc"] = ",".join(str(priority) for priority, on in enumerate(states) if on == "1")
    if buffers := re.search(r"^\s*buffer((?:\s+[0-7]){8})\s*$", text, re.MULTILINE):
        found["prio_buffer"] = ",".join(buffers.group(1).split())
    if sizes := re.search(r"^Receive buffer size \(bytes\):\s*((?:[0-9]+,){8})", text, re.MULTILINE):
        found["buffer_size"] = sizes.group(1).rstrip(",")
    for priority, dscps in re.findall(r"^\s*prio:([0-7])\s+dscp:([0-9,]+)", text, re.MULTILINE):
        found.update({f"dscp.{int(dscp)}": priority for dscp in dscps.split(",") if dscp})
    return found


def dcb_buffers(text: str) -> dict[str, str]:
    """`dcb -j buffer show dev X`, by key; without -j sizes are rounded to Kb and Mb."""
    try:
        document = json.loads(text)
        found = {key: document[key] for key in ("prio_buffer", "buffer_size")}
        return {key: ",".join(str(int(number)) for number in found[key]) for key in found}
    except (ValueError, KeyError, TypeError) as error:
        raise UnreadableError(f"dcb printed no buffers: {text[:80]!r}") from error


def as_wanted(sizes: str, wanted: str) -> str:
    """`wanted` where these sizes are that, rounded down to cells: the driver does so (mlx5, en/port_buffer.c)."""
    pairs = zip(sizes.split(","), wanted.split(","))  # noqa: B905 - Python 3.9
    near = [0 <= int(want) - int(size) < CELL_MAX for size, want in pairs]
    return wanted if sizes.count(",") == wanted.count(",") and all(near) else sizes


def last_number(text: str) -> str:
    """NVIDIA's driver prints `Global tclass=104`, or nothing where none is set."""
    found = re.search(r"([0-9]+)\s*$", text)
    return found.group(1) if found else NOT_SET
