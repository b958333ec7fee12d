"""Runs the agent's programs with a time limit, with errors that include their output; and logs to the console."""

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
    """What ended the agent's work, as a full sentence for the head."""


def log(text: str) -> None:
    """One line on the console; never contains secrets."""
    sys.stdout.write(f"[rackwright {time.monotonic() - _START:6.1f}] {text}\n")
    sys.stdout.flush()


def run(
    argv: Sequence[str], *, seconds: float = SECONDS, stdin: str | None = None, check: bool = True
) -> str:
    """Run a program to completion and return its output; AgentError with its last lines if it fails.

    Pass secrets only by `stdin`, because arguments are visible and logged.
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
        raise AgentError(f"cannot run {argv[0]}: {error.strerror}") from None
    if check and done.returncode != 0:
        reply = (done.stderr.strip() or done.stdout.strip())[-_SHOWN:]
        raise AgentError(f"{shlex.join(argv)} failed with exit code {done.returncode}: {reply}")
    return done.stdout


def read_text(path: str) -> str | None:
    """Content of a small kernel file without surrounding white space; None if it is unreadable."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().strip()
    except OSError:
        return None


def link_name(path: str) -> str | None:
    """Last component of a link's target, e.g. a driver's name; None if the link is missing."""
    try:
        return os.path.basename(os.readlink(path))
    except OSError:
        return None
