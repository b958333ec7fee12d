"""What roles claim of files, read with the fact that the deploy acts on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from rackwright.claims.check import CheckContext, Undetermined, fail
from rackwright.facts.files import AtPath, PathState
from rackwright.model.options import RoleOptions


def as_rendered(context: CheckContext[RoleOptions], files: Mapping[str, str]) -> str:
    """Every file holds exactly this text; fails with the first line that should not be there."""
    for path, wanted in files.items():
        found = _file(context, path)
        if found.text is None:
            fail(f"{path} is not a text of at most 1 MiB")
        if found.text != wanted:
            wrong = [line for line in found.text.splitlines() if line not in wanted.splitlines()]
            fail(f"{path} is not as declared: {wrong[0].strip() if wrong else 'lines are missing'}")
    return ", ".join(files)


def holds_secret_text(context: CheckContext[RoleOptions], path: str, wanted: str | bytes) -> str:
    """A file holds this text, compared by digest: neither text ever stands in a report."""
    found = _file(context, path, digest_only=True)
    content = wanted.encode() if isinstance(wanted, str) else wanted
    if found.sha256 != hashlib.sha256(content).hexdigest():
        fail(f"{path} is not as declared")
    return path


def has_access(context: CheckContext[RoleOptions], path: str, mode: str, owner: str, group: str) -> str:
    """What stands at a path has this mode (octal, no leading zero), owner and group."""
    found = at_path(context, path, digest_only=True)
    if found.kind == "absent":
        fail(f"{path} is missing")
    access, wanted = f"{found.mode} {found.owner}:{found.group}", f"{mode} {owner}:{group}"
    if access != wanted:
        fail(f"{path} is {access}, not {wanted}")
    return f"{path} is {access}"


def links_to(context: CheckContext[RoleOptions], path: str, target: str) -> str:
    """A symbolic link stands at a path, with exactly this target."""
    found = at_path(context, path)
    if found.kind == "absent":
        fail(f"{path} is missing")
    if found.kind != "link":
        fail(f"{path} is not a link but a {found.kind}")
    if found.target != target:
        fail(f"{path} is a link to {found.target}, not to {target}")
    return path


def text_of(context: CheckContext[RoleOptions], path: str) -> str:
    """The text of a file of at most 1 MiB, for a claim about its lines."""
    found = at_path(context, path)
    if found.kind == "absent":
        fail(f"{path} is missing")
    return fail(f"{path} is not a text file of at most 1 MiB") if found.text is None else found.text


def at_path(context: CheckContext[RoleOptions], path: str, *, digest_only: bool = False) -> PathState:
    """What stands at a path."""
    return context.fact(AtPath, path, digest_only=digest_only)


def _file(context: CheckContext[RoleOptions], path: str, *, digest_only: bool = False) -> PathState:
    found = at_path(context, path, digest_only=digest_only)
    if found.kind == "absent":
        fail(f"{path} is missing")
    if found.kind == "link":
        raise Undetermined(f"{path} is a link to {found.target}")
    if found.kind != "file":
        fail(f"{path} is not a file but a {found.kind}")
    return found
