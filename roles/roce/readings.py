"""What the node prints about RoCE, as values. Pure; Undetermined where it cannot be read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Any

from rackwright.claims.check import Undetermined

_HEADERS = 40 + 8 + 12 + 4 + 28 + 4
"""Bytes of a frame that are not RDMA payload: GRH, UDP, BTH, XRC, atomic header, ICRC.

Source: Linux, include/rdma/ib_addr.h, iboe_get_mtu, read 2026-11-25: the RDMA MTU is the largest step below what is left.
"""
_STEPS = (4096, 2048, 1024, 512, 256)
GIDS = (
    'for f in /sys/class/infiniband/"$1"/ports/"$2"/gids/*; do '
    'n=${f##*/}; t=$(cat /sys/class/infiniband/"$1"/ports/"$2"/gid_attrs/types/"$n" 2>/dev/null) || continue; '
    'echo "$n $(cat "$f") $t"; done'
)
"""Shell with a device and a port: index, GID and type of each entry that is in use (the type of others is unreadable)."""


@dataclass(frozen=True)
class Gid:
    """An entry of a port's table of GIDs."""

    index: int
    kind: str
    """e.g. `RoCE v2`."""
    address: IPv4Address | None
    """None: not made of an IPv4 address."""


def rdma_mtu(ethernet: int) -> int:
    """Bytes of RDMA payload that fit in a frame: 9000 gives 4096, 1500 gives 1024."""
    return next((step for step in _STEPS if step <= ethernet - _HEADERS), 0)


def parse_gids(text: str) -> tuple[Gid, ...]:
    """What GIDS prints."""
    found = []
    for line in text.splitlines():
        entry = re.fullmatch(r"(\d+) ([0-9a-f:]{39}) (\S.*)", line.strip())
        if entry is None:
            raise Undetermined(f"a GID cannot be read: {line[:80]!r}")
        found.append(Gid(int(entry[1]), entry[3], IPv6Address(entry[2]).ipv4_mapped))
    if not found:
        raise Undetermined("the device has no GID in use, or lacks the port")
    return tuple(found)


def parse_active_mtu(text: str) -> int:
    """`ibv_devinfo -d DEVICE -i PORT`: bytes."""
    found = re.findall(r"^\s*active_mtu:\s+(\d+) \(\d\)", text, re.MULTILINE)
    if len(found) != 1:
        raise Undetermined(f"ibv_devinfo prints {len(found)} values of active_mtu, not one")
    return int(found[0])


def parse_read(document: Any) -> dict[str, tuple[dict[str, str], dict[str, str]]]:  # noqa: ANN401
    """What the program on the node prints with `read`: values and unreadable keys, by device."""
    try:
        return {
            str(name): (
                {str(key): str(value) for key, value in entry["values"].items()},
                {str(key): str(why) for key, why in entry["unreadable"].items()},
            )
            for name, entry in document.items()
        }
    except (AttributeError, KeyError, TypeError) as error:
        raise Undetermined(f"the program on the node printed something else: {error!r}") from error


def compare(
    devices: Iterable[str],
    read: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]],
    wanted: Mapping[str, str],
) -> tuple[list[str], list[str]]:
    """What is wrong, and what could not be read: of each device, for each key of `wanted`."""
    wrong, unknown = [], []
    for name in devices:
        values, unreadable = read.get(name, ({}, {}))
        for key, value in wanted.items():
            if key in values:
                if values[key] != value:
                    wrong.append(f"{name}: {key} is {values[key] or 'none'}, not {value or 'none'}")
            else:
                unknown.append(f"{name}: {key}: {unreadable.get(key, 'the program does not print it')}")
    return wrong, unknown


def parse_mask(text: str, port: int) -> int:
    """`mstconfig -d PCI q ROCE_CC_PRIO_MASK_Pn`: a bit for each priority with congestion control."""
    found = re.search(rf"^\s*ROCE_CC_PRIO_MASK_P{port}\s+(\d+)", text, re.MULTILINE)
    if found is None:
        raise Undetermined(f"mstconfig prints no ROCE_CC_PRIO_MASK_P{port}")
    return int(found[1])
