"""The srun line of a step, as a user would start it, on the primary head.

srun and not sbatch, because a batch job's output lands on the first node of the job unless there is a
shared file system, and burn-in must work before there is one; srun streams it back to the head, and its
exit status is the job's. Should rackwright die, Slurm's own time limit ends the job. Jobs are root's, under
an account that the slurm role declares: the ssh user has no association, and AccountingStorageEnforce
refuses jobs without one.
"""

from __future__ import annotations

import math
import re
import shlex

from rackwright.command import CommandResult
from rackwright.errors import WorkloadError
from rackwright.model.ranges import fold
from rackwright.workload.exit_line import ExitLine
from rackwright.workload.protocol import JobStep, Output

ACCOUNT = "burnin"
"""Account of the acceptance runs, which root submits; every partition takes it."""
START_SECONDS = 60
"""srun gives up when idle nodes are not given to it within this time."""

_EXIT = ExitLine("srun")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def srun_line(step: JobStep, name: str, gres: str | None) -> str:
    """The shell line that runs a step as job `name`, filters its output and ends with its exit status."""
    for variable in step.environment:
        if not _VARIABLE.fullmatch(variable):
            raise WorkloadError(f"{variable!r} is not a valid name of an environment variable.")
    options = [
        "srun",
        f"--job-name={name}",
        f"--account={ACCOUNT}",
        *([f"--partition={step.queue}"] if step.queue else []),
        f"--nodes={len(step.nodes)}",
        f"--nodelist={fold(step.nodes)}",
        f"--ntasks={len(step.nodes) * step.tasks_per_node}",
        f"--ntasks-per-node={step.tasks_per_node}",
        f"--cpus-per-task={step.cpus_per_task}",
        "--exclusive",
        "--mem=0",
        *([f"--gres={gres}"] if gres else []),
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
    return _EXIT.shell_line(words, step.output_filter)


def srun_output(result: CommandResult) -> Output:
    """What that line printed, without its last line."""
    return _EXIT.output(result)


def ended_by_itself(result: CommandResult) -> bool:
    """Whether srun came to its end, so that no job of it is left."""
    return result.exit_status == 0 and _EXIT.status(result.stdout) is not None
