"""A backup on the control node: fetched from a head, still encrypted, and verified."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import shutil
import tarfile
import threading
import zlib
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from pyrage import DecryptError, decrypt_io  # type: ignore[import-untyped]

from rackwright.atomic_write import write_atomically
from rackwright.backup import archive
from rackwright.backup.catalogue import MANIFEST, SUFFIX, Backup, Unreadable, damage, made, read
from rackwright.errors import RestoreError, SecretsError
from rackwright.restore.node import Nodes
from rackwright.secrets.identity import identity_path, load_identities, reason

_CHUNK = 64 * 1024
_GZIP = 31
"""zlib's window bits for a gzip stream."""


@dataclass(frozen=True)
class Opened:
    """A part that was decrypted once as a trial: its compressed content, which is what a node gets."""

    name: str
    path: Path
    size: int
    sha256: str

    def chunks(self) -> Generator[bytes, None, None]:
        """The content, decrypted as it is read."""
        reading, writing = os.pipe()
        failed: list[Exception] = []

        def decrypt() -> None:
            try:
                with os.fdopen(writing, "wb") as out, self.path.open("rb") as file:
                    decrypt_io(file, out, load_identities())
            except (DecryptError, OSError, SecretsError) as error:  # the reader sees an end that is too early
                failed.append(error)

        thread = threading.Thread(target=decrypt, daemon=True)
        thread.start()
        with os.fdopen(reading, "rb") as stream:
            while chunk := stream.read(_CHUNK):
                yield chunk
        thread.join()
        if failed:
            raise RestoreError(f"Cannot decrypt {self.path} any more: {failed[0]}.")


def local(folder: Path) -> Backup:
    """A backup in a folder of this machine, its files compared with its manifest."""
    folder = folder.resolve()
    try:
        made(folder.name)
        backup = read(str(folder.parent), folder.name)
    except (Unreadable, ValueError) as error:
        raise RestoreError(
            f"{folder} is not a backup: {error}.", hint="name a folder such as head1-20261126T023000Z"
        ) from None
    if wrong := damage(str(folder.parent), backup):
        raise RestoreError(f"The backup {folder} is damaged: {'; '.join(wrong)}.", hint="use another one")
    return backup


def fetch(
    nodes: Nodes,
    node: str,
    place: str,
    manifest: dict[str, Any],
    into: Path,
    notice: Callable[[str], None],
) -> Path:
    """Copy a backup, still encrypted, to a new folder of its name; the folder."""
    name = str(manifest["name"])
    made(name)
    target, partial = into / name, into / f".{name}.partial"
    if target.exists():
        raise RestoreError(f"{target} already exists.", hint="choose another folder")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir(mode=0o700, parents=True)
        _refuse_too_large(sum(part["size"] for part in manifest["parts"]), into)
        for part in manifest["parts"]:
            notice(f"{node}: fetching {part['about']}, {part['size']} bytes")
            with (partial / f"{part['name']}{SUFFIX}").open("wb") as file:
                nodes.fetch(node, f"{place}/{name}/{part['name']}{SUFFIX}", file, part["size"])
        write_atomically(partial / MANIFEST, json.dumps(manifest, indent=1, sort_keys=True) + "\n")
        if wrong := damage(str(into), Backup(partial.name, manifest)):
            raise RestoreError(f"The backup {name} is damaged: {'; '.join(wrong)}.", hint="use another one")
        partial.rename(target)
    except OSError as error:
        raise RestoreError(f"Cannot write to {into}: {reason(error)}.") from None
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return target


def _refuse_too_large(size: int, into: Path) -> None:
    free = shutil.disk_usage(into).free
    if size > free:
        raise RestoreError(
            f"The backup has {size} bytes, but {into} has only {free} bytes free.",
            hint="fetch it to a disk with enough space, and restore from there: --fetch FOLDER, then --from FOLDER/NAME",
        )


def opened(folder: Path, part: dict[str, Any]) -> Opened:
    """Decrypt a part as a trial, keeping nothing; RestoreError where this user cannot, or it is damaged."""
    path, sink = folder / f"{part['name']}{SUFFIX}", _Sink()
    try:
        with path.open("rb") as file:
            decrypt_io(file, sink, load_identities())
    except (DecryptError, OSError, zlib.error) as error:
        if "No matching keys" in str(error):
            raise RestoreError(
                f"{path} is not encrypted to your identity in {identity_path()}.",
                hint="restore with an identity that was a recipient of the secrets store when the backup was made",
            ) from None
        raise RestoreError(f"Cannot decrypt {path}: {error}.", hint="use another backup") from None
    if not sink.ended:
        raise RestoreError(f"{path} does not contain a complete gzip stream.", hint="use another backup")
    found = Opened(part["name"], path, sink.size, sink.digest.hexdigest())
    if part.get("folder") is not None:
        _refuse_archive(found)
    return found


def _refuse_archive(part: Opened) -> None:
    """RestoreError for an archive that the node would refuse, once its units were stopped."""
    with closing(part.chunks()) as chunks:
        try:
            with gzip.open(io.BufferedReader(_Chunks(chunks)), "rb") as unpacked:
                archive.check(cast("IO[bytes]", unpacked))
        except (archive.Unsafe, tarfile.TarError, OSError, EOFError, zlib.error) as error:
            raise RestoreError(f"Cannot unpack {part.path}: {error}.", hint="use another backup") from None


class _Chunks(io.RawIOBase):
    """Chunks, read as a file."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, into: Any) -> int:  # noqa: ANN401 - a buffer, as io has it
        self._rest = self._rest or next(self._chunks, b"")
        size = min(len(into), len(self._rest))
        into[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


class _Sink:
    """Takes what is decrypted: its size and digest, and whether it is a whole gzip stream."""

    def __init__(self) -> None:
        self.size = 0
        self.digest = hashlib.sha256()
        self._gzip = zlib.decompressobj(_GZIP)

    @property
    def ended(self) -> bool:
        return self._gzip.eof

    def write(self, data: bytes) -> int:
        self.size += len(data)
        self.digest.update(data)
        rest = bytes(data)
        while rest and not self._gzip.eof:
            self._gzip.decompress(rest, 1 << 24)
            rest = self._gzip.unconsumed_tail
        return len(data)

    def flush(self) -> None:
        """For decrypt_io."""
