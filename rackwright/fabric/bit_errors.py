"""Effective bit error rates of the nodes' ports, as their card firmware counts them.

mstlink (package mstflint) and mlxlink (NVIDIA's MFT) print the same; 15E-255 is a port without an error.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from rackwright.model.hcas import Hca

SECONDS = 20
_COMMAND = """\
tool=$(command -v mstlink || command -v mlxlink) || exit 0
for name in {names}; do
    (
        at=$(readlink -f "/sys/class/infiniband/$name/device")
        printed=$(timeout -k 2 {seconds} "$tool" -d "${{at##*/}}" -c 2>/dev/null)
        echo "ber $name $(echo "$printed" | sed -n 's/.*Effective Physical BER *: *//p')"
    ) &
done
wait
"""
_LINE = re.compile(r"ber ([A-Za-z0-9_]{1,63}) (\d{1,4}(?:\.\d{1,6})?(?:[Ee][+-]?\d{1,3})?)")
_ANSI = re.compile(r"\x1b\[[0-9;]*m")


def command(hcas: Iterable[Hca]) -> str:
    """Shell that prints a line `ber DEVICE RATE` for each card, all asked at once; without a rate where it gives none."""
    names = " ".join(hca.name for hca in hcas if hca.pci is not None)
    return _COMMAND.format(names=names, seconds=SECONDS) if names else ""


def parse(text: str) -> dict[str, float]:
    """The rates by device; one that is not a number from 0 to 1 is not read."""
    found = {}
    for line in text.splitlines():
        if len(line) < 256 and (match := _LINE.fullmatch(_ANSI.sub("", line).strip())):
            rate = float(match[2])
            if rate <= 1:
                found[match[1]] = rate
    return found
