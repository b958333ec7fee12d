"""Runs a workload manager's tools on a node, with a deadline. Standard library only, Python 3.9: runs on nodes."""

from __future__ import annotations

import subprocess

from rackwright.boundary import last_line
from rackwright.workload.states import NoAnswer

SECONDS = 15.0


def run(arguments: list[str]) -> str:
    """What a command prints; NoAnswer when it fails or takes too long."""
    name = " ".join([word for word in arguments if not word.startswith("--")][:3])
    try:
        done = subprocess.run(
            arguments, stdin=subprocess.DEVNULL, capture_output=True, timeout=SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise NoAnswer(f"`{name}` gave no answer within {SECONDS:.0f} s") from None
    except OSError as error:
        raise NoAnswer(f"`{name}`: {error.strerror}") from None
    if done.returncode != 0:
        printed = last_line(done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))
        raise NoAnswer(f"`{name}` exited {done.returncode}: {printed}")
    return done.stdout.decode("utf-8", "replace")
