"""What a private libvirtd must leave as it is on the machine: what every rack must, and libvirt's own folders."""

from __future__ import annotations

import os
from collections.abc import Collection

from tests.racks.host_state import State, host_state

_FOLDERS = ("/etc/libvirt", "/var/lib/libvirt", "/run/libvirt", "/var/log/libvirt", "/var/cache/libvirt")
_NO_RACK = "no-rack-of-the-lab"


def machine_state(but: Collection[str] = ()) -> State:
    """As host_state, with the files that libvirt keeps and its daemons wherever they run, but for these process IDs."""
    state = host_state(_NO_RACK, programs=("libvirtd", "virtlogd", "virtlockd", "dnsmasq"))
    state["processes"] = [one for one in state["processes"] if one.split()[0] not in but]
    return {**state, "files of libvirt": _listing()}


def _listing() -> list[str]:
    return sorted(
        f"{path} {os.lstat(path).st_size} {os.lstat(path).st_mtime_ns}"
        for root in _FOLDERS
        for folder, _, files in os.walk(root)
        for path in (os.path.join(folder, name) for name in files)
    )
