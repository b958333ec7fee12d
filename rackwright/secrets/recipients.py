"""Who can read a cluster's secrets: the keys that the store is encrypted to, and the team's file next to it."""

from __future__ import annotations

from rackwright.atomic_write import write_atomically
from rackwright.errors import SecretsError
from rackwright.secrets.content import Content
from rackwright.secrets.identity import load_identities, reason
from rackwright.secrets.store import SecretStore
from rackwright.secrets.store_file import StoreFile, public_key


def own_key() -> str:
    """The public key of this user's identity."""
    return str(load_identities()[0].to_public())


def add_recipient(store: SecretStore, key: str) -> None:
    """Encrypt the store to this key as well, and note it in the team's file."""
    key = _checked(key)
    store.content()  # before the file changes: without a store there is nothing to share
    if key not in store.file.team():
        _write_lines(store.file, [*_lines(store.file), key])
    store.update(lambda content: content.model_copy(update={"recipients": content.recipients | {key}}))


def remove_recipient(store: SecretStore, key: str) -> tuple[str, ...]:
    """Encrypt the store to everyone but this key; the secrets it has seen, which are now due to be rotated."""
    key = _checked(key)
    if key == own_key():
        raise SecretsError(
            "This is your own key: without it you could not read the secrets.",
            hint="ask another recipient to remove it",
        )
    if key not in store.content().recipients | store.file.team():
        raise SecretsError(
            f"{key} is not a recipient of {store.path}.", hint="rackwright secrets show-recipients FILE"
        )
    kept = [line for line in _lines(store.file) if line.partition("#")[0].strip() != key]
    if kept != _lines(store.file):
        _write_lines(store.file, kept)

    def removed(content: Content) -> Content:
        seen = {name: content.seen_by_removed.get(name, frozenset()) | {key} for name in content.secrets}
        return content.model_copy(update={"recipients": content.recipients - {key}, "seen_by_removed": seen})

    return tuple(sorted(store.update(removed).secrets))


def _checked(key: str) -> str:
    # anything else may be a secret key, given by mistake, and is not repeated
    return public_key(key, f"`{key[:80]}`" if key.startswith("age1") else "The key given")


def _lines(file: StoreFile) -> list[str]:
    try:
        return file.recipients_path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return []


def _write_lines(file: StoreFile, lines: list[str]) -> None:
    path = file.recipients_path
    try:
        if not lines:
            path.unlink(missing_ok=True)
            return
        write_atomically(path, "".join(f"{line}\n" for line in lines), mode=0o644)
    except OSError as error:
        raise SecretsError(f"Cannot write {path}: {reason(error)}.") from None
