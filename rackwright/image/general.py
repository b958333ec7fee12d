"""A tree without anything that belongs to one machine, and a look that nothing secret is left in it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

from rackwright.errors import ImageError

# Identity and secrets that packages make while they are installed, then what only the build needed.
_REMOVED = (
    "etc/hostname",
    "etc/resolv.conf",
    "etc/.pwd.lock",
    "etc/ssh/ssh_host_*",
    "etc/munge/munge.key",
    "etc/nvme/hostid",
    "etc/nvme/hostnqn",
    "etc/iscsi/initiatorname.iscsi",
    "etc/ssl/private/ssl-cert-snakeoil.key",
    "etc/ssl/certs/ssl-cert-snakeoil.pem",
    "root/.bash_history",
    "usr/sbin/policy-rc.d",
    "var/backups/*",
    "var/cache/apt/*.bin",
    "var/cache/apt/archives/*",
    "var/cache/debconf/*-old",
    "var/cache/ldconfig/aux-cache",
    "var/lib/apt/lists/*",
    "var/lib/apt/rackwright-index-read",
    "var/lib/dbus/machine-id",
    "var/lib/dkms/mok.key",
    "var/lib/dpkg/*-old",
    "var/lib/systemd/credential.secret",
    "var/lib/systemd/random-seed",
    "var/tmp/*",
    "dev/*",
    "run/*",
    "tmp/*",
)
_LOGINS = ("btmp", "faillog", "lastlog", "wtmp")
"""Logs that are never made again where they are missing; they become empty."""

_SEARCHED = ("etc", "home", "opt", "root", "srv", "var")
_SIZE_MAX = 64 * 1024
_KEY = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----|AGE-SECRET-KEY-1")


_UP_TO_DATE = ("etc/.updated", "var/.updated")
"""systemd-update-done.service(8): not older than /usr where everything that is made of /usr is there."""


def make_general(tree: Path) -> None:
    """Remove identity, logs, caches and leftovers of the installation, and keep the first boot from making it again."""
    for pattern in _REMOVED:
        for path in tree.glob(pattern):
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
    (tree / "etc/machine-id").write_text("")
    for path in _files(tree / "var/log"):
        if path.name in _LOGINS:
            os.truncate(path, 0)
        else:
            path.unlink()
    # the packages' triggers have made the caches of libraries, hardware and messages, and the accounts
    usr = (tree / "usr").stat()
    for name in _UP_TO_DATE:
        (tree / name).touch()
        os.utime(tree / name, ns=(usr.st_mtime_ns, usr.st_mtime_ns))


def private_keys(tree: Path) -> list[str]:
    """Paths, as on a node, of files outside /usr that hold a private key."""
    found = []
    for folder in _SEARCHED:
        for path in _files(tree / folder):
            if path.stat().st_size <= _SIZE_MAX and _KEY.search(path.read_bytes()):
                found.append(f"/{path.relative_to(tree)}")
    return sorted(found)


def refuse_secrets(tree: Path) -> None:
    """ImageError naming every private key: all nodes made of the image would share it."""
    if keys := private_keys(tree):
        raise ImageError(
            f"the image would hold private keys that its packages made: {', '.join(keys)}",
            hint="each node has to make its own: please report the package",
        )


def _files(folder: Path) -> Iterator[Path]:
    """Regular files below a folder, links not followed."""
    for parent, _, names in os.walk(folder):
        for name in names:
            path = Path(parent, name)
            if path.is_file() and not path.is_symlink():
                yield path
