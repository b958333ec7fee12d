"""Questions that the checks ask on a node, and what their answers mean."""

from __future__ import annotations

from rackwright.claims.check import Undetermined

# The secrets go from their files into grep's stdin, and into no argument.
IN_COMMAND_LINES = """\
set -u
for file in $1; do
  [ -r "$file" ] || { echo "$file cannot be read" >&2; exit 2; }
  s=$(sed 's/^--redis_password=//' "$file")
  [ -n "$s" ] || { echo "$file is empty" >&2; exit 2; }
  for line in /proc/[0-9]*/cmdline; do
    if printf '%s\\n' "$s" | tr -d '\\000' | grep -qsFf - "$line"; then
      p=${line%/cmdline}; cat "$p/comm"; exit 1
    fi
  done
done
echo clean
"""


def job_answer(text: str) -> str:
    """The last line of what a program printed: Ray's libraries print before it."""
    lines = text.strip().splitlines()
    if not lines:
        raise Undetermined("the program printed nothing")
    return lines[-1]
