"""The folder of a bundle: images as one OCI layout, files, lists of packages.

OCI layout: github.com/opencontainers/image-spec (image-layout.md, v1.1), read 2026-11-28.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from rackwright.atomic_write import write_atomically
from rackwright.bundle.registry import Manifest
from rackwright.bundle.web import Unreadable
from rackwright.lock.references import BundleError

_CHUNK = 1 << 20
_NAME = "org.opencontainers.image.ref.name"
_LAYOUT = '{"imageLayoutVersion": "1.0.0"}\n'


class Layout:
    """A bundle's folder; what is in it is complete, since each file takes its name last."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.images = folder / "images"

    def create(self) -> None:
        """Make the folders. Raises BundleError where they cannot be made."""
        try:
            (self.images / "blobs" / "sha256").mkdir(parents=True, exist_ok=True)
            write_atomically(self.images / "oci-layout", _LAYOUT, mode=0o644)
        except OSError as error:
            raise BundleError(f"Cannot write the bundle {self.folder}: {error.strerror}.") from None

    def blob(self, digest: str) -> Path:
        """The file of a digest."""
        return self.images / "blobs" / "sha256" / digest.removeprefix("sha256:")

    def has(self, digest: str) -> bool:
        """Whether the blob is there with the content of its digest."""
        path = self.blob(digest)
        return path.is_file() and f"sha256:{sha256_of(path)}" == digest

    def file(self, kind: str, name: str) -> Path:
        """Where a file of that name is."""
        return self.folder / f"{kind}s" / Path(name).name

    def write(self, path: Path, fill: Callable[[Callable[[bytes], object]], None]) -> None:
        """Replace a file once `fill` has written all of it; what it raises leaves no trace."""
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name[:60]}.", dir=path.parent)
        try:
            with os.fdopen(handle, "wb") as stream:
                fill(stream.write)
                stream.flush()
                os.fchmod(handle, 0o644)
                os.fsync(handle)
            os.replace(temporary, path)
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)

    def named(self) -> dict[str, str]:
        """Digest of each image by its reference. Raises Unreadable for an index that is damaged."""
        return {
            str(one["annotations"][_NAME]): str(one["digest"])
            for one in self._index()["manifests"]
            if one.get("annotations", {}).get(_NAME)
        }

    def name(self, reference: str, manifest: Manifest) -> None:
        """List an image whose blobs are all there."""
        index = self._index()
        others = [one for one in index["manifests"] if one.get("annotations", {}).get(_NAME) != reference]
        entry = {
            "mediaType": manifest.media_type,
            "digest": manifest.digest,
            "size": len(manifest.body),
            "annotations": {_NAME: reference},
        }
        index["manifests"] = sorted([*others, entry], key=lambda one: str(one["annotations"][_NAME]))
        write_atomically(self.images / "index.json", json.dumps(index, indent=2) + "\n", mode=0o644)

    def _index(self) -> dict[str, Any]:
        path = self.images / "index.json"
        if not path.exists():
            return {"schemaVersion": 2, "manifests": []}
        try:
            found = json.loads(path.read_text())
            list(found["manifests"])
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise Unreadable(f"{path} is damaged: {error}") from None
        return dict(found)


def sha256_of(path: Path) -> str:
    """SHA-256 of a file. Raises OSError."""
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()
