"""rackwright as a separate process: started, observed, interrupted, waited for."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Ran:
    """One finished command."""

    status: int
    out: str
    err: str
    seconds: float

    def json(self) -> Any:
        return json.loads(self.out)

    def __str__(self) -> str:
        return f"exit status {self.status}\n--- stdout\n{self.out[-6000:]}\n--- stderr\n{self.err[-3000:]}"


class Running:
    """A command of the program that has not ended yet."""

    def __init__(
        self,
        arguments: tuple[str, ...],
        outputs: tuple[Path, Path],
        folder: Path,
        environment: dict[str, str],
        stdin: str | None = "",
    ) -> None:
        """`outputs`: files for what it writes to stdout and stderr; `stdin` None: a terminal, for `type`."""
        self._began = time.monotonic()
        self._paths = outputs
        self._keyboard, terminal = pty.openpty() if stdin is None else (None, subprocess.PIPE)
        with self._paths[0].open("w") as out, self._paths[1].open("w") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "rackwright", *arguments],
                stdin=terminal,
                stdout=out,
                stderr=err,
                cwd=folder,
                env=environment,
            )
        if stdin is None:
            os.close(terminal)
            return
        assert self.process.stdin is not None
        with suppress(BrokenPipeError):
            self.process.stdin.write(stdin.encode())
            self.process.stdin.close()

    def type(self, line: str) -> None:
        """A line, as an operator types it."""
        assert self._keyboard is not None
        os.write(self._keyboard, f"{line}\n".encode())

    def workers(self) -> list[int]:
        """Process ids of what it started."""
        try:
            children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        except OSError:
            return []  # it has ended
        return [int(pid) for pid in children.split()]

    @staticmethod
    def is_worker(pid: int) -> bool:
        try:
            return b"rackwright.pyinfra_driver.worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            return False

    def kill(self, *, workers: bool) -> None:
        """kill -9 of the program, or of everything it started as well."""
        for pid in self.workers() if workers else []:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.process.kill()

    def said(self) -> str:
        """What it has written to stderr so far."""
        return self._paths[1].read_text()

    def printed(self) -> str:
        """What it has written to stdout so far."""
        return self._paths[0].read_text()

    def wait(self, timeout: float = 1800) -> Ran:
        """Its result; a program that does not end is killed, and the test fails."""
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"no end within {timeout} s: {self._paths[0].read_text()[-4000:]}") from None
        seconds = time.monotonic() - self._began
        if self._keyboard is not None:
            os.close(self._keyboard)
            self._keyboard = None
        return Ran(status, self._paths[0].read_text(), self._paths[1].read_text(), seconds)
