"""A copy of a cluster's secrets, encrypted to the same recipients, and its restore."""

from __future__ import annotations

from pathlib import Path

from rackwright.atomic_write import write_atomically
from rackwright.errors import SecretsError
from rackwright.secrets.identity import reason
from rackwright.secrets.store import SecretStore


def back_up(store: SecretStore, target: Path) -> int:
    """Copy the store to a new file, mode 0600, and decrypt the copy; the number of secrets in it."""
    with store.file.locked():
        content = store.content()
        data = _read(store.path)
    try:
        write_atomically(target, data, exclusive=True)
    except FileExistsError:
        raise SecretsError(
            f"{target} already exists; backups are never overwritten.", hint="choose a new file name"
        ) from None
    except OSError as error:
        raise SecretsError(f"Cannot write {target}: {reason(error)}.") from None
    if store.file.opened(target, _read(target)) != content:
        raise SecretsError(f"{target} does not match {store.path} after writing.", hint="try another disk")
    return len(content.secrets)


def restore(store: SecretStore, source: Path) -> int:
    """Put a backup in the place of a store that is gone; the number of secrets in it."""
    data = _read(source)
    content = store.file.opened(source, data)
    store.refuse_other(content, source)
    with store.file.locked():
        if store.path.exists():
            raise SecretsError(
                f"{store.path} exists; a backup does not replace it.",
                hint=f"move it away first: mv {store.path} {store.path}.old",
            )
        try:
            write_atomically(store.path, data, exclusive=True)
        except OSError as error:
            raise SecretsError(f"Cannot write {store.path}: {reason(error)}.") from None
    store.content()
    return len(content.secrets)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SecretsError(f"Cannot read {path}: {reason(error)}.") from None
