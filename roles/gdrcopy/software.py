"""What GDRCopy's packages are called. Sources: packages/ of NVIDIA/gdrcopy, read 2026-11-21."""

from __future__ import annotations

from rackwright.model.types import Family
from rackwright.roles.gdrcopy.options import GdrcopyOptions


def packages(family: Family, options: GdrcopyOptions) -> tuple[str, ...]:
    """`name=version` of each. On EL the tests are in gdrcopy, and the module's release ends in `dkms`."""
    version = options.version
    if family is Family.EL:
        return f"gdrcopy-kmod={version}dkms", f"gdrcopy={version}"
    tests = (f"gdrcopy-tests={version}",) if options.tests else ()
    return f"gdrdrv-dkms={version}", f"libgdrapi={version}", *tests
