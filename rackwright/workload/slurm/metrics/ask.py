"""Slurm's tools, each with a deadline and a limit on what it may print."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Sequence

from rackwright.boundary import last_line
from rackwright.workload.states import NoAnswer

MAX_BYTES = 256 * 2**20
"""Of what one tool prints."""
ENVIRONMENT = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LC_ALL": "C.UTF-8",
    "TZ": "UTC",  # of the times that tools print
    "SLURM_TIME_FORMAT": "standard",
    "SLURM_BITSTR_LEN": "0",  # squeue(1): task lists of arrays whole, not their first 64 characters
}
_CHUNK = 2**18

Ask = Callable[["Sequence[str]"], str]
"""What a command of Slurm prints; NoAnswer where it fails."""


def asked(command: Sequence[str], seconds: float, limit: int = MAX_BYTES) -> str:
    """What a command prints; NoAnswer when it fails, takes too long or prints too much."""
    name = " ".join([command[0], *(word for word in command[1:] if word.isalpha())])
    deadline = time.monotonic() + seconds
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=ENVIRONMENT,
            start_new_session=True,
        )
    except OSError as error:
        raise NoAnswer(f"`{name}`: {error.strerror}") from None
    try:
        out, err = _printed(process, deadline, limit, name)
        status = process.wait(max(0.0, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        raise NoAnswer(f"`{name}` gave no answer within {seconds:g} s") from None
    finally:
        _end(process)
    text = out.decode("utf-8", "replace")
    if status != 0:
        raise NoAnswer(f"`{name}` exited {status}: {last_line(text[-4096:], err.decode('utf-8', 'replace'))}")
    return text


def _printed(process: subprocess.Popen[bytes], deadline: float, limit: int, name: str) -> tuple[bytes, bytes]:
    """stdout and stderr until both are closed; TimeoutExpired past the deadline."""
    streams: dict[int, list[bytes]] = {}
    left = limit
    with selectors.DefaultSelector() as selector:
        for stream in filter(None, (process.stdout, process.stderr)):
            streams[stream.fileno()] = []
            selector.register(stream.fileno(), selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise subprocess.TimeoutExpired(name, 0)
            for key, _ in ready:
                chunk = os.read(key.fd, _CHUNK)
                left -= len(chunk)
                if left < 0:
                    raise NoAnswer(f"`{name}` printed more than {limit >> 20} MiB")
                if chunk:
                    streams[key.fd].append(chunk)
                else:
                    selector.unregister(key.fd)
    out, err = streams.values()
    return b"".join(out), b"".join(err)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the command and its children if they still run."""
    if process.poll() is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    for stream in filter(None, (process.stdout, process.stderr)):
        stream.close()
