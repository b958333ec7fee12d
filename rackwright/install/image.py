"""The image that is installed: the file, and what its manifest says of it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

from rackwright.errors import InstallError

NAME = "root.tar.zst"
ACCOUNTS = ("passwd", "group", "shadow", "gshadow")


@dataclass(frozen=True)
class RootImage:
    """A root image in its folder."""

    folder: Path
    size: int
    sha256: str
    os: str
    group: str

    @property
    def file(self) -> Path:
        """The tar file."""
        return self.folder / NAME

    def accounts(self) -> dict[str, str]:
        """/etc/passwd and its siblings, by name."""
        return {name: (self.folder / "etc" / name).read_text() for name in ACCOUNTS}


def read_image(folder: Path) -> RootImage:
    """The image of a folder; InstallError where it is not one, or its file is not what the manifest says."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
        entry = next(one for one in manifest["files"] if one["name"] == NAME)
        image = RootImage(
            folder, int(entry["bytes"]), str(entry["sha256"]), str(manifest["os"]), str(manifest["group"])
        )
        size = image.file.stat().st_size
        with image.file.open("rb") as file:
            found = file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError, KeyError, TypeError, StopIteration):
        raise InstallError(
            f"{folder} holds no root image.",
            hint="rackwright image build FILE --group NODE --format root --out DIR makes it",
        ) from None
    if (size, found) != (image.size, image.sha256):
        raise InstallError(
            f"{image.file} is not what its manifest says: SHA-256 {found}, manifest {image.sha256}.",
            hint="remove the folder and build the image again",
        )
    return image
