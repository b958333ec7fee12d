"""A setting with a command to read it and one to write it."""

from __future__ import annotations

from collections.abc import Generator

from pyinfra.api.command import StringCommand
from pyinfra.api.operation import operation
from pyinfra.context import host

from rackwright.facts.settings import Answer
from rackwright.plan.changes import Change, record, waits_for_reboot


@operation()
def setting(
    target: str,
    read: str,
    want: str,
    write: str,
    because: str | None = None,
    disruptive: bool = False,
    after_reboot: bool = False,
) -> Generator[StringCommand, None, None]:
    """`read` prints `want`; where it does not, `write` is run.

    + target: what the plan calls it, e.g. "hostname"
    + read, write: shell commands; values in them are quoted by the caller
    + after_reboot: while a reboot is due it cannot be written, and waits for it
    """
    there: str | None = host.get_fact(Answer, read=read)
    if there == want:
        host.noop(f"{target} is {want}")
        return
    if after_reboot and waits_for_reboot(host):
        host.noop(f"{target} waits for the reboot")
        return
    record(Change("setting", target, there, want, because=because, disruptive=disruptive))
    yield StringCommand(write)
