"""A tree as an OCI image: one layer in an image layout, all in one tar file; the same tree gives the same bytes.

Media types and files: OCI Image Format Specification 1.1, image-layout.md and config.md (read 2026-11-23).
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import stat
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

NAME = "image.oci.tar"
EPOCH = 315532800
"""Time of every file, 1980-01-01: no clock becomes part of an image."""
_TYPE = "application/vnd.oci.image"
_NOT_IN_TREE = ("dev", "proc", "run", "sys", "tmp")
"""Folders whose content is the running system's; they stay, empty."""
_XATTRS = "SCHILY.xattr."


def write_oci(
    tree: Path,
    target: Path,
    tag: str,
    *,
    reference: str | None = None,
    config: dict[str, Any] | None = None,
    created_by: str = "rackwright image build",
) -> str:
    """Write the image `target` of a tree and return the digest of its manifest; it appears whole or not at all.

    `reference`: the name under which containerd imports it, `REGISTRY/NAME:TAG`. `config`: as in config.md, "config".
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as staging:
        layer, unfinished = Path(staging, "layer"), Path(staging, "image")
        diff_id = _write_layer(tree, layer)
        digest = _sha256(layer)
        described = _json(
            {
                "architecture": "amd64",
                "os": "linux",
                "config": config or {},
                "rootfs": {"type": "layers", "diff_ids": [f"sha256:{diff_id}"]},
                "history": [{"created": "1980-01-01T00:00:00Z", "created_by": created_by}],
            }
        )
        manifest = _manifest(described, digest, layer.stat().st_size)
        index = _index(manifest, tag, reference)
        with tarfile.open(unfinished, "w", format=tarfile.PAX_FORMAT) as tar:
            _add(tar, "oci-layout", _json({"imageLayoutVersion": "1.0.0"}))
            _add(tar, "index.json", index)
            for content in (described, manifest):
                _add(tar, f"blobs/sha256/{hashlib.sha256(content).hexdigest()}", content)
            member = _member(f"blobs/sha256/{digest}", layer.stat().st_size)
            with layer.open("rb") as file:
                tar.addfile(member, file)
        unfinished.replace(target)
    return f"sha256:{hashlib.sha256(manifest).hexdigest()}"


def _manifest(described: bytes, digest: str, size: int) -> bytes:
    layer = {"mediaType": f"{_TYPE}.layer.v1.tar+gzip", "digest": f"sha256:{digest}", "size": size}
    return _json(
        {
            "schemaVersion": 2,
            "mediaType": f"{_TYPE}.manifest.v1+json",
            "config": _descriptor("config.v1+json", described),
            "layers": [layer],
        }
    )


def _index(manifest: bytes, tag: str, reference: str | None) -> bytes:
    annotations = {"org.opencontainers.image.ref.name": tag}
    if reference is not None:
        annotations["io.containerd.image.name"] = reference
    entry = _descriptor("manifest.v1+json", manifest) | {"annotations": annotations}
    return _json({"schemaVersion": 2, "mediaType": f"{_TYPE}.index.v1+json", "manifests": [entry]})


def _write_layer(tree: Path, target: Path) -> str:
    """Write the compressed layer and return the digest of what is in it."""
    with (
        target.open("wb") as file,
        gzip.GzipFile(filename="", mode="wb", fileobj=file, compresslevel=6, mtime=0) as packed,
    ):
        hashed = _Hashed(packed)
        with tarfile.open(fileobj=hashed, mode="w|", format=tarfile.PAX_FORMAT) as tar:  # type: ignore[call-overload]
            inodes: dict[int, str] = {}
            for path in _walk(tree):
                _add_path(tar, tree, path, inodes)
    return hashed.digest.hexdigest()


class _Hashed:
    """A file that is written, and the digest of what went through."""

    def __init__(self, file: IO[bytes] | gzip.GzipFile) -> None:
        self._file = file
        self.digest = hashlib.sha256()

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        return self._file.write(data)


def _walk(tree: Path) -> Iterator[Path]:
    """Everything below a tree in one order, folders before what is in them."""
    for folder, folders, files in os.walk(tree):
        folders.sort()
        links = [name for name in folders if Path(folder, name).is_symlink()]
        if Path(folder) == tree:
            yield from (tree / name for name in _NOT_IN_TREE if name in folders)
            folders[:] = [name for name in folders if name not in _NOT_IN_TREE]
        else:
            yield Path(folder)
        yield from (Path(folder, name) for name in sorted([*files, *links]))


def _add_path(tar: tarfile.TarFile, tree: Path, path: Path, inodes: dict[int, str]) -> None:
    name = str(path.relative_to(tree))
    found = os.lstat(path)
    member = _member(name, 0)
    member.mode, member.uid, member.gid = stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid
    if stat.S_ISDIR(found.st_mode):
        member.type = tarfile.DIRTYPE
    elif stat.S_ISLNK(found.st_mode):
        member.type, member.linkname = tarfile.SYMTYPE, os.readlink(path)
    elif stat.S_ISREG(found.st_mode) and found.st_ino in inodes:
        member.type, member.linkname = tarfile.LNKTYPE, inodes[found.st_ino]
    elif stat.S_ISREG(found.st_mode):
        member.size = found.st_size
        if found.st_nlink > 1:
            inodes[found.st_ino] = name
        member.pax_headers = _attributes(path)
        with path.open("rb") as file:
            tar.addfile(member, file)
        return
    else:
        return  # sockets, pipes and devices belong to a running system
    tar.addfile(member)


def _attributes(path: Path) -> dict[str, str]:
    """Extended attributes, file capabilities among them, as GNU tar and container tools keep them."""
    return {
        _XATTRS + name: os.getxattr(path, name, follow_symlinks=False).decode("utf-8", "surrogateescape")
        for name in sorted(os.listxattr(path, follow_symlinks=False))
    }


def _member(name: str, size: int) -> tarfile.TarInfo:
    member = tarfile.TarInfo(name)
    member.size, member.mtime, member.mode = size, EPOCH, 0o644
    return member


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    tar.addfile(_member(name, len(content)), io.BytesIO(content))


def _descriptor(kind: str, content: bytes) -> dict[str, Any]:
    digest = hashlib.sha256(content).hexdigest()
    return {"mediaType": f"{_TYPE}.{kind}", "digest": f"sha256:{digest}", "size": len(content)}


def _json(data: dict[str, Any]) -> bytes:
    return json.dumps(data, sort_keys=True, separators=(",", ":")).encode()


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
