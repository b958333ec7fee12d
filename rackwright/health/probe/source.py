"""Access to the node's files and tools, with a deadline and a reason for each failure."""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import subprocess
import threading
import time
from typing import Any

TEXT_LIMIT = 8 << 20
KILL_GRACE_SECONDS = 0.2
KMSG_BYTES = 8192
KMSG_RECORDS = 200_000
"""Larger than any ring buffer."""
NVIDIA_SMI_SECONDS = 60.0
"""No separate limit: the section's deadline applies, because busy GPUs answer late."""


class Unavailable(Exception):  # noqa: N818 - carried into the document as a reason
    """Something could not be read; the text has the reason, for an operator."""


def patience(request: dict[str, Any], least: float) -> float:
    """Time limit of one tool; patient passes wait longer, for a starved or emulated node."""
    return max(least, 0.5 * float(request.get("seconds") or 0))


class Source:
    """The node the probe runs on.

    Tests substitute it; nothing else in the probe touches the system.
    """

    def __init__(self) -> None:
        self._local = threading.local()

    def until(self, deadline: float) -> None:
        """Tools of this thread have to end by this time (time.monotonic)."""
        self._local.deadline = deadline

    def text(self, path: str) -> str:
        """The content of a file without its last newline; raises Unavailable if it cannot be read."""
        return self.data(path, 0, TEXT_LIMIT).decode("utf-8", "replace").rstrip("\n")

    def maybe(self, path: str) -> str | None:
        """The content of a file; None if it is missing or empty."""
        try:
            return self.text(path).strip() or None
        except Unavailable:
            return None

    def data(self, path: str, offset: int, size: int) -> bytes:
        """Bytes of a file; raises Unavailable if it cannot be read."""
        try:
            handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
            try:
                if offset:
                    return os.pread(handle, size, offset)
                chunks = []
                while size > 0:
                    chunk = os.read(handle, min(size, 1 << 20))
                    if not chunk:
                        break
                    chunks.append(chunk)
                    size -= len(chunk)
                return b"".join(chunks)
            finally:
                os.close(handle)
        except OSError as error:
            raise Unavailable(f"{path}: {reason(error)}") from None

    def kmsg(self) -> list[str]:
        """The records of the kernel's ring buffer; raises Unavailable if /dev/kmsg is not the real device."""
        try:
            handle = os.open("/dev/kmsg", os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        except OSError as error:
            raise Unavailable(f"/dev/kmsg: {reason(error)}") from None
        found: list[str] = []
        try:
            if not stat.S_ISCHR(os.fstat(handle).st_mode):
                raise Unavailable("/dev/kmsg: not a device")  # reading would consume a pipe
            while len(found) < KMSG_RECORDS:
                with contextlib.suppress(
                    BrokenPipeError
                ):  # the record was overwritten: go on with the next one
                    found.append(os.read(handle, KMSG_BYTES).decode("utf-8", "replace"))
        except BlockingIOError:
            pass  # that was the last one
        except OSError as error:
            raise Unavailable(f"/dev/kmsg: {reason(error)}") from None
        finally:
            os.close(handle)
        return found

    def names(self, path: str) -> list[str]:
        """Sorted names in a folder; empty if the folder is missing."""
        try:
            return sorted(os.listdir(path))
        except OSError:
            return []

    def exists(self, path: str) -> bool:
        """Whether the path exists."""
        return os.path.lexists(path)

    def target(self, path: str) -> str | None:
        """The full path that a link resolves to, or None."""
        return os.path.realpath(path) if os.path.lexists(path) else None

    def modified(self, path: str) -> float | None:
        """Time of last change, or None."""
        try:
            return os.stat(path).st_mtime
        except OSError:
            return None

    def run(self, arguments: list[str], seconds: float) -> str:
        """The output of a tool; raises Unavailable if it is missing, fails or takes too long."""
        status, out, err = self.start(arguments, seconds)
        if status != 0:
            printed = (err.strip() or out.strip() or "nothing").splitlines()[-1][:300]
            raise Unavailable(f"`{' '.join(arguments)}` exited {status}: {printed}")
        return out

    def start(self, arguments: list[str], seconds: float) -> tuple[int, str, str]:
        """(exit status, stdout, stderr) of a tool."""
        left = getattr(self._local, "deadline", time.monotonic() + seconds) - time.monotonic()
        seconds = min(seconds, left)
        name = " ".join(arguments)
        if seconds <= 0:
            raise Unavailable(f"`{name}` was not started: no time left")
        try:
            child = subprocess.Popen(
                arguments,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=dict(os.environ, LC_ALL="C", TZ="UTC"),
            )
        except OSError as error:
            raise Unavailable(f"{arguments[0]}: {reason(error)}") from None
        try:
            out, err = child.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            child.kill()  # it may hang in the kernel and not die, so never wait without a limit
            with contextlib.suppress(subprocess.TimeoutExpired, ValueError):
                child.communicate(timeout=KILL_GRACE_SECONDS)
            raise Unavailable(f"`{name}` gave no answer within {seconds:.1f} s") from None
        return child.returncode, out.decode("utf-8", "replace"), err.decode("utf-8", "replace")

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def elapsed(self) -> float:
        """A monotonic clock."""
        return time.monotonic()

    def kernel_release(self) -> str:
        """As `uname -r`."""
        return os.uname().release

    def architecture(self) -> str:
        """As `uname -m`."""
        return os.uname().machine

    def node_name(self) -> str:
        """As `hostname`."""
        return os.uname().nodename

    def addresses_of(self, name: str) -> list[str]:
        """IPv4 addresses a name resolves to."""
        import socket

        try:
            found = socket.getaddrinfo(name, None, socket.AF_INET, socket.SOCK_STREAM)
        except OSError as error:
            raise Unavailable(f"{name} does not resolve: {error}") from None
        return sorted({str(entry[4][0]) for entry in found})


def reason(error: OSError) -> str:
    """The text of an operating system error."""
    if error.errno == errno.ENOENT:
        return "not found"
    return (error.strerror or str(error)).lower()


def number(text: str | None) -> Any:  # noqa: ANN401 - int, float or None
    """The number a text begins with ("81920 MiB", "16x", "26.562 GB/s"), or None."""
    if text is None:
        return None
    word = text.strip().split(" ")[0].rstrip("x%,")
    for kind in (int, float):
        try:
            value = kind(word)
        except ValueError:
            continue
        return value if abs(value) < 1e18 else None  # also refuses nan and inf
    return None


def integer(text: str | None) -> int | None:
    """The whole number a text begins with, or None."""
    value = number(text)
    return int(value) if value is not None else None


def pairs(text: str, separator: str = "=") -> dict[str, str]:
    """Lines of `key=value` as a dict."""
    found = {}
    for line in text.splitlines():
        key, mark, value = line.partition(separator)
        if mark:
            found[key.strip()] = value.strip()
    return found


def cpu_list(text: str) -> list[int]:
    """`0-3,8` as [0, 1, 2, 3, 8]."""
    found: list[int] = []
    for part in text.strip().split(","):
        first, mark, last = part.partition("-")
        if first:
            found.extend(range(int(first), int(last if mark else first) + 1))
    return found
