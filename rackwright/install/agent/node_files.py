"""Turns an image into this node: writes the head's files, and generates a host key."""

from __future__ import annotations

import os

from rackwright.install.agent import tree
from rackwright.install.agent.disks import TARGET
from rackwright.install.agent.inside import run_inside
from rackwright.install.agent.order import Order
from rackwright.install.agent.programs import AgentError, read_text
from rackwright.lab.boot_tree import SEED_ID

HOST_KEY = "/etc/ssh/ssh_host_ed25519_key"
_SEED_SCRIPT = "/etc/initramfs-tools/scripts/init-bottom/rackwright-seed"


def write(order: Order) -> dict[str, str]:
    """Write the folders and files, generate the host key, and return its public part by type."""
    for folder in order.folders:
        tree.make_folder(TARGET, folder)
    for file in order.files:
        tree.write(TARGET, file)
    if os.path.exists(TARGET + _SEED_SCRIPT):
        # a machine with an identity must not take another from a disk that is attached later
        tree.put(TARGET, f"/{SEED_ID}", f"install-{order.run}\n")
    return {"ed25519": host_key(order)}


def host_key(order: Order) -> str:
    """The public key of the node's sshd; the private key never leaves the node."""
    if not any(file.path == HOST_KEY for file in order.files):
        tree.require_programs(TARGET, [("ssh-keygen", "openssh-client")])
        for path in (HOST_KEY, f"{HOST_KEY}.pub"):
            if os.path.lexists(TARGET + path):
                os.unlink(TARGET + path)
        # the empty passphrase is not a secret
        run_inside(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", order.node, "-f", HOST_KEY])
    public = read_text(f"{TARGET}{HOST_KEY}.pub")
    if not public or not public.startswith("ssh-ed25519 "):
        raise AgentError(f"ssh-keygen did not create {HOST_KEY}.pub")
    return " ".join(public.split()[:2])
