"""What roles claim of the extra lines in their files, where no check compares the whole file."""

from __future__ import annotations

from collections.abc import Sequence

from rackwright.claims.check import CheckContext, fail
from rackwright.claims.files import text_of
from rackwright.extra_lines import lines_in
from rackwright.model.options import RoleOptions


def in_place(context: CheckContext[RoleOptions], path: str, lines: Sequence[str]) -> str:
    """The marked block of a file holds exactly these lines; FAIL names the first that is missing or too many."""
    found = lines_in(text_of(context, path))
    if missing := [line for line in lines if line not in found]:
        fail(f"{path} lacks the extra line {missing[0]!r}")
    if other := [line for line in found if line not in lines]:
        fail(f"{path} has the extra line {other[0]!r}, which is not declared")
    if found != tuple(lines):
        fail(f"{path} has the extra lines in another order")
    return f"{len(found)} extra lines in {path}"
