"""Project quotas of XFS: a folder's files count as one project, which has a limit. Python 3.9, standard library.

The number goes onto a folder by its descriptor (ioctl_xfs_fsgetxattr(2)); what is made in it inherits that. Limits are set and
read with xfs_quota, which exits 0 on some failures (seen with xfsprogs 6.1), so that each limit is read back.

A limit stops accidents, not attacks: the owner of a file may give it another project (ioctl_xfs_fssetxattr(2); seen on Linux 6.18).
"""

from __future__ import annotations

import fcntl
import re
import struct
import subprocess

_GET = 0x801C581F
"""FS_IOC_FSGETXATTR, _IOR('X', 31, struct fsxattr), and _IOW('X', 32, ...) (Linux, include/uapi/linux/fs.h)."""
_SET = 0x401C5820
_FSXATTR = struct.Struct("=5I8x")
"""xflags, extsize, nextents, projid, cowextsize."""
_INHERITS = 0x200
"""FS_XFLAG_PROJINHERIT."""
_SECONDS = 20
_LINE = re.compile(r"#(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s")
"""Project, and KiB used, of the soft and of the hard limit (xfs_quota(8), report -b)."""


class NoQuota(Exception):  # noqa: N818 - carried to the log as a sentence
    """The quota could not be set or read."""


def project_of(folder: int) -> int:
    """The project whose quota a folder counts to."""
    found = fcntl.ioctl(folder, _GET, bytes(_FSXATTR.size))
    return int(_FSXATTR.unpack(found)[3])


def set_project(folder: int, project: int) -> None:
    """Let an empty folder, and all that is made in it, count to a project."""
    try:
        flags, extent, count, _, cow = _FSXATTR.unpack(fcntl.ioctl(folder, _GET, bytes(_FSXATTR.size)))
        fcntl.ioctl(folder, _SET, _FSXATTR.pack(flags | _INHERITS, extent, count, project, cow))
    except OSError as error:
        raise NoQuota(f"cannot assign a project to the folder: {error.strerror}") from None


def set_limit(mount: str, project: int, gib: int) -> None:
    """Limit what a project may hold; 0: no limit."""
    _ask(mount, f"limit -p bhard={gib}g {project}")
    _, limit = usage(mount).get(project, (0, 0))
    if limit != gib << 20:
        raise NoQuota(
            f"xfs_quota could not set a limit of {gib} GiB on {mount}: are project quotas on (prjquota)?"
        )


def usage(mount: str) -> dict[int, tuple[int, int]]:
    """KiB used and hard limit, by project."""
    found = (_LINE.match(line) for line in _ask(mount, "report -p -N -n -b").splitlines())
    return {int(one[1]): (int(one[2]), int(one[4])) for one in found if one is not None}


def is_enforced(mount: str) -> bool:
    """Whether project quotas are counted and kept."""
    answer = _ask(mount, "state -p")
    return "Accounting: ON" in answer and "Enforcement: ON" in answer


def _ask(mount: str, command: str) -> str:
    try:
        done = subprocess.run(
            ["xfs_quota", "-x", "-c", command, mount],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoQuota(f"xfs_quota: {error}") from None
    if done.returncode != 0 or done.stderr.strip():
        last = done.stderr.strip().splitlines()[-1:] or ["no message"]
        raise NoQuota(f"xfs_quota exited {done.returncode} with the output: {last[0][:200]}")
    return done.stdout
