"""Atomic writes: a function for files of this machine, and a shell command for files of a node."""

from __future__ import annotations

import base64
import contextlib
import os
import tempfile
from pathlib import Path, PurePosixPath
from shlex import quote

# The new file is complete, synced and has its owner and mode before it takes the old one's name,
# so that neither a reader nor a power cut ever leaves half of it. Content comes on stdin, so that it
# appears in no process list, and is read whole before a file is made: a sender that is killed sends half
# of it. A shell that a signal ends removes its file (a lost connection is a SIGPIPE, on which no EXIT
# trap runs); the file of a power cut is removed by the next attempt, which finds its writer's process
# gone. /etc/hosts and the like may be bind mounts, which can only be copied to.
_SCRIPT = """\
set -eu
umask 077
p={path}; d={folder}; new={new}
[ -d "$d" ] || {{ echo "the folder $d does not exist" >&2; exit 1; }}
content=$(cat)
[ ${{#content}} = {size} ] || {{ echo "the content of $p did not arrive whole" >&2; exit 1; }}
for old in "$new"*; do [ -e "/proc/${{old##*-}}" ] || rm -f "$old"; done
t=$new$$
trap 'rm -f "$t"' EXIT
trap 'exit 1' HUP INT PIPE TERM
printf %s "$content" | (set -C; base64 -d >"$t")
chown {owner} "$t"; chmod {mode} "$t"
{validate}
sync "$t" 2>/dev/null || :
mv -fT "$t" "$p" 2>/dev/null || cat "$t" >"$p"
! command -v restorecon >/dev/null || restorecon "$p"
"""


def write_command(
    path: str, content: bytes, *, mode: str, owner: str, group: str, validate: str | None = None
) -> tuple[str, str]:
    """The shell command that replaces a file atomically, and what it reads from stdin.

    + path: absolute; its folder must exist
    + validate: command with `%s` for the new file; the old file stays when the command fails
    """
    encoded = base64.b64encode(content).decode()
    at = PurePosixPath(path)
    script = _SCRIPT.format(
        path=quote(path),
        folder=quote(str(at.parent)),
        new=quote(str(at.with_name(f".{at.name}.rackwright-"))),
        size=len(encoded),
        owner=quote(f"{owner}:{group}"),
        mode=quote(mode),
        validate=validate.replace("%s", '"$t"') if validate else ":",
    )
    return script, encoded


def write_atomically(
    path: Path, content: str | bytes, *, mode: int = 0o600, durable: bool = True, exclusive: bool = False
) -> None:
    """Replace a file of this machine so that no reader ever sees half of it. Raises OSError; the old one then stays.

    + mode: of the new file, set before it takes the name
    + durable: also survive a power cut; not needed for what the next run writes anew
    + exclusive: FileExistsError instead of replacing a file
    """
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
            stream.flush()
            os.fchmod(descriptor, mode)
            if durable:
                os.fsync(descriptor)
        if exclusive:
            os.link(temporary, path)
        else:
            os.replace(temporary, path)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
    if durable:
        sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Write a folder to the disk: after a power cut, a new file is there only if its folder names it."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
