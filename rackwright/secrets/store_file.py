"""The file of a cluster's secrets: where it is, who reads it, and how it is replaced.

`<cluster.name>.secrets.age` beside the cluster file holds the values, encrypted to the identity in the user's
configuration folder and to every key in `<cluster.name>.secrets.recipients` (one age public key a line). It belongs
to the cluster, not to the file: every cluster file of that name in the folder finds it. It was once named
after the cluster file; such a file is read, and the next write gives it its new name.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyrage import DecryptError, RecipientError  # type: ignore[import-untyped]
from pyrage.x25519 import Recipient  # type: ignore[import-untyped]

from rackwright.atomic_write import write_atomically
from rackwright.errors import SecretsError
from rackwright.secrets.content import Content, NotAStore, decrypted, encrypted
from rackwright.secrets.identity import identity_path, load_identities, reason

_LOCK_SECONDS = 30.0


class StoreFile:
    """Reads and writes the encrypted file."""

    def __init__(self, cluster_file: Path, cluster: str) -> None:
        """`cluster`: the cluster's name."""
        self.cluster = cluster
        self.folder = cluster_file.absolute().parent
        self._stem = cluster_file.stem

    @property
    def path(self) -> Path:
        """Where the file is, or would be."""
        return self._named("age")

    @property
    def recipients_path(self) -> Path:
        """The file with the team's public keys."""
        return self._named("recipients")

    def _named(self, kind: str) -> Path:
        path = self.folder / f"{self.cluster}.secrets.{kind}"
        old = self.folder / f"{self._stem}.secrets.{kind}"
        return old if not path.exists() and old.exists() else path

    def read(self) -> Content | None:
        """What it holds; None without a file. SecretsError where it cannot be read."""
        path = self.path
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SecretsError(f"Cannot read {path}: {reason(error)}.") from None
        return self.opened(path, data)

    def opened(self, path: Path, data: bytes) -> Content:
        """The content of these bytes, which `path` holds."""
        try:
            content = decrypted(data, load_identities(), self.cluster)
        except DecryptError as error:
            raise self._unreadable(path, error) from None
        except NotAStore:
            raise SecretsError(
                f"{path} was written by another version of rackwright.",
                hint="use the version that wrote it, or restore the file from a backup",
            ) from None
        if content.cluster != self.cluster:
            raise SecretsError(
                f"{path} holds the secrets of cluster {content.cluster}, not of {self.cluster}.",
                hint=f"restore the secrets of {self.cluster} to {self.folder / self.cluster}.secrets.age",
            )
        return content

    def write(self, content: Content) -> Content:
        """Replace the file, readable by its recipients, this user and the team; what was written."""
        mine = str(load_identities()[0].to_public())
        recipients = {*content.recipients, mine, *self.team()}
        content = content.model_copy(update={"recipients": frozenset(recipients)})
        if not content.id:
            content = content.model_copy(update={"id": Content(cluster=self.cluster).id})
        path, old = self.folder / f"{self.cluster}.secrets.age", self.path
        try:
            write_atomically(path, encrypted(content))
            if old != path:
                old.unlink(missing_ok=True)
        except OSError as error:
            raise SecretsError(f"Cannot write {path}: {reason(error)}.") from None
        return content

    def team(self) -> set[str]:
        """The keys of the recipients file."""
        path, keys = self.recipients_path, set()
        try:
            lines = path.read_text(encoding="utf-8").splitlines()
        except FileNotFoundError:
            return set()
        except (OSError, UnicodeDecodeError):
            raise SecretsError(f"{path} is not text.") from None
        for number, line in enumerate(lines, 1):
            key = line.partition("#")[0].strip()
            if key:
                keys.add(public_key(key, f"{path}:{number}"))
        return keys

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the folder: no other process changes a store in it meanwhile."""
        try:
            descriptor = os.open(self.folder, os.O_RDONLY)
        except OSError as error:
            raise SecretsError(f"Cannot open {self.folder}: {reason(error)}.") from None
        try:
            deadline = time.monotonic() + _LOCK_SECONDS
            while not _lock(descriptor):
                if time.monotonic() > deadline:
                    raise SecretsError(f"Another process has locked the secrets in {self.folder}.")
                time.sleep(0.05)
            yield
        finally:
            os.close(descriptor)

    def _unreadable(self, path: Path, error: DecryptError) -> SecretsError:
        if "No matching keys" in str(error):
            return SecretsError(
                f"{path} is not encrypted to your identity in {identity_path()}.",
                hint="restore the identity that wrote it, or ask a user who can read it to add your public key: "
                "rackwright secrets add-recipient age1... FILE",
            )
        return SecretsError(f"Cannot decrypt {path}: the file is damaged.", hint="restore it from a backup")


def public_key(text: str, where: str) -> str:
    """An age public key in its canonical form; SecretsError, naming where it is from, for anything else."""
    try:
        return str(Recipient.from_str(text))
    except RecipientError:
        raise SecretsError(
            f"{where} is not a valid age public key.", hint="one `age1...` key per line; never a secret key"
        ) from None


def _lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
