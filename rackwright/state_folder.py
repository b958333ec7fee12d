"""Where rackwright keeps what it learned about a cluster between runs."""

from __future__ import annotations

import os
from pathlib import Path

from rackwright.errors import RackwrightError


def state_root() -> Path:
    """`$XDG_STATE_HOME/rackwright` (default `~/.local/state/rackwright`): one folder per cluster."""
    base = os.environ.get("XDG_STATE_HOME", "")
    # the XDG specification: a relative path is invalid and is to be ignored
    root = Path(base) if base.startswith("/") else Path.home() / ".local" / "state"
    return root / "rackwright"


def state_folder(cluster_name: str) -> Path:
    """`$XDG_STATE_HOME/rackwright/<cluster>` (default `~/.local/state`), created with mode 0700.

    Raises RackwrightError when it cannot be created or is not ours to write to.
    """
    folder = state_root() / cluster_name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        raise RackwrightError(
            f"The state folder {folder} cannot be created: {error.strerror}.",
            hint="set XDG_STATE_HOME to a folder you own",
        ) from error
    return folder


def sync_folder(folder: Path) -> None:
    """After a power cut a file is only there if the folder that names it was written to the disk."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
