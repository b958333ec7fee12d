"""The MUNGE key: a binary secret, which `files.file` (text) cannot write."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Generator

from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.api.operation import operation
from pyinfra.context import host

from rackwright.atomic_write import write_command
from rackwright.data import site_of
from rackwright.facts.files import AtPath, PathState
from rackwright.plan.changes import MASK, Change, record

KEY_BYTES = (32, 1024)
"""The least and the most munged takes."""


def decoded(encoded: str) -> bytes:
    """The key's bytes; OperationError if the secret is not base64 or has a length that munged rejects."""
    try:
        key = base64.b64decode(encoded, validate=True)
    except binascii.Error as error:
        raise OperationError("the secret munge_key is not base64") from error
    least, most = KEY_BYTES
    if not least <= len(key) <= most:
        raise OperationError(f"the secret munge_key has {len(key)} bytes; munged accepts {least} to {most}")
    return key


@operation()
def key(
    path: str, encoded: str, owner: str = "munge", group: str = "munge"
) -> Generator[StringCommand, None, None]:
    """The key file holds exactly these bytes, readable by its owner alone.

    + path: absolute; its folder must exist
    + encoded: the key as base64; compared by digest and shown nowhere
    """
    wanted_access = f"file 400 {owner}:{group}"
    offline = site_of().offline  # then it is a placeholder, and may be shown
    wanted = encoded.encode() if offline else decoded(encoded)
    state: PathState = host.get_fact(AtPath, path=path, digest_only=True)
    same_key = state.kind == "file" and state.sha256 == hashlib.sha256(wanted).hexdigest()
    if same_key and (state.mode, state.owner, state.group) == ("400", owner, group):
        host.noop(f"{path} is as declared")
        return
    if state.kind not in ("file", "absent"):
        raise OperationError(f"{path} is a {state.kind} on the node; remove it by hand if it may go")
    before = None if state.kind == "absent" else f"file {state.mode} {state.owner}:{state.group}"
    after = wanted_access + ("" if same_key else f", content {MASK}")
    record(Change("file", path, before, after, content=encoded if offline else None))
    script, stdin = write_command(path, wanted, mode="400", owner=owner, group=group)
    yield StringCommand(script, _stdin=stdin)
