"""One file system mounted in several nodes of a rack, as NFS would be: the machine's kernel may have no NFS.

Run as a program, since it leaves the mount namespace it was started in: RACK TARGET NODE...
"""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

from rackwright.lab.container import leader_pid

_OPEN_TREE, _MOVE_MOUNT, _NEW_MOUNT_NAMESPACE = 428, 429, 0x20000
_HERE, _CLONE, _FROM_EMPTY_PATH = -100, 1, 4
_libc = ctypes.CDLL(None, use_errno=True)


def _checked(result: int) -> int:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def share(rack: str, target: str, nodes: list[str]) -> None:
    """Mount one new tmpfs, called `shared`, at `target` of each node, and nowhere on this machine."""
    leaders = [leader_pid(rack, node) for node in nodes]
    _checked(_libc.unshare(_NEW_MOUNT_NAMESPACE))
    subprocess.run(["mount", "--make-rprivate", "/"], check=True, timeout=60)
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "shared", "/mnt"], check=True, timeout=60)
    for leader in leaders:
        tree = _checked(_libc.syscall(_OPEN_TREE, _HERE, b"/mnt", _CLONE | os.O_CLOEXEC))
        child = os.fork()
        if child == 0:
            try:
                _mount(tree, f"/proc/{leader}", target)
            except OSError as error:
                print(error, file=sys.stderr)
                os._exit(1)
            os._exit(0)
        if os.waitpid(child, 0)[1]:
            sys.exit(1)


def _mount(tree: int, process: str, target: str) -> None:
    """In the node's mount namespace."""
    namespace, root = os.open(f"{process}/ns/mnt", os.O_RDONLY), os.open(f"{process}/root", os.O_RDONLY)
    _checked(_libc.setns(namespace, _NEW_MOUNT_NAMESPACE))
    os.fchdir(root)
    os.chroot(".")
    os.makedirs(target, exist_ok=True)
    _checked(_libc.syscall(_MOVE_MOUNT, tree, b"", _HERE, target.encode(), _FROM_EMPTY_PATH))


if __name__ == "__main__":
    share(sys.argv[1], sys.argv[2], sys.argv[3:])
