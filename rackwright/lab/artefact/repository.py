"""A flat apt repository of packages, signed with a key that exists only while it is made."""

from __future__ import annotations

import gzip
import hashlib
import tempfile
from collections.abc import Sequence
from email.utils import formatdate
from pathlib import Path

from rackwright.lab.artefact.tree import Builder

KEY = "key.asc"
"""The public key, as apt's signed-by takes it."""
_NAME = "rackwright lab"
_SECONDS = 60

# $1: the keys' folder, $2: the repository. gpg starts an agent, which would stay.
_SIGN = f"""\
export GNUPGHOME=$1; cd "$2"
trap 'gpgconf --kill gpg-agent' EXIT
gpg='gpg --batch --quiet --no-tty'
$gpg --pinentry-mode loopback --passphrase '' --quick-generate-key '{_NAME} (packages of this rack)' ed25519 sign never
$gpg --armor --export >{KEY}
$gpg --digest-algo SHA512 --clearsign --output InRelease Release
$gpg --digest-algo SHA512 --armor --detach-sign --output Release.gpg Release
"""


def write_indices(builder: Builder, folder: Path, packages: Sequence[Path]) -> None:
    """Make the repository's indices and sign them; `packages` lie below `folder`."""
    index = "\n".join(entry(builder, folder, package) for package in packages).encode()
    (folder / "Packages").write_bytes(index)
    (folder / "Packages.gz").write_bytes(gzip.compress(index, mtime=0))
    (folder / "Release").write_text(
        release({name: (folder / name).read_bytes() for name in ("Packages", "Packages.gz")})
    )
    # an agent's socket has room for a short path only
    with tempfile.TemporaryDirectory(prefix="rackwright-") as keys:
        argv = ["sh", "-ec", _SIGN, "sign", keys, str(folder)]
        builder.run(argv, _SECONDS, shown="signing the repository")


def entry(builder: Builder, folder: Path, package: Path) -> str:
    """What `Packages` has of one package: its control file, and the file itself."""
    control = builder.run(["dpkg-deb", "--field", str(package)], _SECONDS).rstrip()
    content = package.read_bytes()
    return (
        f"{control}\nFilename: {package.relative_to(folder)}\nSize: {len(content)}\n"
        f"SHA256: {hashlib.sha256(content).hexdigest()}\n"
    )


def release(indices: dict[str, bytes]) -> str:
    """The Release file over these indices."""
    lines = [
        f"Origin: {_NAME}",
        f"Label: {_NAME}",
        "Architectures: amd64",
        f"Date: {formatdate(usegmt=True).replace('GMT', 'UTC')}",
        "SHA256:",
        *(f" {hashlib.sha256(data).hexdigest()} {len(data)} {name}" for name, data in indices.items()),
        "",
    ]
    return "\n".join(lines)
