"""Reads what tools report about the driver."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rackwright.claims.check import Undetermined

_DKMS = re.compile(
    r"^(?P<module>[^/,]+)/(?P<version>[^,]+), (?P<kernel>[^,]+), [^:]+: (?P<state>\w+)(?P<rest>.*)"
)
_LOADED = re.compile(r"\b(\d{3}\.\d+(?:\.\d+)?)\b")


@dataclass(frozen=True)
class Built:
    """One line of `dkms status`."""

    module: str
    version: str
    kernel: str
    state: str
    warning: str


def parse_dkms(text: str) -> list[Built]:
    """`nvidia-current-open/535.261.03, 6.1.0-50-amd64, x86_64: installed`; a module nowhere built has no kernel."""
    found = []
    for line in text.splitlines():
        match = _DKMS.match(line.strip())
        if match is not None:
            found.append(Built(match[1], match[2], match[3], match[4], match["rest"].strip()))
        elif line.strip() and not re.fullmatch(r"[^/,]+/[^,:]+: added", line.strip()):
            raise Undetermined(f"unreadable answer of dkms: {line.strip()[:80]!r}")
    return found


def parse_loaded(text: str) -> tuple[str, bool]:
    """Version in /proc/driver/nvidia/version, and whether its modules are the open ones."""
    line = text.splitlines()[0] if text else ""
    found = _LOADED.search(line)
    if not line.startswith("NVRM version:") or found is None:
        raise Undetermined(f"/proc/driver/nvidia/version is unreadable: {line[:80]!r}")
    return found[1], "Open Kernel Module" in line


def parse_parameters(text: str) -> dict[str, str]:
    """/proc/driver/nvidia/params: `RestrictProfilingToAdminUsers: 0` by name."""
    found = dict(line.split(": ", 1) for line in text.splitlines() if ": " in line)
    if not found:
        raise Undetermined("/proc/driver/nvidia/params lists no parameter")
    return found


def parse_secure_boot(status: int, out: str, err: str) -> bool:
    """`mokutil --sb-state`; a machine without EFI variables boots without Secure Boot."""
    if status in (126, 127):
        raise Undetermined("cannot run `mokutil`: not found")
    output = f"{out}\n{err}"
    if "SecureBoot enabled" in output:
        return True
    if "SecureBoot disabled" in output or "EFI variables are not supported" in output:
        return False
    raise Undetermined(f"mokutil does not report whether Secure Boot is on: {output.strip()[:80]!r}")
