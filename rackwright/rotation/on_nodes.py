"""A key that all nodes share: staged next to the old one everywhere, then switched on all nodes at once.

munged reads its key when it starts and knows one at a time (munged(8)), so nodes with different keys refuse each
other's credentials. What Slurm sends meanwhile fails and is tried again; the shorter the switch, the less.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from shlex import quote

from rackwright.atomic_write import write_command
from rackwright.boundary import last_line
from rackwright.errors import ConnectionFailed
from rackwright.model.interfaces import SharedKey
from rackwright.ssh import RootShell

_SIDE_BY_SIDE = 256
_STAGE_SECONDS = 60.0
_SWITCH_SECONDS = 90.0
_STAGED = ".next"
_NAMED_MAX = 3

# Safe to repeat. The time of the new file is that of the switch, so that a node that is killed before the restart is
# found by the next apply: the key is newer than the unit's start.
_SWITCH = """\
set -eu
key={key} next={next}
holds() {{ [ -f "$1" ] && [ "$(sha256sum <"$1" | cut -d' ' -f1)" = {digest} ]; }}
if holds "$key"; then rm -f "$next"
elif holds "$next"; then touch "$next"; mv -fT "$next" "$key"
else echo "the new key is not on this node" >&2; exit 1; fi
systemctl restart {unit}
systemctl is-active --quiet {unit}
"""

Failures = dict[str, str]
"""Why a step failed, by node."""


def stage(shell: RootShell, keys: dict[str, SharedKey]) -> Failures:
    """Write every node's new key beside the one in use, which stays."""

    def staged(node: str) -> str | None:
        key = keys[node]
        script, stdin = write_command(
            key.path + _STAGED, key.content, mode=key.mode, owner=key.owner, group=key.owner
        )
        return _run(shell, node, script, stdin, _STAGE_SECONDS)

    return _each(staged, keys)


def unstage(shell: RootShell, keys: dict[str, SharedKey]) -> Failures:
    """Remove what was staged."""

    def removed(node: str) -> str | None:
        return _run(shell, node, f"rm -f {quote(keys[node].path + _STAGED)}", None, _STAGE_SECONDS)

    return _each(removed, keys)


def switch(shell: RootShell, keys: dict[str, SharedKey]) -> Failures:
    """Move the staged keys into place and restart what reads them, on all nodes side by side."""

    def switched(node: str) -> str | None:
        key = keys[node]
        script = _SWITCH.format(
            key=quote(key.path),
            next=quote(key.path + _STAGED),
            digest=hashlib.sha256(key.content).hexdigest(),
            unit=quote(key.unit),
        )
        return _run(shell, node, script, None, _SWITCH_SECONDS)

    return _each(switched, keys)


def reasons(failures: Failures) -> str:
    """The first of them, for a message."""
    first = [why if node in why else f"{node}: {why}" for node, why in list(failures.items())[:_NAMED_MAX]]
    more = len(failures) - len(first)
    return "; ".join(first) + (f" (and {more} more)" if more else "")


def _run(shell: RootShell, node: str, script: str, stdin: str | None, timeout: float) -> str | None:
    try:
        done = shell.run(node, script, stdin=stdin, timeout=timeout)
    except ConnectionFailed as error:
        return error.message.rstrip(".")
    return None if done.exit_status == 0 else last_line(done.stdout, done.stderr)


def _each(step: Callable[[str], str | None], nodes: Iterable[str]) -> Failures:
    names = list(nodes)
    with ThreadPoolExecutor(max(1, min(_SIDE_BY_SIDE, len(names)))) as pool:
        found = dict(zip(names, pool.map(step, names), strict=True))
    return {name: why for name, why in found.items() if why is not None}
