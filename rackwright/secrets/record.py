"""A user's record that a cluster's secrets exist, so that lost ones are not regenerated silently.

The record is in the user's state folder for the cluster, not beside the cluster file: a copy of the cluster file in
another folder finds it, and so does a run after the store was lost. It holds no secret.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from rackwright.atomic_write import write_atomically
from rackwright.errors import SecretsError
from rackwright.secrets.identity import reason
from rackwright.state_folder import state_folder, state_root

_FILE = "secrets.json"


class Record(BaseModel):
    """One cluster's secrets as this user last read or wrote them."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    path: str
    """The store."""
    id: str
    """The store's id; empty where it had none yet."""
    new: tuple[str, ...] = ()
    """Secrets that were generated here and that no apply has put on a node yet."""
    unused: bool = False
    """The whole store was made here and nothing of it has been put on a node: losing it loses nothing."""
    before: Record | None = None
    """Of an unused store that was made after another was lost: the record of that one."""

    @property
    def in_use(self) -> Record | None:
        """The store whose secrets nodes may have."""
        return self.before if self.unused else self

    def used(self, *new: str) -> Record:
        """The same once it cannot be made again; `new` are still on no node."""
        return self.model_copy(update={"new": new, "unused": False, "before": None})


def read_record(cluster: str, store: Path) -> Record | None:
    """The record; None where this user has never used the cluster's secrets.

    One that a power cut has damaged counts as none while the store is in place, and is written again. SecretsError
    without the store: it may have been lost.
    """
    path = state_root() / cluster / _FILE
    try:
        return Record.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError):
        if store.exists():
            return None
        raise SecretsError(
            f"Cannot read {path}, which records where the secrets of cluster {cluster} are, and {store} does not exist.",
            hint=f"copy the store or a backup of it there; if the cluster never had secrets, remove the record: rm {path}",
        ) from None


def read_in_use(cluster: str, store: Path) -> Record | None:
    """The record of the store whose secrets nodes may have; where it is damaged, all that is known: there was one."""
    try:
        record = read_record(cluster, store)
    except SecretsError:
        return Record(path=str(store), id="")
    return record.in_use if record is not None else None


def write_record(cluster: str, record: Record | None) -> None:
    """Replace the record; None removes it."""
    path = state_folder(cluster) / _FILE
    try:
        if record is None:
            path.unlink(missing_ok=True)
        else:
            write_atomically(path, record.model_dump_json(exclude_none=True))
    except OSError as error:
        raise SecretsError(
            f"Cannot write {path}: {reason(error)}.",
            hint="free some space, or set XDG_STATE_HOME to a folder that you own and can write, e.g. /var/tmp/state",
        ) from None
