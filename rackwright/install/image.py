"""The image to install: the file, and its manifest."""

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
        """/etc/passwd and similar files, by name."""
        return {name: (self.folder / "etc" / name).read_text() for name in ACCOUNTS}


def read_image(folder: Path) -> RootImage:
    """The image of a folder; InstallError if it is not one, or its file does not match the manifest."""
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
            f"{folder} does not contain a root image.",
            hint="build it: rackwright image build FILE --group NODE --format root --out DIR",
        ) from None
    if (size, found) != (image.size, image.sha256):
        raise InstallError(
            f"{image.file} does not match its manifest: SHA-256 {found}, manifest {image.sha256}.",
            hint="remove the folder and build the image again",
        )
    return image
