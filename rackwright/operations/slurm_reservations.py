"""Slurm's reservations through scontrol: the fewest commands from the current to the declared state."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from shlex import quote

from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.api.operation import operation
from pyinfra.context import host, state

from rackwright.facts.slurm import ReservationsFound
from rackwright.plan.changes import Change, record
from rackwright.workload.slurm.records import Unread
from rackwright.workload.slurm.reservations import Found, Reservation, scontrol_commands

# One that slurmctld refuses (nodes at work) must not keep the others from being made, but it is an error.
_SCRIPT = """\
failed=0
run() {{
  out=$(timeout 60 scontrol "$@" 2>&1) && return
  echo "scontrol $*: $out" >&2; failed=1
}}
{commands}
exit $failed
"""


@operation()
def reservations(
    declared: Mapping[str, Reservation], prune: bool, wait_seconds: int = 60
) -> Generator[StringCommand, None, None]:
    """Reservations are as declared; those that are over are left out.

    + prune: delete what is not declared
    + wait_seconds: how long slurmctld may take to answer
    """
    found: Found | Unread | None
    if state.is_executing:  # slurmctld may have been started a moment ago
        found = host.get_fact(ReservationsFound, patience=wait_seconds)
        if not isinstance(found, Found):
            raise OperationError(f"slurmctld is {found or 'missing'} and cannot list its reservations")
    else:
        found = host.get_fact(ReservationsFound)
        if found is Unread.SILENT:
            record(Change("slurm", "reservations", "slurmctld does not answer", "compared once it does"))
            yield StringCommand(":")
            return
        if not isinstance(found, Found):  # its start is in the plan, and apply compares after it
            host.noop("slurmctld does not run: compared once it does")
            return
    needed = scontrol_commands(found, declared, prune=prune)
    if not needed:
        host.noop("reservations are as declared")
        return
    for command in needed:
        record(
            Change("slurm", command.target, command.before, command.after, disruptive=command.after is None)
        )
    script = "\n".join(" ".join(["run", *map(quote, command.arguments)]) for command in needed)
    yield StringCommand(_SCRIPT.format(commands=script))
