"""GDRCopy's packages at their version."""

from __future__ import annotations

from rackwright.osfamily.known import OsFamily
from rackwright.osfamily.names import names
from rackwright.roles.gdrcopy.options import GdrcopyOptions


def packages(family: OsFamily, options: GdrcopyOptions) -> tuple[str, ...]:
    """`name=version` of each."""
    wanted = ("gdrcopy", "gdrcopy-tests") if options.tests else ("gdrcopy",)
    found = (package for software in wanted for package in names(family, software).packages)
    return tuple(package.format(version=options.version) for package in found)
