"""Sources of UCX and Open MPI as Debian's archive has them, checked against its source index of 2026-11-23.

UCX's is a copy of its repository without the folder `debian`, whose files its configure.ac names: they are put back,
empty. So both ways are built: a release with configure, and a copy in which autogen has to make it.
"""

from __future__ import annotations

import hashlib
import io
import tarfile
import urllib.request
from pathlib import Path

_POOL = "http://deb.debian.org/debian/pool/main"
OPENMPI, UCX = "5.0.7", "1.13.1"
_FROM_DEBIAN = {
    f"o/openmpi/openmpi_{OPENMPI}.orig.tar.xz": "97f10c04e9b9a1771db3fd005009e4c07afa3ce739f940e41eb0fc7397cb9473",
    f"u/ucx/ucx_{UCX}.orig.tar.xz": "1a88e09ca1b406c046a469c2ae271d2c330050b5664c0bcd9890e26c6ef09f3c",
}
_PACKAGING = ("compat", "copyright", "ucx.prerm", "rules.in", "control.in", "changelog.in")


def fetch(folder: Path) -> dict[str, tuple[str, str]]:
    """Both below the folder: file and SHA-256 by part."""
    openmpi, ucx = (_download(place, sha256, folder) for place, sha256 in _FROM_DEBIAN.items())
    with_packaging = folder / f"ucx-{UCX}.tar.gz"
    with tarfile.open(ucx) as before, tarfile.open(with_packaging, "w:gz") as after:
        for member in before:
            after.addfile(member, before.extractfile(member) if member.isreg() else None)
        for name in _PACKAGING:
            after.addfile(tarfile.TarInfo(f"ucx-{UCX}/debian/{name}"), io.BytesIO())
    return {
        "openmpi": (openmpi.name, _sha256(openmpi)),
        "ucx": (with_packaging.name, _sha256(with_packaging)),
    }


def _download(place: str, sha256: str, folder: Path) -> Path:
    path = folder / place.rpartition("/")[2]
    with urllib.request.urlopen(f"{_POOL}/{place}", timeout=300) as answer:
        path.write_bytes(answer.read())
    assert _sha256(path) == sha256, f"{place} is not the file of Debian's source index"
    return path


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
