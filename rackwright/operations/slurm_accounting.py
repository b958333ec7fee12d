"""Slurm's accounting entities through sacctmgr: the fewest commands from the current to the declared state."""

from __future__ import annotations

from collections.abc import Generator
from shlex import quote

from pyinfra.api.command import StringCommand
from pyinfra.api.exceptions import OperationError
from pyinfra.api.operation import operation
from pyinfra.context import host, state

from rackwright.facts.slurm import AccountingRecords
from rackwright.plan.changes import Change, record
from rackwright.workload.slurm.accounting import SacctmgrCommand, sacctmgr_commands
from rackwright.workload.slurm.records import Records, Unread, countable, limited_tres

# slurmdbd has just been started when this runs for the first time. A removal that Slurm refuses
# (running jobs) must not keep the rest from being done, but it is an error all the same.
_SCRIPT = """\
answer=
for try in $(seq {wait}); do
  answer=$(timeout 10 sacctmgr -nP show cluster format=cluster 2>&1) && break
  [ "$try" -lt {wait} ] || {{ echo "slurmdbd did not answer within {wait} s: $answer" >&2; exit 1; }}
  sleep 1
done
{counted}failed=0
run() {{
  out=$(timeout 60 sacctmgr -i "$@" 2>&1) && return
  echo "sacctmgr $*: $out" >&2; failed=1
}}
{commands}
exit $failed
"""

# slurmctld has just been started, and registers its TRES with slurmdbd a moment later.
_COUNTED = """\
for try in $(seq {wait}); do
  counted=$(timeout 10 sacctmgr -nP show tres format=type,name | tr '|' /)
  missing=
  for one in {tres}; do echo "$counted" | grep -qxF "$one" || missing="$missing $one"; done
  [ -n "$missing" ] || break
  [ "$try" -lt {wait} ] || {{ echo "slurmctld has not registered$missing within {wait} s" >&2; exit 1; }}
  sleep 1
done
"""


@operation()
def entities(
    cluster: str,
    declared: Records,
    prune: bool,
    counted: bool,
    wait_seconds: int = 60,
    local: bool = True,
    inside: str = "",
) -> Generator[StringCommand, None, None]:
    """QOS, accounts and users are as declared.

    + declared: all of them; the account and user `root` and the QOS `normal` always exist
    + prune: remove what is not declared
    + counted: slurmctld has been started, so that slurmdbd knows, or will know, every TRES that is limited;
      without that, limits on a TRES that slurmdbd does not know are left out
    + wait_seconds: how long slurmdbd may take to answer, and to know a TRES
    + local: it runs on this node
    + inside: shell words that run a program where sacctmgr is, such as `kubectl exec POD --`; empty: on this node
    """
    found: Records | Unread | None
    asked = {"cluster": cluster, "local": local, "inside": inside}
    if state.is_executing:  # slurmdbd may have been started a moment ago
        found = host.get_fact(AccountingRecords, patience=wait_seconds, **asked)
    else:
        found = host.get_fact(AccountingRecords, **asked)
        if (silence := _silence(found, counted=counted)) is not None:
            host.noop(silence)
            return
        if found is Unread.SILENT:
            record(Change("slurm", "accounting", "slurmdbd does not answer", "compared once it does"))
            yield StringCommand(":")
            return
    if isinstance(found, Unread):
        raise OperationError(f"slurmdbd is {found} and did not answer within {wait_seconds} s")
    is_ = found or Records()
    missing = limited_tres(declared) - is_.tres
    wanted = declared if counted else countable(declared, is_.tres)
    if counted and not state.is_executing:  # all else is in the plan already, before slurmctld
        is_ = countable(declared, is_.tres)
    needed = sacctmgr_commands(cluster, is_, wanted, prune=prune)
    if not needed:
        host.noop("accounting is as declared")
        return
    tres = sorted(missing) if counted else []
    script = _recorded(needed, tres, wait_seconds)
    yield StringCommand(f"{inside} sh -c {quote(script)}" if inside else script)


def _recorded(needed: list[SacctmgrCommand], tres: list[str], wait_seconds: int) -> str:
    """The script with these commands, each of them a change of the plan."""
    for command in needed:
        record(
            Change("slurm", command.target, command.before, command.after, disruptive=command.after is None)
        )
    lines = "\n".join(" ".join(["run", *map(quote, command.arguments)]) for command in needed)
    counted = _COUNTED.format(wait=wait_seconds, tres=" ".join(map(quote, tres))) if tres else ""
    return _SCRIPT.format(wait=wait_seconds, counted=counted, commands=lines)


def _silence(found: Records | Unread | None, *, counted: bool) -> str | None:
    """Why nothing is planned for records that cannot be read now."""
    if found is Unread.STOPPED:  # its start is in the plan, and apply compares after it
        return "slurmdbd does not run: compared once it does"
    return "slurmdbd does not answer: compared before" if found is Unread.SILENT and counted else None
