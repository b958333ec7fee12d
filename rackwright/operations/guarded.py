"""Changes that could cut a node off: the node arms a rollback before anything is changed.

The node keeps the old files, installs and activates the new ones, and rolls back unless the change is confirmed in
time; after a power cut it restores at boot, before the network. The change runs under systemd, so that the connection
it was asked over may end. Only a new connection that works confirms it (rackwright.operations.confirming).
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Generator, Mapping
from shlex import quote

from pyinfra.api.command import FunctionCommand, StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.api.operation import operation
from pyinfra.context import host

from rackwright.atomic_write import write_command
from rackwright.data import site_of
from rackwright.facts import rollback
from rackwright.facts.files import AtPath, PathState
from rackwright.facts.settings import Answer
from rackwright.operations.confirming import Armed, confirm
from rackwright.plan.changes import Change, record, text_diff
from rackwright.render import render

PROGRAM = "/usr/local/sbin/rackwright-rollback"
UNIT = "/etc/systemd/system/rackwright-rollback.service"
OWNER = "root"
_PATH = re.compile(r"(/[^/\s]+){2,}")
_KEY = re.compile(r"[a-z][a-z0-9-]{0,30}")


@operation()
def change(
    key: str,
    files: Mapping[str, str | None],
    activate: str,
    live: tuple[str, str] | None = None,
    probe: str | None = None,
    check: str | None = None,
    seconds: int = 60,
    mode: str = "644",
    disruptive: bool = False,
) -> Generator[StringCommand | FunctionCommand, None, None]:
    """Files and what puts them in force, undone by the node itself unless a new connection confirms it in time.

    + key: what is armed on the node, e.g. "network"; one change at a time for each key
    + files: absolute path without spaces to the whole text, root's; None: it is to be absent
    + activate: shell that puts the files in force. A rollback runs it again with the old files. It finds
      RACKWRIGHT_SAVED (a folder of this change, where it may keep what no file holds) and RACKWRIGHT_ROLLBACK (yes, no)
    + live: shell that reads the live state, and what it prints where that is as declared
    + probe: shell run on the node over the new connection until it succeeds or the time is nearly over
    + check: shell run before anything changes; %s is a folder with the new files below it by their whole path
      (`nft -c -f %s/etc/nftables.conf`); nothing is changed where it fails
    + seconds: the node restores itself unless confirmed within these, times `ssh.time_factor`
    + disruptive: what goes over the network is interrupted
    """
    _refuse(key, files)
    unconfirmed: str | None = host.get_fact(Answer, read=rollback.pending(key))
    changes = [found for path, text in files.items() if (found := _difference(path, text, mode, disruptive))]
    if live is not None:
        read, want = live
        there: str | None = host.get_fact(Answer, read=read)
        if there != want:
            changes.append(Change("setting", f"{key} in force", there, want, disruptive=disruptive))
    if (
        unconfirmed in rollback.PENDING
    ):  # what an interrupted run left is put back by the node: it is not the state to keep
        changes.append(
            Change("setting", f"unconfirmed change of {key}", unconfirmed, "confirmed", disruptive=disruptive)
        )
    if not changes:
        host.noop(f"{key} is as declared")
        return
    record(*changes)
    yield from _program()
    factor = site_of().cluster.ssh.time_factor
    limit = seconds * factor
    yield StringCommand(f"{PROGRAM} change {key} {limit}", _stdin=_payload(files, activate, check, mode))
    yield FunctionCommand(confirm, (Armed(key, limit, tuple(files), PROGRAM, probe, 60 * factor),), {})


def _refuse(key: str, files: Mapping[str, str | None]) -> None:
    """A key or path that the node's program could not read back."""
    if not _KEY.fullmatch(key):
        raise OperationError(f"{key!r} cannot name a guarded change")
    for path in files:
        if not _PATH.fullmatch(path) or "/../" in f"{path}/":
            raise OperationError(f"{path!r} is not an absolute path without spaces")


def _difference(path: str, text: str | None, mode: str, disruptive: bool) -> Change | None:
    state: PathState = host.get_fact(AtPath, path=path)
    if state.kind == "directory":
        raise OperationError(f"{path} is a directory on the node; remove it by hand if it may go")
    before = None if state.kind == "absent" else f"{state.kind} {state.mode} {state.owner}:{state.group}"
    if text is None:
        if state.kind == "absent":
            return None
        return Change(
            "file", path, before, None, diff=text_diff(path, state.text, None), disruptive=disruptive
        )
    same_text = state.kind == "file" and state.sha256 == hashlib.sha256(text.encode()).hexdigest()
    if same_text and (state.mode, state.owner, state.group) == (mode, OWNER, OWNER):
        return None
    diff = () if same_text else text_diff(path, state.text if state.kind == "file" else None, text)
    after = f"file {mode} {OWNER}:{OWNER}"
    return Change("file", path, before, after, diff=diff, disruptive=disruptive, content=text)


def _program() -> Generator[StringCommand, None, None]:
    """The node's program, and its unit, which puts back at boot."""
    for path, text, access in _own_files():
        script, stdin = write_command(path, text.encode(), mode=access, owner=OWNER, group=OWNER)
        yield StringCommand(script, _stdin=stdin)
    yield StringCommand(f"systemctl daemon-reload && systemctl --quiet enable {UNIT.rpartition('/')[2]}")


def _own_files() -> tuple[tuple[str, str, str], ...]:
    """Path, text and mode of the node's program and of its unit for boot."""
    names = {"folder": quote(rollback.FOLDER), "program": quote(PROGRAM)}
    return (
        (PROGRAM, render("guarded/rackwright-rollback.j2", **names), "755"),
        (UNIT, render("guarded/rackwright-rollback.service.j2", **names), "644"),
    )


def _payload(files: Mapping[str, str | None], activate: str, check: str | None, mode: str) -> str:
    """What the node's program reads: one line for each thing; `end` shows that all of it arrived."""
    lines = [
        f"absent {path}" if text is None else f"file {mode} {path} {_packed(text)}"
        for path, text in files.items()
    ]
    lines.append(f"activate {_packed(activate)}")
    if check is not None:
        lines.append("check " + _packed(check.replace("%s", '"$1"')))
    return "\n".join([*lines, "end", ""])


def _packed(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
