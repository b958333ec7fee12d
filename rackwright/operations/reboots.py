"""Settings that take effect only after a reboot: compared with the live node, never applied by the operation itself."""

from __future__ import annotations

from collections.abc import Generator

from pyinfra.api.command import StringCommand
from pyinfra.api.operation import operation
from pyinfra.context import host

from rackwright.facts.settings import Answer
from rackwright.plan.changes import Change, record


@operation()
def due(target: str, read: str, want: str) -> Generator[StringCommand, None, None]:
    """The live node prints `want`; if it does not, the plan shows that the node needs a reboot.

    It yields no command: `rackwright apply --reboot` reboots a node once, after all that is to be there at boot is.

    + target: what the plan calls it, e.g. "running kernel"
    + read: shell command that reads the live value; values in it are quoted by the caller
    """
    there: str | None = host.get_fact(Answer, read=read)
    if there == want:
        host.noop(f"{target} is {want}")
        return
    record(Change("reboot", target, there, want, disruptive=True))
    yield from ()
