"""Runtime state on disk: whole files or none, and locks which die with their holder."""

import fcntl
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rackwright.atomic_write import write_atomically
from rackwright.errors import LabError
from rackwright.lab import names
from rackwright.lab.spec import RackSpec

_ORPHAN_PATIENCE = 5.0
_REBUILD = "rackwright lab down removes the rack"


@dataclass(frozen=True, slots=True)
class NodeRecord:
    """What is known about a node whose disk is ready; written after the disk, so it vouches for it."""

    spec: dict[str, Any]
    base: str
    host_key: str
    machine_id: str
    limits: dict[str, bool] = field(default_factory=dict)


def write_text(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file of the rack atomically; after a power cut the rack is gone anyway."""
    write_atomically(path, text, mode=mode, durable=False)


def write_json(path: Path, data: object) -> None:
    """Write JSON atomically."""
    write_text(path, json.dumps(data, indent=1) + "\n")


def read_json(path: Path) -> Any:  # noqa: ANN401 - JSON is anything; each caller knows what it wrote
    """JSON of a file, None if the file does not exist."""
    try:
        return json.loads(path.read_text())
    except FileNotFoundError:
        return None
    except ValueError as error:
        raise LabError(f"{path} is damaged: {error}", hint=_REBUILD) from None


def saved_spec(rack: str) -> RackSpec | None:
    """The spec a rack was last brought up with, None when it is not there."""
    path = names.rack_state(rack) / "rack.json"
    data = read_json(path)
    try:
        return None if data is None else RackSpec.from_json(data)
    except (KeyError, TypeError):
        raise LabError(f"{path} is from another version of rackwright", hint=_REBUILD) from None


def save_spec(spec: RackSpec) -> None:
    """Remember a rack's spec."""
    write_json(names.rack_state(spec.name) / "rack.json", spec.to_json())


def forget_spec(rack: str) -> None:
    """Forget a rack's spec: from now on nothing vouches for what is left of the rack."""
    (names.rack_state(rack) / "rack.json").unlink(missing_ok=True)


def node_record(rack: str, node: str) -> NodeRecord | None:
    """The record of a prepared node."""
    path = names.node_state(rack, node) / "node.json"
    data = read_json(path)
    try:
        return None if data is None else NodeRecord(**data)
    except TypeError:
        raise LabError(f"{path} is from another version of rackwright", hint=_REBUILD) from None


def save_node_record(rack: str, node: str, record: NodeRecord) -> None:
    """Remember a prepared node."""
    write_json(names.node_state(rack, node) / "node.json", asdict(record))


def recorded_nodes(rack: str) -> list[str]:
    """Every node which has left something in the rack's state."""
    try:
        return sorted(entry.name for entry in (names.rack_state(rack) / "nodes").iterdir())
    except FileNotFoundError:
        return []


@contextmanager
def lock(name: str, wait: float = 0.0) -> Iterator[None]:
    """Hold the lock of that name; a holder which stays longer than `wait` seconds is named by its pid."""
    path = names.RUNTIME / f".{name.replace(' ', '-')}.lock"
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + wait
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        if _acquire(handle, path):
            break
        holder = os.pread(handle, 20, 0).decode().strip()
        os.close(handle)
        # A killed holder's child which has not yet become another program keeps the lock a moment longer.
        patience = 0.0 if Path(f"/proc/{holder or 'none'}").exists() else _ORPHAN_PATIENCE
        if time.monotonic() >= deadline + patience:
            who = f" (pid {holder})" if holder else ""
            raise LabError(f"{name} is busy: another rackwright lab command{who} is using it")
        time.sleep(0.01)
    try:
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)


def _acquire(handle: int, path: Path) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    # The last holder unlinks the file: a lock on an unlinked file excludes no other process.
    try:
        return os.stat(path).st_ino == os.fstat(handle).st_ino
    except FileNotFoundError:
        return False
