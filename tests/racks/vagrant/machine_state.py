"""What a private libvirtd must leave as it is on the machine, as text that can be compared."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

_FOLDERS = ("/etc/libvirt", "/var/lib/libvirt", "/run/libvirt", "/var/log/libvirt", "/var/cache/libvirt")
_COMMANDS = {
    "links": ("ip", "-o", "link"),
    "addresses": ("ip", "-o", "-4", "address"),
    "routes": ("ip", "route", "show", "table", "all"),
}
_FIREWALL = (("nft", "list", "ruleset"), ("iptables-save",))


def machine_state() -> dict[str, str]:
    """Links, addresses, routes, firewall rules, mounts, loop and md devices, and libvirt's folders.

    Mounts of lab racks, which may come and go meanwhile, are left out.
    """
    state = {name: _output(command) for name, command in _COMMANDS.items()}
    readable = [command for command in _FIREWALL if shutil.which(command[0]) is not None]
    assert readable, "UNKNOWN: neither nft nor iptables-save is installed, which print the firewall rules"
    state["firewall rules"] = "\n".join(_output(command) for command in readable)
    mounts = Path("/proc/self/mountinfo").read_text().splitlines()
    state["mounts"] = "\n".join(sorted(_without_ids(line for line in mounts if "/rackwright/" not in line)))
    for kind in ("loop", "md"):
        state[kind] = " ".join(sorted(_used_devices(kind)))
    state["files of libvirt"] = "\n".join(_listing())
    return state


def _output(command: tuple[str, ...]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, f"{' '.join(command)}: {done.stderr}"
    # without counters of packets, and comments with the time of day
    lines = (line for line in done.stdout.splitlines() if not line.startswith("#"))
    return "\n".join(line.split(" [")[0] for line in lines)


def _without_ids(lines: Iterable[str]) -> list[str]:
    return [" ".join(line.split(" ")[2:]) for line in lines if "/run/netns/rw-" not in line]


def _used_devices(kind: str) -> list[str]:
    found = []
    for size in Path("/sys/block").glob(f"{kind}[0-9]*/size"):
        if size.read_text().strip() != "0":
            found.append(size.parent.name)
    return found


def _listing() -> list[str]:
    return sorted(
        f"{path} {os.lstat(path).st_size} {os.lstat(path).st_mtime_ns}"
        for root in _FOLDERS
        for folder, _, files in os.walk(root)
        for path in (os.path.join(folder, name) for name in files)
    )
