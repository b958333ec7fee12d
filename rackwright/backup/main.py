"""Makes a backup of this node; started by the timer. Standard library only, Python 3.9 or newer.

backup             make one, and remove those that are not kept
backup --first     as an apply does on a new node: do nothing if the place already has backups
backup --anew      make one although the place has backups of an earlier installation of the node
backup --report    print the contents of the place as JSON, after verifying the newest backup against its manifest
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import signal
import stat
import sys
import time
from collections.abc import Iterator
from typing import Any

from rackwright.backup import places
from rackwright.backup.catalogue import SUFFIX, Backup, backups, damage
from rackwright.backup.make import Failure, make, prune, sweep
from rackwright.backup.metrics import text as metrics_text
from rackwright.health.guard.node_files import NodeFiles

ROOT = 0
_OTHERS_MAY_WRITE = 0o022
_HEADER_MAX = 64 * 1024


def settings() -> dict[str, Any]:
    """The declared settings of this node's backups."""
    try:
        with open(places.SETTINGS, encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
    except (OSError, ValueError) as error:
        raise Failure(f"cannot read {places.SETTINGS}: {error}") from None
    return found


def refuse_place(declared: dict[str, Any]) -> None:
    """Failure if the place is not as declared: a backup on the wrong disk is lost with it."""
    mount = declared["mount"]
    if mount is not None:
        with contextlib.suppress(OSError):
            os.listdir(mount["path"])  # triggers an automount
        if (why := not_mounted(mount)) is not None:
            raise Failure(f"{declared['place']} is not used: {why}")


def not_mounted(mount: dict[str, Any]) -> str | None:
    """Why the declared filesystem is not mounted; None if it is."""
    found = None
    with open("/proc/self/mountinfo", encoding="utf-8") as file:
        for line in file:
            before, _, after = line.partition(" - ")
            if _unescaped(before.split(" ")[4]) == mount["path"]:
                found = after.split(" ")[0]  # the last one is on top
    if found is None or found == "autofs":
        return f"nothing is mounted on {mount['path']}"
    if mount["types"] and found not in mount["types"]:
        return f"{mount['path']} is {found}, not {' or '.join(mount['types'])}"
    return None


def _unescaped(path: str) -> str:
    for code, character in (("\\040", " "), ("\\011", "\t"), ("\\134", "\\")):
        path = path.replace(code, character)
    return path


def _open_place(declared: dict[str, Any]) -> None:
    """Create the folder, owned by root: write access to it decides what a restore puts back."""
    place = declared["place"]
    os.makedirs(place, mode=0o700, exist_ok=True)
    found = os.stat(place)
    if found.st_uid != ROOT or stat.S_IMODE(found.st_mode) & _OTHERS_MAY_WRITE:
        raise Failure(
            f"{place} can be written by users other than root: chown root {place}; chmod 700 {place}"
        )


def installation() -> str | None:
    """Id of this installation of the node; None before its first backup."""
    try:
        with open(places.INSTALLATION, encoding="utf-8") as file:
            return file.read().strip() or None
    except FileNotFoundError:
        return None


def run(mode: str) -> int:
    """Make a backup; returns the exit status."""
    now, declared = time.time(), settings()
    with _alone():
        try:
            with _ends_on_sigterm():
                text = _run(declared, mode, now)
        except (Failure, OSError, _Stopped) as error:
            _note(declared, now, why=str(error))
            print(f"backup failed: {error}", file=sys.stderr)
            return 1
    print(text)
    return 0


class _Stopped(Exception):  # noqa: N818 - not a Failure: the part is not tried again
    """systemd ends this program: its time limit, or `systemctl stop`."""


@contextlib.contextmanager
def _ends_on_sigterm() -> Iterator[None]:
    """Turn the signal into one exception: unfinished work is removed, and the failure is recorded."""

    def stop(number: int, _: object) -> None:
        signal.signal(number, signal.SIG_IGN)
        raise _Stopped("it was stopped by SIGTERM, which systemd sends after roles.backup.time_limit_minutes")

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN if before is None else before)


def _run(declared: dict[str, Any], mode: str, now: float) -> str:
    if os.path.exists(places.UNFINISHED):
        raise Failure(_unfinished())
    refuse_place(declared)
    _open_place(declared)
    there, _ = backups(declared["place"], declared["node"])
    own = installation()
    if own is None:
        if there and mode != "--anew":
            why = (
                f"{declared['place']} has backups of an earlier installation of {declared['node']}: restore one with "
                f"`rackwright restore`, or start over with: {places.PROGRAM} --anew"
            )
            if mode == "--first":
                _note(declared, now, why=why)
                return why
            raise Failure(why)
        own = secrets.token_hex(16)
        _write(
            places.INSTALLATION, own + "\n", 0o600
        )  # first: a backup of an unknown installation belongs to another
    sweep(declared)  # first: leftovers of a killed run may have filled the place
    manifest = make(declared, own, now)
    mine = [one.name for one in there if one.installation == own]
    gone = prune(declared, [*mine, manifest["name"]])
    _note(declared, now, manifest=manifest, count=len(mine) + 1 - len(gone))
    size = sum(part["size"] for part in manifest["parts"])
    return f"{manifest['name']}: {len(manifest['parts'])} parts, {size} bytes; {len(gone)} older ones removed"


def _unfinished() -> str:
    """Refuse during an unfinished restore: restoring another backup would replace what this one has restored."""
    try:
        with open(places.UNFINISHED, encoding="utf-8") as file:
            of = f" of {', '.join(json.load(file)['run'])}"
    except (OSError, ValueError, LookupError, TypeError):
        of = ""
    return f"a restore{of} is unfinished on this node: run the same `rackwright restore` again"


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    os.makedirs(places.STATE, mode=0o700, exist_ok=True)
    with open(places.LOCK, "a", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit("another backup of this node is running")
        yield


def _note(
    declared: dict[str, Any],
    now: float,
    *,
    why: str | None = None,
    manifest: dict[str, Any] | None = None,
    count: int = 0,
) -> None:
    """Record this attempt's result, for the checks and for Prometheus."""
    last = _last()
    last.update(attempt=now, error=why)
    if manifest is not None:
        size = sum(part["size"] for part in manifest["parts"])
        last.update(success=now, name=manifest["name"], seconds=manifest["seconds"], size=size, count=count)
    _write(places.LAST, json.dumps(last) + "\n", 0o600)
    os.makedirs(places.METRICS_FOLDER, exist_ok=True)
    _write(places.METRICS, metrics_text(declared["cluster"], declared["node"], last), 0o644)
    NodeFiles().link(declared["textfiles"], places.METRICS)


def _last() -> dict[str, Any]:
    try:
        with open(places.LAST, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _write(path: str, text: str, mode: int) -> None:
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        os.fchmod(file.fileno(), mode)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.rename(temporary, path)


def report(*, whole: bool) -> dict[str, Any]:
    """The contents of the place; `whole`: also read the files of the newest backup."""
    declared = settings()
    found: dict[str, Any] = {
        "place": declared["place"],
        "now": time.time(),
        "settings_changed": os.stat(places.SETTINGS).st_mtime,
        "last": _last(),
        "installation": installation(),
        "refused": None,
        "backups": [],
        "broken": [],
        "damage": [],
        "headers": {},
    }
    try:
        refuse_place(declared)
        there, found["broken"] = backups(declared["place"], declared["node"])
    except (Failure, FileNotFoundError) as error:
        found["refused"] = str(error)
        return found
    found["backups"] = [{**one.manifest, "name": one.name, "made": one.made} for one in there]
    mine = [one for one in there if one.installation == found["installation"]]
    if whole and mine:
        found["damage"] = damage(declared["place"], mine[0])
        found["headers"] = {
            part["name"]: recipients_in(_head(declared, mine[0], part)) for part in mine[0].manifest["parts"]
        }
    return found


def _head(declared: dict[str, Any], backup: Backup, part: dict[str, Any]) -> bytes:
    try:
        with open(os.path.join(declared["place"], backup.name, part["name"] + SUFFIX), "rb") as file:
            return file.read(_HEADER_MAX)
    except OSError:
        return b""


def recipients_in(head: bytes) -> int | None:
    """Number of X25519 recipients of an age file; None if it is not one.

    age-encryption.org/v1, "File format" and "X25519 recipient stanza": a line `-> X25519 ...` each, then `--- MAC`.
    """
    lines = head.split(b"\n")
    if lines[0] != b"age-encryption.org/v1" or not any(line.startswith(b"---") for line in lines):
        return None
    header = lines[: next(place for place, line in enumerate(lines) if line.startswith(b"---"))]
    return sum(line.startswith(b"-> X25519 ") for line in header)


def main(arguments: list[str]) -> int:
    """The program."""
    os.umask(0o077)
    mode = arguments[0] if arguments else ""
    try:
        if mode in ("--report", "--list"):
            print(json.dumps(report(whole=mode == "--report")))
            return 0
        if mode in ("", "--first", "--anew") and len(arguments) <= 1:
            return run(mode)
    except Failure as error:
        print(error, file=sys.stderr)
        return 1
    print(__doc__, file=sys.stderr)
    return 64


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
