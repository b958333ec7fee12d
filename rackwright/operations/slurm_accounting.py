"""Slurm's accounting entities through sacctmgr: the least commands from what is to what should be."""

from __future__ import annotations

from collections.abc import Generator
from shlex import quote

from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.api.operation import operation
from pyinfra.context import host, state

from rackwright.facts.slurm import AccountingRecords
from rackwright.plan.changes import Change, record
from rackwright.workload.slurm.accounting import sacctmgr_commands
from rackwright.workload.slurm.records import Records, Unread

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
    cluster: str, declared: Records, prune: bool, wait_seconds: int = 60, local: bool = True
) -> Generator[StringCommand, None, None]:
    """QOS, accounts and users are as declared.

    + declared: all of them; the account and user `root` and the QOS `normal` always exist
    + prune: remove what is not declared
    + wait_seconds: how long slurmdbd may take to answer
    + local: it runs on this node
    """
    found: Records | Unread | None
    if state.is_executing:  # slurmdbd may have been started a moment ago
        found = host.get_fact(AccountingRecords, cluster=cluster, patience=wait_seconds, local=local)
    else:
        found = host.get_fact(AccountingRecords, cluster=cluster, local=local)
        if found is Unread.STOPPED:  # its start is in the plan, and apply compares after it
            host.noop("slurmdbd does not run: compared once it does")
            return
        if found is Unread.SILENT:
            record(Change("slurm", "accounting", "slurmdbd does not answer", "compared once it does"))
            yield StringCommand(":")
            return
    if isinstance(found, Unread):
        raise OperationError(f"slurmdbd is {found} and could not be asked within {wait_seconds} s")
    needed = sacctmgr_commands(cluster, found or Records(), declared, prune=prune)
    if not needed:
        host.noop("accounting is as declared")
        return
    for command in needed:
        record(
            Change("slurm", command.target, command.before, command.after, disruptive=command.after is None)
        )
    script = "\n".join(" ".join(["run", *map(quote, command.arguments)]) for command in needed)
    yield StringCommand(_SCRIPT.format(wait=wait_seconds, commands=script))
