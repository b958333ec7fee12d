"""How a file lands: the one script that writes it, on a node or on this machine."""

from __future__ import annotations

import base64
from pathlib import PurePosixPath
from shlex import quote

# The new file is complete, synced and has its owner and mode before it takes the old one's name,
# so that neither a reader nor a power cut ever sees half of it. Content comes by stdin: it stands in
# no process list. It is read whole before anything is made, since a program that was killed sends half
# of it. Whoever is ended by a signal removes what it made (a lost connection is SIGPIPE at the next word
# of ours, and a shell that dies of it runs no EXIT trap); what a power cut left goes with the next
# attempt, told by its writer's number. /etc/hosts and the like may be a bind mount, which only takes a
# copy.
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
    """The shell command that puts a file in place as one step, and what it reads from stdin.

    + path: absolute; its folder must exist
    + validate: command with `%s` for the new file; it does not land when the command fails
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
