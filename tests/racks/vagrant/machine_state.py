"""What a private libvirtd must leave as it is on the machine: what every rack must, and libvirt's own folders."""

from __future__ import annotations

import os

from tests.racks.host_state import State, host_state

_FOLDERS = ("/etc/libvirt", "/var/lib/libvirt", "/run/libvirt", "/var/log/libvirt", "/var/cache/libvirt")
_NO_RACK = "no-rack-of-the-lab"


def machine_state() -> State:
    """As host_state, with libvirt's daemons wherever they run and the files that it keeps."""
    return {
        **host_state(_NO_RACK, programs=("libvirtd", "virtlogd", "virtlockd", "dnsmasq")),
        "files of libvirt": _listing(),
    }


def _listing() -> list[str]:
    return sorted(
        f"{path} {os.lstat(path).st_size} {os.lstat(path).st_mtime_ns}"
        for root in _FOLDERS
        for folder, _, files in os.walk(root)
        for path in (os.path.join(folder, name) for name in files)
    )
