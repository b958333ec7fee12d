"""What roles claim of the running kernel."""

from __future__ import annotations

from rackwright.claims.check import CheckContext, Undetermined
from rackwright.model.options import RoleOptions


def loaded_modules(context: CheckContext[RoleOptions]) -> frozenset[str]:
    """Names of the loaded kernel modules, as /proc/modules spells them."""
    lines = context.output("cat /proc/modules").splitlines()
    if not any(lines):
        raise Undetermined("/proc/modules is empty")
    return frozenset(line.split()[0] for line in lines if line.strip())
