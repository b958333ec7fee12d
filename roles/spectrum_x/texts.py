"""Files of the spectrum_x role, and the shell with which it reads: shared by the deploy and its checks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from shlex import quote

from rackwright.claims.check import Undetermined
from rackwright.render import render
from rackwright.roles.spectrum_x.options import Card, SpectrumXOptions
from rackwright.roles.spectrum_x.paths import PROGRAM, UNIT_PATH

_ROW = re.compile(r"^\s*([a-z0-9_]+)\s*\|\s*0x([0-9a-fA-F]+)\s*$", re.MULTILINE)


def register_of(options: SpectrumXOptions, card: Card) -> str:
    """Shell: a NIC's register."""
    return f"timeout 60 {options.tool} -d {quote(card.pci)} --reg_name ROCE_ACCL --get"


def parse_register(text: str) -> dict[str, int]:
    """`mlxreg --get`: a value for each field."""
    found = {name: int(value, 16) for name, value in _ROW.findall(text)}
    if not found:
        raise Undetermined("the register ROCE_ACCL cannot be read from what the tool prints")
    return found


def parse_parameters(text: str) -> dict[str, str]:
    """`mlxconfig q NAME...`: the value for the next boot of each parameter, e.g. `255` or `True(1)`."""
    return dict(re.findall(r"^\s*\*?\s*([A-Z][A-Z0-9_]+)\s+(\S+)\s*$", text, re.MULTILINE))


def files(options: SpectrumXOptions, cards: Sequence[Card]) -> dict[str, str]:
    """The program and the unit, by path."""
    return {
        PROGRAM: render("spectrum_x/program.sh.j2", cards=cards, tool=options.tool, fields=options.fields),
        UNIT_PATH: render("spectrum_x/spectrum-x.service.j2", program=PROGRAM),
    }
