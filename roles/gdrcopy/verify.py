"""Checks of the gdrcopy role."""

from __future__ import annotations

from rackwright.claims.check import Check, CheckContext, Undetermined, fail
from rackwright.claims.kernel import loaded_modules
from rackwright.claims.packages import held_at
from rackwright.lock.versions import upstream
from rackwright.model.platforms import Capability
from rackwright.roles.gdrcopy import software
from rackwright.roles.gdrcopy.options import GdrcopyOptions

_MODULES = frozenset({Capability.KERNEL_MODULES})


def _installed(context: CheckContext[GdrcopyOptions]) -> str:
    return held_at(context, software.packages(context.node.family, context.options))


def _loaded(context: CheckContext[GdrcopyOptions]) -> str:
    if "gdrdrv" not in loaded_modules(context):
        fail("gdrdrv is not loaded")
    found, wanted = context.output("modinfo -F version gdrdrv").strip(), upstream(context.options.version)
    if found != wanted:
        fail(f"gdrdrv has version {found or 'unknown'}, not {wanted}")
    return f"gdrdrv {found}"


def _device(context: CheckContext[GdrcopyOptions]) -> str:
    result = context.host.run("stat -c %s %s", "%F %a", "/dev/gdrdrv")
    found = result.stdout.strip()
    if result.rc != 0:
        if "No such file" not in result.stderr:
            raise Undetermined(f"cannot stat /dev/gdrdrv: {result.stderr.strip() or 'no output'}")
        fail("/dev/gdrdrv is missing")
    if found != "character special file 666":
        fail(f"/dev/gdrdrv is a {found}, not a character special file 666: jobs cannot open it")
    return "/dev/gdrdrv is open to every user"


CHECKS = (
    Check("GDRCopy is installed as declared and held", _installed),
    Check("gdrdrv is loaded at the declared version", _loaded, needs=_MODULES),
    Check("every user can open /dev/gdrdrv", _device, needs=_MODULES),
)
