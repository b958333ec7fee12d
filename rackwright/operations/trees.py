"""Directories with exactly the declared files, compared and written as a whole: for code that a node runs."""

from __future__ import annotations

import base64
import re
from collections.abc import Generator
from pathlib import PurePosixPath
from shlex import quote

from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.api.operation import operation
from pyinfra.context import host

from rackwright.data import site_of
from rackwright.facts.files import OTHER, Tree, declared_tree, tree_differences
from rackwright.plan.changes import Change, record

_NAME = re.compile(r"\w[\w.-]*(/\w[\w.-]*)*", re.ASCII)
_NAMED_MAX = 5

# The new directory is complete and synced before it takes the old one's name; for content, signals and leftovers
# see the script of rackwright.atomic_write. No tool that every release has exchanges two directories in one step,
# so one that is replaced is missing for a moment.
_SCRIPT = """\
set -eu
umask 022
p={path}; new={new}
[ -d {folder} ] || {{ echo "the folder of $p does not exist" >&2; exit 1; }}
content=$(cat)
[ ${{#content}} = {size} ] || {{ echo "the content of $p did not arrive whole" >&2; exit 1; }}
for old in "$new"*; do [ -e "/proc/${{old##*-}}" ] || rm -rf "$old"; done
t=$new$$
trap 'rm -rf "$t"' EXIT
trap 'exit 1' HUP INT PIPE TERM
mkdir "$t" "$t/new"
printf '%s\n' "$content" | while read -r name data; do
  mkdir -p "$t/new/$(dirname "$name")"
  printf %s "$data" | base64 -d >"$t/new/$name"
done
chown -R {owner} "$t/new"
find "$t/new" -type f -exec sync {{}} + 2>/dev/null || :
[ ! -e "$p" ] || mv -T "$p" "$t/old"
mv -T "$t/new" "$p"
! command -v restorecon >/dev/null || restorecon -R "$p"
"""


@operation()
def tree(
    path: str, files: dict[str, str], owner: str = "root", group: str = "root"
) -> Generator[StringCommand, None, None]:
    """A directory with these files and no others, all of mode 644, its directories 755.

    What Python keeps in `__pycache__` below it is left alone, and goes when the directory is replaced.

    + path: absolute; its folder must exist
    + files: text by relative name
    """
    bad = [name for name in files if not _NAME.fullmatch(name)]
    if bad:
        raise OperationError(f"{path}: not a relative name of plain characters: {', '.join(bad)}")
    access = f"{owner}:{group}"
    there: tuple[str, ...] = host.get_fact(Tree, path=path)
    wanted = declared_tree(files, access)
    if there == OTHER:
        raise OperationError(f"{path} is not a directory on the node; remove it by hand if it may go")
    if there == wanted:
        host.noop(f"{path} is as declared")
        return
    wrong = tree_differences(there, wanted)
    more = f" and {len(wrong) - _NAMED_MAX} more" if wrong[_NAMED_MAX:] else ""
    before = ", ".join(wrong[:_NAMED_MAX]) + more if there else None
    record(Change("directory", path, before, f"directory with {len(files)} files, 644 {access}"))
    if site_of().offline:  # for `rackwright render`
        record(
            *(
                Change("file", f"{path}/{name}", None, f"file 644 {access}", content=text)
                for name, text in files.items()
            )
        )
    stdin = "".join(f"{name} {base64.b64encode(text.encode()).decode()}\n" for name, text in files.items())
    at = PurePosixPath(path)
    yield StringCommand(
        _SCRIPT.format(
            path=quote(path),
            folder=quote(str(at.parent)),
            new=quote(str(at.with_name(f".{at.name}.rackwright-"))),
            size=len(stdin) - 1,  # the shell drops the last newline
            owner=quote(access),
        ),
        _stdin=stdin,
    )
