"""Workers of the engine without their start: forked from a process that has loaded pyinfra and all roles.

For the runs that tests make in their own process (Site.here), hundreds of them: a worker's start costs 0.7
CPU-seconds. The program as a separate process starts its workers itself.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import IO, NoReturn, TextIO

REPO = Path(__file__).resolve().parents[2]


class Forked:
    """What the engine needs of subprocess.Popen."""

    def __init__(self, stdin: int, stdout: int, status: int) -> None:
        self.stdin: IO[str] = os.fdopen(stdin, "w")
        self.stdout: IO[str] = os.fdopen(stdout)
        self.returncode: int | None = None
        self._ended = threading.Event()
        threading.Thread(target=self._watch, args=(os.fdopen(status),), daemon=True).start()

    def _watch(self, status: TextIO) -> None:
        with status:
            self.pid = int(status.readline())
            self.returncode = int(status.readline() or "-9")
        self._ended.set()

    def poll(self) -> int | None:
        return self.returncode

    def wait(self, timeout: float | None = None) -> int | None:
        if not self._ended.wait(timeout):
            raise subprocess.TimeoutExpired("a forked worker", timeout or 0)
        return self.returncode

    def kill(self) -> None:
        os.kill(self.pid, 9)


def start_process(errors: TextIO) -> Forked:
    """In place of rackwright.engine.workers.start_process."""
    job_out, job_in = os.pipe()
    events_out, events_in = os.pipe()
    status_out, status_in = os.pipe()
    theirs = [job_out, events_in, errors.fileno(), status_in]
    socket.send_fds(_source(), [json.dumps({**os.environ, "PYINFRA_PROGRESS": "off"}).encode()], theirs)
    for one in (job_out, events_in, status_in):
        os.close(one)
    return Forked(job_in, events_out, status_out)


@cache
def _source() -> socket.socket:
    """A line to the process that has loaded everything; it ends when the line is closed."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    command = [sys.executable, "-m", __name__, str(theirs.fileno())]
    process = subprocess.Popen(command, pass_fds=[theirs.fileno()], cwd=REPO, start_new_session=True)
    theirs.close()
    atexit.register(lambda: (ours.close(), process.wait()))
    return ours


def _serve(line: socket.socket) -> None:
    """Fork a worker for each message; returns in the worker, with its pipes in place."""
    fork = os.fork  # gevent's would begin an event loop here
    _load()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nothing waits for a keeper
    while True:
        environment, pipes, _, _ = socket.recv_fds(line, 1 << 20, 4)
        if not environment:
            os._exit(0)
        if fork() == 0:
            line.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            *standard, status = pipes
            if (worker := fork()) != 0:
                _keep(worker, standard, status)
            os.close(status)
            for number, one in enumerate(standard):
                os.dup2(one, number)
                os.close(one)
            os.setsid()
            os.environ.clear()
            os.environ.update(json.loads(environment))
            return
        for one in pipes:
            os.close(one)


def _load() -> None:
    """What a worker loads, in its order: gevent's patches first."""
    import_module("rackwright.pyinfra_driver.worker")
    import_module("rackwright.pyinfra_driver.driver")
    for role in sorted((REPO / "roles").glob("*/deploy.py")):
        import_module(f"rackwright.roles.{role.parent.name}.deploy")


def _keep(worker: int, standard: list[int], status: int) -> NoReturn:
    """Report the process id of a worker, and how it ended."""
    for one in standard:
        os.close(one)
    os.write(status, f"{worker}\n".encode())
    _, ended = os.waitpid(worker, 0)
    os.write(status, f"{os.waitstatus_to_exitcode(ended)}\n".encode())
    os._exit(0)


if __name__ == "__main__":
    _serve(socket.socket(fileno=int(sys.argv[1])))
    sys.exit(import_module("rackwright.pyinfra_driver.worker").main())
