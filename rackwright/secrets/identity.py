"""The user's age identity, which opens the secrets of every cluster shared with it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from pyrage import IdentityError  # type: ignore[import-untyped]
from pyrage.x25519 import Identity  # type: ignore[import-untyped]

from rackwright.errors import SecretsError
from rackwright.state_folder import sync_folder


def identity_path() -> Path:
    """Where the user's age identity is: `rackwright/identity.age.txt` in the configuration folder."""
    configured = os.environ.get("XDG_CONFIG_HOME", "")
    folder = Path(configured) if os.path.isabs(configured) else Path.home() / ".config"
    return folder / "rackwright" / "identity.age.txt"


def load_identities() -> list[Identity]:
    """The user's identities, the first one writes; created on first use, mode 0600.

    Raises SecretsError when the file can be read by others, or holds no identity.
    """
    path = identity_path()
    try:
        if not path.exists():
            _create_identity(path)
        mode = path.stat().st_mode
        if mode & 0o077:
            raise SecretsError(f"{path} can be read by others.", hint=f"chmod 600 {path}")
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        why = reason(error) if isinstance(error, OSError) else "it is not text"
        raise SecretsError(f"The identity {path} cannot be used: {why}.") from None
    try:
        found = [Identity.from_str(line.strip()) for line in lines if line.strip() and line[0] != "#"]
    except IdentityError:
        found = []
    if not found:
        raise SecretsError(f"{path} holds no age identity.", hint="restore it from a backup")
    return found


def _create_identity(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    identity = Identity.generate()
    text = f"# public key: {identity.to_public()}\n{identity}\n"
    temporary = _temporary(path, text.encode())
    try:
        os.link(temporary, path)  # fails where another process was first: its identity is the one
    except FileExistsError:
        pass
    finally:
        os.unlink(temporary)


def write_privately(path: Path, content: bytes) -> None:
    """Replace a file atomically by one of mode 0600. Raises OSError; the old file then stands."""
    temporary = _temporary(path, content)
    try:
        os.replace(temporary, path)
    except OSError:
        os.unlink(temporary)
        raise
    sync_folder(path.parent)


def _temporary(path: Path, content: bytes) -> str:
    """A file of mode 0600 in the same folder, its content on disk."""
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    return name


def reason(error: OSError) -> str:
    """What the operating system says, to stand inside a sentence."""
    return (error.strerror or type(error).__name__).lower()
