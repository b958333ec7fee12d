"""Firmware of the board, compared where a version is declared."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.health.document import Document
from rackwright.health.expected import Expected
from rackwright.health.registry import check
from rackwright.health.verdict import Action, Finding, fail, good


def bios_declared(expected: Expected) -> bool:
    return expected.bios is not None


@check(
    "os", "The BIOS is the declared version", reads=("firmware",), applies=bios_declared, needs=("hardware",),
    action=Action.NONE, remedy="Update the BIOS through the BMC.", source="the site's options; imbue: exact firmware compare",
)  # fmt: skip
def firmware_bios(expected: Expected, document: Document) -> Iterator[Finding]:
    found = document.firmware.bios
    if found != expected.bios:
        yield fail(f"BIOS {found}, declared {expected.bios}")
    yield good(found)
