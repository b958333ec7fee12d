"""Claims about the running kernel."""

from __future__ import annotations

from rackwright.claims.check import CheckContext, Undetermined
from rackwright.model.options import RoleOptions


def loaded_modules(context: CheckContext[RoleOptions]) -> frozenset[str]:
    """Names of the loaded kernel modules, as /proc/modules spells them."""
    lines = context.output("cat /proc/modules").splitlines()
    if not any(lines):
        raise Undetermined("/proc/modules is empty")
    return frozenset(line.split()[0] for line in lines if line.strip())


def parse_sysctl_config(output: str) -> dict[str, str]:
    """`systemd-analyze cat-config sysctl.d`: the value that wins for each key, the last one."""
    found: dict[str, str] = {}
    for line in output.splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.lstrip().startswith(("#", ";")):
            found[key.strip().lstrip("-").replace("/", ".")] = " ".join(value.split())
    return found


def sysctls_at_boot(context: CheckContext[RoleOptions]) -> dict[str, str]:
    """The kernel values that the files below sysctl.d give the node at its next boot."""
    found = parse_sysctl_config(context.output("systemd-analyze cat-config sysctl.d"))
    if not found:
        raise Undetermined("`systemd-analyze cat-config sysctl.d` printed no values")
    return found
