"""Programs run by the agent: always with a time limit, and errors that show what was said; and its console."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Sequence

SECONDS = 120.0
_SHOWN = 600
_START = time.monotonic()
ENVIRONMENT = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8"}


class AgentError(Exception):
    """What ended the agent's work, as a full sentence that the head is sent."""


def log(text: str) -> None:
    """One line on the console; nothing secret is ever written there."""
    sys.stdout.write(f"[rackwright {time.monotonic() - _START:6.1f}] {text}\n")
    sys.stdout.flush()


def run(
    argv: Sequence[str], *, seconds: float = SECONDS, stdin: str | None = None, check: bool = True
) -> str:
    """Run a program to its end and return its output; a failure is an AgentError that shows its last lines.

    Secrets reach a program by `stdin` alone, since arguments are shown and logged.
    """
    try:
        done = subprocess.run(
            argv,
            input="" if stdin is None else stdin,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=seconds,
            env=ENVIRONMENT,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise AgentError(f"{shlex.join(argv)} took more than {seconds:g} s") from None
    except OSError as error:
        raise AgentError(f"{argv[0]} cannot be run: {error.strerror}") from None
    if check and done.returncode != 0:
        said = (done.stderr.strip() or done.stdout.strip())[-_SHOWN:]
        raise AgentError(f"{shlex.join(argv)} failed with exit code {done.returncode}: {said}")
    return done.stdout


def read_text(path: str) -> str | None:
    """Content of a small file of the kernel's, without white space around it; None where it cannot be read."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return None


def link_name(path: str) -> str | None:
    """The last part of what a link points to, e.g. a driver's name; None where there is no link."""
    try:
        return os.path.basename(os.readlink(path))
    except OSError:
        return None
