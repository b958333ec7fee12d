"""Claims about files, read with the fact that the deploy acts on."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping

from rackwright.claims.check import CheckContext, fail
from rackwright.facts.files import AtPath, PathState, Tree, declared_tree, tree_differences
from rackwright.model.options import RoleOptions

_NAMED_MAX = 5


def as_rendered(
    context: CheckContext[RoleOptions],
    files: Mapping[str, str | None],
    modes: Mapping[str, str] | None = None,
) -> str:
    """Each file is owned by root and has exactly this text, or does not exist if the text is None; FAIL names all differences.

    `modes`: octal modes of files whose mode is not 644.
    """
    access = modes or {}
    differences = (
        _difference(context, path, wanted, f"{access.get(path, '644')} root:root")
        for path, wanted in files.items()
    )
    if wrong := [difference for difference in differences if difference is not None]:
        fail("; ".join(wrong))
    return ", ".join(path for path, wanted in files.items() if wanted is not None)


def holds_secret_text(context: CheckContext[RoleOptions], path: str, wanted: str | bytes) -> str:
    """A file has this text, compared by digest so that no report shows either text."""
    if wrong := _digest_difference(path, at_path(context, path, digest_only=True), wanted):
        fail(wrong)
    return path


def holds_only(context: CheckContext[RoleOptions], folder: str, files: Mapping[str, str]) -> str:
    """A directory tree matches what `trees.tree` writes for these files; FAIL names the first differences."""
    wrong = tree_differences(context.fact(Tree, folder, may_be_empty=True), declared_tree(files))
    if wrong:
        more = f"; and {len(wrong) - _NAMED_MAX} more" if wrong[_NAMED_MAX:] else ""
        fail(f"in {folder}: {'; '.join(wrong[:_NAMED_MAX])}{more}")
    return f"{len(files)} files in {folder}"


def has_access(context: CheckContext[RoleOptions], path: str, mode: str, owner: str, group: str) -> str:
    """A path has this mode (octal, no leading zero), owner and group."""
    found = at_path(context, path, digest_only=True)
    if found.kind == "absent":
        fail(f"{path} is missing")
    access, wanted = f"{found.mode} {found.owner}:{found.group}", f"{mode} {owner}:{group}"
    if access != wanted:
        fail(f"{path} is {access}, not {wanted}")
    return f"{path} is {access}"


def links_to(context: CheckContext[RoleOptions], path: str, target: str) -> str:
    """A path is a symbolic link with exactly this target."""
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
    """The state of a path."""
    return context.fact(AtPath, path, digest_only=digest_only)


def _difference(context: CheckContext[RoleOptions], path: str, wanted: str | None, access: str) -> str | None:
    """How a path differs from its declared text, mode and owner. The text is only read if the digest differs."""
    state = at_path(context, path, digest_only=True)
    if wanted is None:
        return None if state.kind == "absent" else f"{path} exists but is not declared"
    wrong = _digest_difference(path, state, wanted)
    if wrong is None:
        found = f"{state.mode} {state.owner}:{state.group}"
        return None if found == access else f"{path} is {found}, not {access}"
    if state.kind != "file":
        return wrong
    text = at_path(context, path).text
    if text is None:
        return f"{wrong}: not a text file of at most 1 MiB"
    strange = [line.strip() for line in text.splitlines() if line not in wanted.splitlines()]
    return f"{wrong}: {strange[0] if strange else 'lines are missing or in another order'}"


def _digest_difference(path: str, state: PathState, wanted: str | bytes) -> str | None:
    if state.kind == "absent":
        return f"{path} is missing"
    if state.kind == "link":
        return f"{path} is a link to {state.target}, not a file"
    if state.kind != "file":
        return f"{path} is not a file but a {state.kind}"
    content = wanted.encode() if isinstance(wanted, str) else wanted
    return None if state.sha256 == hashlib.sha256(content).hexdigest() else f"{path} is not as declared"
