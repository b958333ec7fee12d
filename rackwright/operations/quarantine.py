"""Takes things away from a node without destroying the evidence."""

from __future__ import annotations

from shlex import quote

from pyinfra.api.command import StringCommand

from rackwright.atomic_write import write_command
from rackwright.facts.traces import QUARANTINE

# Access is taken away from the copy: a setuid program that is kept must not run for anyone.
KEEP = f"""\
set -eu
(umask 022; mkdir -p {QUARANTINE}); chmod 700 {QUARANTINE}
kept=$(mktemp -d {QUARANTINE}/$(date -u +%Y%m%dT%H%M%SZ)-XXXXXX)
keep() {{
  (umask 077; mkdir -p "$kept${{1%/*}}")
  cp -a -- "$1" "$kept$1"
  [ -L "$kept$1" ] || chmod ug-s,go-rwx "$kept$1"  # a user may have exchanged the original meanwhile
}}
"""


# chmod follows links; what is opened cannot be exchanged any more, and the kernel knows its true path (proc(5),
# /proc/pid/fd, read 2026-11-23). Another name of the same file may be a program that needs its bits.
_LOWER = """\
set -eu
lower() {
  exec 3<"$2"
  [ "$(readlink /proc/self/fd/3)" = "$2" ] || { echo "$2 is reached through a link" >&2; exit 1; }
  [ "$1" = d ] || { [ -f /proc/self/fd/3 ] && [ "$(stat -L -c %h /proc/self/fd/3)" = 1 ]; } ||
    { echo "$2 is not a file with one name; find its other names with find / -xdev -samefile" >&2; exit 1; }
  chmod "$3" /proc/self/fd/3
}
"""


def take_bits(*loose: tuple[str, str, str]) -> StringCommand:
    """Changes modes of (kind, path, change) in this order; never of what a link leads to. Kinds: d, f."""
    steps = "".join(f"lower {kind} {quote(path)} {quote(change)}\n" for kind, path, change in loose)
    return StringCommand(f"timeout 60 sh -c {quote(_LOWER + steps)}")


def take_away(*paths: str) -> StringCommand:
    """Moves these files and links into the quarantine."""
    steps = "".join(f"keep {quote(path)}\nrm -f -- {quote(path)}\n" for path in paths)
    return StringCommand(KEEP + steps)


def rewrite(
    path: str, text: str, *, mode: str, user: str = "root", validate: str | None = None
) -> StringCommand:
    """Rewrites a file; the previous content is in the quarantine.

    `user`: who writes it. In a folder of a user's, root would follow links that the user places.
    `validate`: a command with `%s` for the new file.
    """
    script, stdin = write_command(
        path, text.encode(errors="surrogateescape"), mode=mode, owner=user, group="", validate=validate
    )
    if user != "root":
        script = f"runuser -u {quote(user)} -- sh -c {quote(script)}"
    return StringCommand(f"{KEEP}keep {quote(path)}\n{script}", _stdin=stdin)
