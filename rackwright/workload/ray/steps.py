"""Runs steps as drivers of Ray, which start their tasks or actors themselves."""

from __future__ import annotations

import contextlib
import json
import secrets
import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rackwright.errors import WorkloadError
from rackwright.render import render
from rackwright.workload.exit_line import ExitLine
from rackwright.workload.protocol import JobStep, Output

if TYPE_CHECKING:
    from rackwright.ssh import RootShell

WITH_RAY = "/usr/lib/rackwright-ray/with-ray"
START_SECONDS = 60
"""For a driver to start and to join the cluster."""
_EXIT = ExitLine("Ray's driver")


class Steps:
    """The steps of one manager, on the head."""

    def __init__(self, head: str, shell: RootShell, time_factor: int) -> None:
        self._head, self._shell, self._factor = head, shell, time_factor
        self._running: set[str] = set()

    def run(self, step: JobStep) -> Output:
        """See rackwright.workload.protocol.Manager."""
        if step.start == "mpi":
            raise WorkloadError(
                "Ray starts no MPI program, so the benchmark of storage cannot run through it.",
                hint="run it before these nodes get `workload: ray`, with Slurm",
            )
        arguments = step.command if step.start == "driver" else ("-c", self._each(step))
        name = f"rackwright-{step.purpose}-{secrets.token_hex(4)}"
        seconds = step.timeout_seconds + START_SECONDS * self._factor
        line = driver_line(step, arguments, name, seconds)
        self._running.add(name)
        try:
            result = self._shell.run(self._head, line, timeout=seconds + 60)
        except BaseException:
            self.cancel()
            raise
        if _EXIT.status(result.stdout) is None:
            self._cancel(name)
        self._running.discard(name)
        return _EXIT.output(result)

    def cancel(self) -> None:
        """By name."""
        for name in sorted(self._running):
            self._cancel(name)

    def _cancel(self, name: str) -> None:
        # the first error is the one to report, and `timeout` ends the driver in any case
        with contextlib.suppress(Exception):
            self._shell.run(self._head, f"pkill -TERM -f '[r]{name[1:]}'", timeout=30)
        self._running.discard(name)

    def _each(self, step: JobStep) -> str:
        return render(
            "ray_step/each.py.j2",
            nodes=json.dumps(step.nodes),
            tasks=step.tasks_per_node,
            command=json.dumps(step.command),
            start_seconds=START_SECONDS * self._factor,
            seconds=step.timeout_seconds,
        )


def driver_line(step: JobStep, arguments: Sequence[str], name: str, seconds: int) -> str:
    """The shell line that runs a driver, filters its output and ends with its exit status.

    Its name is the last argument: it is found by that, and by nothing else.
    """
    environment = f"RACKWRIGHT_STEP_ENVIRONMENT={json.dumps(dict(sorted(step.environment.items())))}"
    words = shlex.join(["env", environment, "timeout", "-k", "10", str(seconds), WITH_RAY, *arguments, name])
    return _EXIT.shell_line(words, step.output_filter)
