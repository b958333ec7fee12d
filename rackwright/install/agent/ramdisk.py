"""A diskless node: its root is in memory, and the machine continues as the node without a reboot."""

from __future__ import annotations

import os
import shutil

from rackwright.install.agent import network, tree
from rackwright.install.agent.disks import TARGET
from rackwright.install.agent.programs import log, read_text, run

SWITCH = "/run/rackwright/switch"
"""If this file exists, the initramfs's init continues with the target's init."""
EXCLUDED = ("./boot/*", "./usr/share/doc/*", "./usr/share/man/*")
_SHARE = "80%"
_MODULES = "/usr/lib/modules"


def mount() -> None:
    """Mount the in-memory file system that becomes the root."""
    os.makedirs(TARGET, exist_ok=True)
    run(["mount", "-t", "tmpfs", "-o", f"size={_SHARE},mode=755", "root", TARGET])


def complete() -> None:
    """Write an empty fstab, and add modules for the running kernel."""
    tree.put(TARGET, "/etc/fstab", "# the root is in memory\n")
    release = os.uname().release
    if not os.path.isdir(f"{TARGET}{_MODULES}/{release}"):
        log(f"the image has no modules for {release}: copying the agent's")
        shutil.copytree(f"{_MODULES}/{release}", f"{TARGET}{_MODULES}/{release}", symlinks=True)


def switch() -> None:
    """Make the initramfs's init continue with the node."""
    if (process := read_text(network.LEASE_PROCESS)) is not None and process.isdigit():
        run(["kill", process], check=False)
    with open(SWITCH, "w", encoding="utf-8") as file:
        file.write(TARGET)
