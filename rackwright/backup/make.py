"""Making one backup: each part through gzip and age into a file, then the manifest, then the name. Standard library only."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
import time
from typing import IO, Any

from rackwright.backup import archive, places
from rackwright.backup.catalogue import MANIFEST, SUFFIX, digest_of, is_of, kept, name_of

PARTIAL = ".rackwright-partial-"
GONE = ".rackwright-gone-"
_TRIES = 3
_ERROR_MAX = 300
_READY_SECONDS = 60


class Failure(Exception):  # noqa: N818 - a result, not an error class
    """The backup could not be made; the text is the reason."""


def make(settings: dict[str, Any], installation: str, now: float) -> dict[str, Any]:
    """Make a backup in the place; returns its manifest with its name. Failure leaves nothing that looks like a backup."""
    place, name = settings["place"], name_of(settings["node"], now)
    if os.path.lexists(os.path.join(place, name)):
        raise Failure(f"{place}/{name} exists already")
    partial = os.path.join(place, PARTIAL + name)
    os.mkdir(partial, 0o700)
    try:
        manifest = {
            "version": 1,
            "name": name,
            "cluster": settings["cluster"],
            "node": settings["node"],
            "installation": installation,
            "recipients": settings["recipients"],
            "parts": [_part(part, partial) for part in settings["parts"]],
            "seconds": 0.0,
        }
        manifest["seconds"] = round(time.time() - now, 1)
        _write(os.path.join(partial, MANIFEST), json.dumps(manifest, indent=1, sort_keys=True) + "\n")
        _sync(partial)
        os.rename(partial, os.path.join(place, name))
        _sync(place)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    return manifest


def _part(part: dict[str, Any], folder: str) -> dict[str, Any]:
    path = os.path.join(folder, part["name"] + SUFFIX)
    for attempt in range(1, _TRIES + 1):
        try:
            _encrypt(part, path)
            break
        except Failure:
            if attempt == _TRIES:
                raise
            time.sleep(1)
    size, digest = digest_of(path)
    return {"name": part["name"], "about": part["about"], "size": size, "sha256": digest}


def _encrypt(part: dict[str, Any], path: str) -> None:
    """Write the part through gzip and age into a new file, on disk when this returns; nothing is stored unencrypted."""
    with open(path, "wb") as out, tempfile.TemporaryFile() as errors, contextlib.ExitStack() as stack:
        # -o with a file could leave a partial one; the recipients are public keys
        age = _started(stack, ["age", "--encrypt", "-R", places.RECIPIENTS], out, errors)
        gzip = _started(stack, ["gzip", "-c"], age.stdin, errors)
        if age.stdin is not None:
            age.stdin.close()  # only gzip has it: age sees the end when gzip exits
        why = _produce(part, gzip, errors)
        ends = [("gzip", gzip.wait()), ("age", age.wait())][
            ::-1
        ]  # if age stops reading, the programs before it end too
        why = next((f"{program} exited {status}" for program, status in ends if status), why)
        if why is not None:
            raise Failure(f"{part['about']} was not backed up: {why}{_said(errors)}")
        out.flush()
        os.fsync(out.fileno())


def _started(
    stack: contextlib.ExitStack, command: list[str], out: IO[bytes] | None, errors: IO[bytes]
) -> subprocess.Popen[bytes]:
    try:
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=errors)
    except OSError as error:
        raise Failure(f"cannot start {command[0]}: {error.strerror}") from None
    stack.callback(_end, process)
    return process


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()  # first: closing its input flushes the buffer, which it may never read
        process.wait()
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()


def _produce(part: dict[str, Any], gzip: subprocess.Popen[bytes], errors: IO[bytes]) -> str | None:
    """Write the part to gzip's input and close that; why it is incomplete, or None."""
    into = gzip.stdin
    if into is None:
        return "gzip has no input"
    try:
        why = _not_ready(part, errors)
        if why is None and part["folder"] is not None:
            archive.write(part["folder"], into)
            why = _not_ready(
                part, errors
            )  # if unmounted in the meantime, its files would appear to be removed
        elif why is None:
            status = subprocess.run(
                ["sh", "-c", part["dump"]], stdin=subprocess.DEVNULL, stdout=into, stderr=errors, check=False
            ).returncode
            why = f"its command exited {status}" if status else None
    except OSError as error:
        why = str(error)
    with contextlib.suppress(OSError):
        into.close()
    return why


def _not_ready(part: dict[str, Any], errors: IO[bytes]) -> str | None:
    """Why the part must not be read, or None: an empty mount point could pass for the state that is mounted there."""
    try:
        status = subprocess.run(
            ["sh", "-c", part["ready"]],
            stdin=subprocess.DEVNULL,
            stdout=errors,
            stderr=errors,
            timeout=_READY_SECONDS,
            check=False,
        ).returncode
    except subprocess.TimeoutExpired:
        return f"`{part['ready']}` did not finish within {_READY_SECONDS} s"
    return f"`{part['ready']}` exited {status}" if status else None


def _said(errors: IO[bytes]) -> str:
    errors.seek(0)
    lines = errors.read()[-4096:].decode(errors="replace").strip().splitlines()
    return f": {lines[-1][:_ERROR_MAX]}" if lines else ""


def prune(settings: dict[str, Any], names: list[str]) -> list[str]:
    """Remove backups that are no longer kept, and leftovers of interrupted runs; returns the names of the former."""
    place = settings["place"]
    gone = sorted(set(names) - kept(names, settings["keep"], settings["keep_weekly"]))
    for name in gone:  # rename first: half of a backup must not look complete
        os.rename(os.path.join(place, name), os.path.join(place, GONE + name))
    sweep(settings)
    return gone


def sweep(settings: dict[str, Any]) -> None:
    """Remove leftovers of interrupted runs of this node in the place; no other run may be active."""
    place = settings["place"]
    for left in os.listdir(place):
        name = left.removeprefix(GONE).removeprefix(PARTIAL)
        if name != left and is_of(name, settings["node"]):
            shutil.rmtree(os.path.join(place, left), ignore_errors=True)


def _write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: str) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
