"""Files, directories and links: compared whole, written in one round trip, replaced atomically."""

from __future__ import annotations

import hashlib
from collections.abc import Generator
from pathlib import PurePosixPath
from shlex import quote

from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.api.operation import operation
from pyinfra.context import host

from rackwright.atomic_write import write_command
from rackwright.data import site_of
from rackwright.extra_lines import change_of
from rackwright.facts.files import AtPath, PathState
from rackwright.plan.changes import MASK, Change, record, text_diff


def _described(state: PathState) -> str | None:
    if state.kind == "absent":
        return None
    if state.kind == "link":
        return f"link to {state.target}"
    return f"{state.kind} {state.mode} {state.owner}:{state.group}"


def _has(state: PathState, marker: str) -> bool:
    return state.text is not None and marker in state.text


def _octal(mode: str) -> str:
    return mode.lstrip("0") or "0"


@operation()
def file(
    path: str,
    content: str,
    mode: str = "644",
    owner: str = "root",
    group: str = "root",
    sensitive: bool = False,
    validate: str | None = None,
    marker: str | None = None,
) -> Generator[StringCommand, None, None]:
    """A file with exactly this text, mode and owner.

    + path: absolute; its folder must exist
    + sensitive: the content is compared by digest only and shown nowhere
    + validate: command with `%s` for the new file; it does not land when the command fails
    + marker: text in every version of the file that rackwright wrote; one without it is refused, not replaced; not with `sensitive`
    """
    state: PathState = host.get_fact(AtPath, path=path, digest_only=sensitive)
    if state.kind == "directory":
        raise OperationError(f"{path} is a directory on the node; remove it by hand if it may go")
    if marker is not None and state.kind != "absent" and not _has(state, marker):
        raise OperationError(f"{path} was not written by rackwright; move it away by hand if it may go")
    wanted = content.encode()
    same_text = state.kind == "file" and state.sha256 == hashlib.sha256(wanted).hexdigest()
    same_access = (state.mode, state.owner, state.group) == (_octal(mode), owner, group)
    if same_text and same_access:
        host.noop(f"{path} is as declared")
        return
    after = f"file {_octal(mode)} {owner}:{group}"
    record(_file_change(path, state, content, after, same_text, sensitive), of_access=same_text)
    if same_text:
        yield StringCommand(
            f"chown {quote(f'{owner}:{group}')} {quote(path)} && chmod {quote(mode)} {quote(path)}"
        )
        return
    script, stdin = write_command(path, wanted, mode=mode, owner=owner, group=group, validate=validate)
    yield StringCommand(script, _stdin=stdin)


def _file_change(
    path: str, state: PathState, content: str, after: str, same_text: bool, sensitive: bool
) -> Change:
    before = _described(state)
    if sensitive:
        suffix = "" if same_text else f", content {MASK}"
        # Offline the secrets in it are placeholders, so it may be shown whole.
        return Change("file", path, before, after + suffix, content=content if site_of().offline else None)
    if state.kind == "file" and not same_text and state.text is None:
        before = f"{before}, {state.size} bytes, sha256 {(state.sha256 or '')[:12]}"
        digest = hashlib.sha256(content.encode()).hexdigest()
        return Change(
            "file",
            path,
            before,
            f"{after}, {len(content.encode())} bytes, sha256 {digest[:12]}",
            content=content,
        )
    diff = () if same_text else text_diff(path, state.text if state.kind == "file" else None, content)
    because = change_of(state.text if state.kind == "file" else None, content)
    return Change("file", path, before, after, diff=diff, because=because, content=content)


@operation()
def directory(
    path: str, mode: str = "755", owner: str = "root", group: str = "root"
) -> Generator[StringCommand, None, None]:
    """A directory with this mode and owner; missing parents are made with mode 755."""
    state: PathState = host.get_fact(AtPath, path=path)
    if state.kind not in ("absent", "directory"):
        raise OperationError(f"{path} is a {state.kind} on the node, and should be a directory")
    if state.kind == "directory" and (state.mode, state.owner, state.group) == (_octal(mode), owner, group):
        host.noop(f"{path} is as declared")
        return
    change = Change("directory", path, _described(state), f"directory {_octal(mode)} {owner}:{group}")
    record(change, of_access=state.kind == "directory")
    target = quote(path)
    yield StringCommand(
        f"mkdir -p {target} && chown {quote(f'{owner}:{group}')} {target} && chmod {quote(mode)} {target}"
    )


@operation()
def link(path: str, target: str) -> Generator[StringCommand, None, None]:
    """A symbolic link to `target`."""
    state: PathState = host.get_fact(AtPath, path=path)
    if state.kind == "directory":
        raise OperationError(f"{path} is a directory on the node; remove it by hand if it may go")
    if state.kind == "link" and state.target == target:
        host.noop(f"{path} is as declared")
        return
    record(Change("link", path, _described(state), f"link to {target}"))
    # A new link takes the name in one step; `ln -sf` would leave a moment without any.
    temporary = quote(f"{path}.rackwright-new")
    yield StringCommand(f"ln -sfn {quote(target)} {temporary} && mv -fT {temporary} {quote(path)}")


@operation()
def absent(path: str, marker: str | None = None) -> Generator[StringCommand, None, None]:
    """Nothing at this path: no file, no link, no directory tree.

    + marker: text in every version of the file that rackwright wrote; what lacks it stays
    """
    if len(PurePosixPath(path).parts) < 3:
        raise OperationError(f"refusing to remove {path}: a path directly below / is never ours")
    state: PathState = host.get_fact(AtPath, path=path)
    if state.kind == "absent":
        host.noop(f"{path} is absent")
        return
    if marker is not None and not _has(state, marker):
        host.noop(f"{path} was not written by rackwright")
        return
    diff = text_diff(path, state.text, None) if state.kind == "file" else ()
    kind = "file" if state.kind == "other" else state.kind  # a socket, a pipe
    record(Change(kind, path, _described(state), None, diff=diff))
    yield StringCommand(f"rm -rf -- {quote(path)}")
