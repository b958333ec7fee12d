"""Slurm's accounting entities through sacctmgr: the least commands from what is to what should be."""

from __future__ import annotations

from collections.abc import Generator
from shlex import quote

from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.api.operation import operation
from pyinfra.context import host, state

from rackwright.facts.slurm import AccountingBooks, Books, Unread
from rackwright.plan.changes import Change, record
from rackwright.workload.slurm.accounting import steps

# slurmdbd has just been started when this runs for the first time. A removal that Slurm refuses
# (running jobs) must not keep the rest from being done, but it is an error all the same.
_SCRIPT = """\
answer=
for try in $(seq {wait}); do
  answer=$(timeout 10 sacctmgr -nP show cluster format=cluster 2>&1) && break
  [ "$try" -lt {wait} ] || {{ echo "slurmdbd did not answer within {wait} s: $answer" >&2; exit 1; }}
  sleep 1
done
failed=0
run() {{
  out=$(timeout 60 sacctmgr -i "$@" 2>&1) && return
  echo "sacctmgr $*: $out" >&2; failed=1
}}
{commands}
exit $failed
"""


@operation()
def entities(
    cluster: str, wanted: Books, prune: bool, wait_seconds: int = 60
) -> Generator[StringCommand, None, None]:
    """QOS, accounts and users are as declared.

    + wanted: all of them; the account and user `root` and the QOS `normal` always exist
    + prune: remove what is not wanted
    + wait_seconds: how long slurmdbd may take to answer
    """
    there: Books | Unread | None
    if state.is_executing:  # slurmdbd may have been started a moment ago
        there = host.get_fact(AccountingBooks, cluster=cluster, patience=wait_seconds)
    else:
        there = host.get_fact(AccountingBooks, cluster=cluster)
        if there is Unread.STOPPED:  # its start is in the plan, and apply compares after it
            host.noop("slurmdbd does not run: compared once it does")
            return
        if there is Unread.SILENT:
            record(Change("slurm", "accounting", "slurmdbd does not answer", "compared once it does"))
            yield StringCommand(":")
            return
    if isinstance(there, Unread):
        raise OperationError(f"slurmdbd is {there} and could not be asked within {wait_seconds} s")
    to_do = steps(cluster, there or Books(), wanted, prune=prune)
    if not to_do:
        host.noop("accounting is as declared")
        return
    for step in to_do:
        record(Change("slurm", step.target, step.before, step.after, disruptive=step.after is None))
    commands = "\n".join(" ".join(["run", *map(quote, step.arguments)]) for step in to_do)
    yield StringCommand(_SCRIPT.format(wait=wait_seconds, commands=commands))
