"""The user's age identity, which decrypts the secrets of every cluster shared with it."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from pyrage import IdentityError  # type: ignore[import-untyped]
from pyrage.x25519 import Identity  # type: ignore[import-untyped]

from rackwright.atomic_write import write_atomically
from rackwright.errors import SecretsError


def identity_path() -> Path:
    """The user's age identity: `rackwright/identity.age.txt` in the configuration folder."""
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    folder = Path(configured) if os.path.isabs(configured) else Path.home() / ".config"
    return folder / "rackwright" / "identity.age.txt"


def load_identities() -> list[Identity]:
    """The user's identities, the first of which writes; created on first use, mode 0600.

    SecretsError when other users can read the file, or it holds no identity.
    """
    path = identity_path()
    try:
        if not path.exists():
            _create_identity(path)
        mode = path.stat().st_mode
        if mode & 0o077:
            raise SecretsError(f"Other users can read {path}.", hint=f"chmod 600 {path}")
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = reason(error) if isinstance(error, OSError) else "it is not text"
        raise SecretsError(f"The identity {path} is not usable: {why}.") from None
    try:
        found = [Identity.from_str(line.strip()) for line in lines if line.strip() and line[0] != "#"]
    except IdentityError:
        found = []
    if not found:
        raise SecretsError(f"{path} contains no age identity.", hint="restore it from a backup")
    return found


def _create_identity(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    identity = Identity.generate()
    text = f"# public key: {identity.to_public()}\n{identity}\n"
    with contextlib.suppress(FileExistsError):  # another process was first: its identity is the one
        write_atomically(path, text, exclusive=True)


def reason(error: OSError) -> str:
    """The operating system's message, for use inside a sentence."""
    return (error.strerror or type(error).__name__).lower()
