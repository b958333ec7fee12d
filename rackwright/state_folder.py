"""The folder in which rackwright keeps its state of a cluster between runs."""

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

    RackwrightError when it cannot be created or belongs to another user.
    """
    folder = state_root() / cluster_name
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        raise RackwrightError(
            f"The state folder {folder} is not usable: {error.strerror}.",
            hint="set XDG_STATE_HOME to a folder that you own and can write, e.g. /var/tmp/state",
        ) from error
    return folder
