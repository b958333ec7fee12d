"""Values of the running kernel."""

from __future__ import annotations

from shlex import quote

from pyinfra.api.facts import FactBase

from rackwright.facts.question import Question


def proc_path(key: str) -> str:
    """Path of a sysctl key: net.ipv4.ip_forward -> /proc/sys/net/ipv4/ip_forward."""
    if "/" in key:  # an interface name with dots in it: net/ipv4/conf/eth0.100/rp_filter
        return f"/proc/sys/{key}"
    return f"/proc/sys/{key.replace('.', '/')}"


def high_enough(there: str | None, least: str) -> bool:
    """Whether a value, as the kernel prints it, is a number and not below another."""
    return there is not None and there.isdecimal() and int(there) >= int(least)


class Sysctls(FactBase[dict[str, str]]):
    """The live value of each key, blanks collapsed; a key this kernel does not have is left out."""

    def command(self, keys: tuple[str, ...]) -> Question:
        reads = (
            f"[ ! -r {quote(proc_path(key))} ] || "
            f"printf '%s=%s\\n' {quote(key)} \"$(cat {quote(proc_path(key))})\""
            for key in keys
        )
        return Question("\n".join([*reads, ":"]), "sysctls", keys=list(keys))

    @staticmethod
    def default() -> dict[str, str]:
        return {}

    def process(self, output: list[str]) -> dict[str, str]:
        pairs = (line.partition("=") for line in output if "=" in line)
        return {key: " ".join(value.split()) for key, _, value in pairs}
