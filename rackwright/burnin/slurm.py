"""Jobs as a user would start them: `srun` on the primary head, over ssh.

srun and not sbatch, because a batch job's output lands on the first node of the job unless there
is a shared file system, and burn-in must work before there is one; srun streams it back to the
head, and its exit status is the job's. Should this process die, Slurm's own time limit ends the
job. Jobs are root's, under the account `burnin` that the slurm role declares: the ssh user has no
association, and AccountingStorageEnforce refuses jobs without one.
"""

from __future__ import annotations

import contextlib
import math
import re
import secrets
import shlex
import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from rackwright.command import CommandResult
from rackwright.errors import BurninError
from rackwright.model.ranges import fold
from rackwright.ssh import RootShell

ACCOUNT = "burnin"
START_SECONDS = 60
"""srun gives up when idle nodes are not given to it within this time."""
IDLE_SECONDS = 30
"""How long nodes may take to become idle: the job before may still be in its epilog."""

_PASSING = frozenset({"idle", "completing", "allocated", "mixed", "planned"})
"""States a node leaves by itself."""

_EXIT = re.compile(r"^# srun exit status (\d+)$", re.MULTILINE)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_FILTER = r"""
/NCCL INFO/ {
  if ($0 !~ /\[(send|receive)\] via NET|NCCL version/) next
  host = $1; sub(/:.*/, "", host)
  way = $0; sub(/.* \[/, "[", way)
  if (seen[host way]++) next
}
{ print; fflush() }
"""
"""NCCL_DEBUG=INFO of a thousand ranks is more than a connection should carry or anybody read: the
table and the warnings stay, and one line for each host and each way its data takes."""


@dataclass(frozen=True)
class Step:
    """One parallel program on some nodes."""

    nodes: tuple[str, ...]
    tasks_per_node: int
    command: tuple[str, ...]
    timeout_seconds: int
    partition: str | None = None
    cpus_per_task: int = 1
    gres: str | None = None
    environment: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Output:
    """What a step printed, and how it ended."""

    text: str
    exit_status: int | None
    """None: the output ends before it; 124: out of time."""

    @property
    def problem(self) -> str | None:
        """Why the step did not end well, with the last words of srun, or None."""
        if self.exit_status == 0:
            return None
        said = [line for line in self.text.splitlines() if "error" in line.lower() or "WARN" in line]
        last = f": {said[-1].strip()[:200]}" if said else ""
        if self.exit_status is None:
            return f"the job's output is broken off{last}"
        return f"srun exited {self.exit_status}{last}"


class Slurm:
    """Slurm as seen from the primary head."""

    def __init__(self, shell: RootShell, head: str) -> None:
        self._shell = shell
        self._head = head
        self._running: set[str] = set()

    def _ask(self, command: str) -> CommandResult:
        said = self._shell.run(self._head, command, timeout=60)
        if said.exit_status != 0:
            words = (said.stderr.strip() or said.stdout.strip() or "nothing").splitlines()[-1]
            raise BurninError(
                f"Slurm does not answer on {self._head}: `{command.split()[0]}` exited {said.exit_status} "
                f"saying: {words}",
                hint="rackwright verify --role slurm says more",
            )
        return said

    def version(self) -> str:
        """Slurm's version, e.g. `24.11.5`; BurninError when Slurm does not answer."""
        return self._ask("sinfo --version").stdout.split()[-1]  # Debian says slurm-wlm

    def states(self, nodes: tuple[str, ...]) -> dict[str, str]:
        """State of each node as sinfo prints it (`idle`, `down*`, ...); `not in Slurm` if unknown."""
        said = self._ask(f"sinfo --noheader --Node --format='%N %T' --nodes={shlex.quote(','.join(nodes))}")
        pairs = [line.split(None, 1) for line in said.stdout.splitlines() if line.strip()]
        found = {pair[0]: pair[1].strip() for pair in pairs if len(pair) == 2}
        return {node: found.get(node, "not in Slurm") for node in nodes}

    def not_idle(self, nodes: tuple[str, ...], patience_seconds: float = IDLE_SECONDS) -> dict[str, str]:
        """Nodes that do not become idle within the time, with the state they are in.

        Does not wait for a node whose state only an operator changes (down, drained, ...).
        """
        deadline = time.monotonic() + patience_seconds
        while True:
            busy = {node: state for node, state in self.states(nodes).items() if state != "idle"}
            passing = all(state.rstrip("*+~#!%$@^-") in _PASSING for state in busy.values())
            if not busy or not passing or time.monotonic() >= deadline:
                return busy
            time.sleep(min(2.0, max(deadline - time.monotonic(), 0.1)))

    def run(self, step: Step) -> Output:
        """Run a step to its end; on a timeout or Ctrl-C the job is cancelled."""
        name = f"rackwright-burnin-{secrets.token_hex(4)}"
        line = srun_line(step, name)
        self._running.add(name)
        try:
            # srun's own limit is the timeout; the rest is for starting and stopping
            said = self._shell.run(self._head, line, timeout=step.timeout_seconds + START_SECONDS + 60)
        except BaseException:
            self.cancel()
            raise
        ended = _EXIT.findall(said.stdout)
        if said.exit_status != 0 or not ended:
            self._cancel(name)
        self._running.discard(name)
        status = int(ended[-1]) if ended else (said.exit_status or None)
        return Output(_EXIT.sub("", said.stdout) + said.stderr, status)

    def cancel(self) -> None:
        """Cancel every job that is under way."""
        for name in sorted(self._running):
            self._cancel(name)

    def _cancel(self, name: str) -> None:
        # the first error is the one to report, and Slurm's time limit ends the job in any case
        with contextlib.suppress(Exception):
            self._shell.run(self._head, f"scancel --jobname={name} --user=root", timeout=30)
        self._running.discard(name)


def srun_line(step: Step, name: str) -> str:
    """The shell line that runs a step, filters what it prints and ends with its exit status."""
    for variable in step.environment:
        if not _VARIABLE.fullmatch(variable):
            raise BurninError(f"{variable!r} in burnin.nccl_env is no name of an environment variable.")
    options = [
        "srun",
        f"--job-name={name}",
        f"--account={ACCOUNT}",
        *([f"--partition={step.partition}"] if step.partition else []),
        f"--nodes={len(step.nodes)}",
        f"--nodelist={fold(step.nodes)}",
        f"--ntasks={len(step.nodes) * step.tasks_per_node}",
        f"--ntasks-per-node={step.tasks_per_node}",
        f"--cpus-per-task={step.cpus_per_task}",
        "--exclusive",
        "--mem=0",
        *([f"--gres={step.gres}"] if step.gres else []),
        "--mpi=pmix",
        f"--time={math.ceil(step.timeout_seconds / 60)}",
        f"--immediate={START_SECONDS}",
        "--chdir=/",
        "--input=none",
        "--kill-on-bad-exit=1",
        *step.command,
    ]
    environment = [f"{name}={value}" for name, value in sorted(step.environment.items())]
    words = shlex.join(["env", *environment, *options])
    # POSIX sh has no pipefail: the status travels as the last line
    return f'{{ {words}; echo "# srun exit status $?"; }} 2>&1 </dev/null | awk {shlex.quote(_FILTER)}'
