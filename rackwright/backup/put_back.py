"""Restores parts of a backup on this node, one step at a time. Standard library only, Python 3.9 or newer.

It gets a step as JSON in its only argument. Each step can be repeated after an interruption.

    state    print what an interrupted restore left, as JSON
    begin    record the restore, keep units from starting, stop them, record that they are stopped
    part     read a part from stdin, verify its digest, restore it
    end      record that everything is restored, let the units start again
    done     forget the restore, and continue the installation that made the backup
"""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from typing import IO, Any, cast

from rackwright.backup import archive, places

_CHUNK = 1 << 20
_STOP_SECONDS = 300
_GUARD = (
    "# Written by rackwright restore, which removes it when it ends.\n[Unit]\nConditionPathExists=!{path}\n"
)


class Failure(Exception):  # noqa: N818 - a result, not an error class
    """The step failed; the text is the reason."""


def state() -> dict[str, Any]:
    """What an interrupted restore left; empty if there is none."""
    try:
        with open(places.UNFINISHED, encoding="utf-8") as file:
            found: dict[str, Any] = json.load(file)
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise Failure(f"cannot read {places.UNFINISHED}: {error}") from None
    return found


def begin(step: dict[str, Any]) -> None:
    """From here on the units cannot start, neither by themselves nor at boot."""
    _mark(run=step["run"])
    for unit in step["units"]:
        path = places.GUARD.format(unit=unit)
        if not os.path.isdir(os.path.dirname(path)):
            os.mkdir(os.path.dirname(path))
            os.chmod(os.path.dirname(path), 0o755)
        _write(path, _GUARD.format(path=places.UNFINISHED))
        os.chmod(path, 0o644)
    _systemctl("daemon-reload")
    for unit in reversed(step["units"]):
        _systemctl("stop", unit)
    _mark(run=step["run"], stopped=True)


def _mark(**left: Any) -> None:  # noqa: ANN401 - JSON data
    _write(places.UNFINISHED, json.dumps(left) + "\n")


def part(step: dict[str, Any], stream: IO[bytes]) -> str:
    """Buffer the part until it is complete: half of it would be worse than nothing."""
    declared = step["part"]
    spool = os.path.join(places.RESTORE, declared["name"] + ".gz")
    try:
        _receive(spool, step["size"], step["sha256"], stream)
        with gzip.open(spool, "rb") as unpacked:
            content = cast("IO[bytes]", unpacked)
            if declared["folder"] is not None:
                try:
                    return f"{archive.put_back(declared['folder'], content)} files"
                except archive.Unsafe as error:
                    raise Failure(str(error)) from None
            return _load(declared["load"], content)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(spool)


def _receive(spool: str, size: int, sha256: str, stream: IO[bytes]) -> None:
    left, digest = size, hashlib.sha256()
    with open(spool, "wb") as file:
        while left and (chunk := stream.read(min(left, _CHUNK))):
            file.write(chunk)
            digest.update(chunk)
            left -= len(chunk)
    if left or digest.hexdigest() != sha256:
        raise Failure(f"the part arrived incomplete: {left} of {size} bytes are missing")


def _load(command: str, content: IO[bytes]) -> str:
    with subprocess.Popen(
        ["sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    ) as process:
        size = 0
        if process.stdin is not None:
            with contextlib.suppress(BrokenPipeError):  # its exit status shows why
                while chunk := content.read(_CHUNK):
                    process.stdin.write(chunk)
                    size += len(chunk)
        said, _ = process.communicate()
    if process.returncode:
        lines = said[-4096:].decode(errors="replace").strip().splitlines()
        raise Failure(
            f"loading exited {process.returncode}: {lines[-1][:300] if lines else 'nothing was printed'}"
        )
    return f"{size} bytes"


def end(step: dict[str, Any]) -> None:
    """The state is complete: from here on the units may start."""
    left = state()
    if left:  # first: once a unit can start, what is here may be newer than the backup
        _mark(run=left.get("run"), ended=True)
    for unit in step["units"]:
        path = places.GUARD.format(unit=unit)
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path)
        with contextlib.suppress(OSError):  # it may contain other files
            os.rmdir(os.path.dirname(path))
    _systemctl("daemon-reload")


def done(step: dict[str, Any]) -> None:
    """The node is the one that was backed up: its timer continues that one's backups."""
    if step["installation"] is not None:
        os.makedirs(places.STATE, mode=0o700, exist_ok=True)
        _write(places.INSTALLATION, step["installation"] + "\n")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(places.UNFINISHED)


def _systemctl(*arguments: str) -> None:
    ran = subprocess.run(
        ["systemctl", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=_STOP_SECONDS,
        check=False,
    )
    if ran.returncode:
        lines = ran.stderr.decode(errors="replace").strip().splitlines()
        raise Failure(
            f"systemctl {' '.join(arguments)} exited {ran.returncode}: {lines[-1] if lines else ''}"
        )


def _write(path: str, text: str) -> None:
    temporary = f"{path}.{os.getpid()}"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.rename(temporary, path)


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    os.makedirs(places.RESTORE, mode=0o700, exist_ok=True)
    with open(places.RESTORE_LOCK, "a", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Failure("an earlier restore step is still running here: wait until it ends") from None
        for name in os.listdir(places.RESTORE):  # left by a killed step
            if name.endswith(".gz"):
                os.unlink(os.path.join(places.RESTORE, name))
        yield


def main(arguments: list[str]) -> int:
    """The program: one step."""
    os.umask(0o077)
    step = json.loads(arguments[0])
    try:
        with _alone():
            if step["step"] == "state":
                print(json.dumps(state()))
            elif step["step"] == "part":
                print(part(step, sys.stdin.buffer))
            else:
                {"begin": begin, "end": end, "done": done}[step["step"]](step)
    except (Failure, OSError, EOFError, shutil.Error, subprocess.SubprocessError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
