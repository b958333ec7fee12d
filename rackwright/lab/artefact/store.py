"""The artefact in the lab's folder: built once, by one builder at a time, and kept under the key of its recipe."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rackwright.errors import LabError
from rackwright.lab import cgroup, names, sources, state
from rackwright.lab.artefact.build import build
from rackwright.lab.artefact.recipe import Recipe, recipe
from rackwright.lab.artefact.tree import Builder
from rackwright.lab.process import require

PROGRAMS = (
    "mmdebstrap",
    "unshare",
    "chroot",
    "mount",
    "setpriv",
    "dpkg-deb",
    "gpg",
    "gpg-agent",
    "gpgconf",
    "nice",
    "ionice",
)
_PREFIX = "kubernetes-"
_KEPT_DAYS = 14


@contextmanager
def held(log: Callable[[str], None]) -> Iterator[Path]:
    """The folder of the artefact, built where missing, and kept from removal while the block runs."""
    _folder().mkdir(parents=True, exist_ok=True)
    wanted = recipe()
    handle = os.open(_lock(wanted.key), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC)
    try:
        made = _ensure(wanted, handle, log)
        os.utime(made)  # its age shows when it was last used
        sweep()
        yield made
    finally:
        os.close(handle)


def sweep() -> None:
    """Remove unfinished builds without a builder, and artefacts that no rack serves and none has wanted for two weeks."""
    if not _folder().is_dir():
        return
    try:
        used = in_use()
    except LabError:
        return  # unreadable state may belong to a running rack: what it serves is unknown
    for lock in sorted(_folder().glob("*.lock")):
        key = lock.name.removesuffix(".lock")
        handle = os.open(lock, os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            continue  # being built, or about to be served
        else:
            _discard_unfinished(key)
            if _old(_made(key)) and str(_made(key)) not in used:
                shutil.rmtree(_made(key), ignore_errors=True)
        finally:
            os.close(handle)


def _old(made: Path) -> bool:
    # Another version of rackwright on this machine may want it again, and building it takes long.
    return made.is_dir() and made.stat().st_mtime < time.time() - _KEPT_DAYS * 86400


def claim(rack: str, folder: Path) -> None:
    """Note that a rack serves an artefact, until `lab down`."""
    state.write_json(names.rack_state(rack) / "artefact.json", str(folder))


def in_use() -> set[str]:
    """Artefacts that racks serve; LabError where a rack's state cannot be read."""
    return {str(state.read_json(path)) for path in names.RUNTIME.glob("[!.]*/artefact.json")}


def _ensure(wanted: Recipe, handle: int, log: Callable[[str], None]) -> Path:
    made = _made(wanted.key)
    fcntl.flock(handle, fcntl.LOCK_SH)
    while not made.is_dir():
        fcntl.flock(handle, fcntl.LOCK_EX)  # waits for another builder
        if not made.is_dir():
            _build(wanted, made, log)
        fcntl.flock(handle, fcntl.LOCK_SH)
    return made


def _build(wanted: Recipe, made: Path, log: Callable[[str], None]) -> None:
    require(PROGRAMS)
    if not sources.KEYRING.exists():
        raise LabError(f"{sources.KEYRING} is missing: apt-get install debian-archive-keyring")
    log("building Kubernetes from Debian's source (once, 10 to 20 minutes on two cores)")
    _discard_unfinished(wanted.key)
    unfinished = _unfinished(wanted.key)
    build(wanted, unfinished, Builder(cgroup.create(_group(wanted.key))), log)
    cgroup.remove(_group(wanted.key))
    unfinished.chmod(0o755)
    unfinished.rename(made)


def _discard_unfinished(key: str) -> None:
    cgroup.remove(_group(key))
    if _unfinished(key).exists():
        shutil.rmtree(_unfinished(key))


def _group(key: str) -> str:
    return f"artefact.{key}.{hashlib.sha256(str(names.lab_dir()).encode()).hexdigest()[:6]}"


def _folder() -> Path:
    return names.lab_dir() / "artefacts"


def _lock(key: str) -> Path:
    return _folder() / f"{key}.lock"


def _made(key: str) -> Path:
    return _folder() / f"{_PREFIX}{key}"


def _unfinished(key: str) -> Path:
    return _folder() / f".{_PREFIX}{key}.unfinished"
