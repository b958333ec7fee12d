"""How to erase a disk: the methods that it may support, strongest first."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from rackwright.install.agent.programs import AgentError, log, run

SLOWEST = 25 * 10**6
"""Lowest expected bytes per second of a disk while many others share its controller."""
_LEAST_SECONDS = 1800.0
_STEP = 1 << 30
"""Erase programs run on one chunk at a time, so that they can be stopped and report progress."""
_BLOCK, _SYNC = 4 << 20, 256 << 20
_FORMATS, _MANAGES = 0b10, 0b1000
"""Bits of OACS (NVM Express base specification, Identify Controller): Format NVM, Namespace Management."""
_ALL_NAMESPACES, _CRYPTO = 0b11, 0b100
"""Bits of FNA: a format affects all namespaces; cryptographic erase is supported."""
_NAMESPACE = re.compile(r"^\[\s*\d+\]:(0x[0-9a-f]+)", re.MULTILINE)

Progress = Callable[[int], None]
"""Called with the number of bytes done."""


@dataclass(frozen=True, slots=True)
class Method:
    """One method, and how to verify its result."""

    name: str
    """Name in reports and certificates; docs/bare-metal.md describes the strength of each."""
    carry_out: Callable[[str, int, float, Progress], None]
    """Erases a disk of a given size before a deadline of time.monotonic(); AgentError if it fails."""
    blank: tuple[int, ...]
    """Byte values that erased sectors may have."""
    noise: bool = False
    """Whether erased sectors may contain random data."""


@dataclass(frozen=True, slots=True)
class Controller:
    """Capabilities that an NVMe controller reports."""

    formats: bool
    crypto: bool
    all_namespaces: bool
    manages: bool


def limit_seconds(size: int) -> float:
    """Longest time that erasing a disk of this many bytes may take."""
    return _LEAST_SECONDS + size / SLOWEST


def methods(path: str) -> list[Method]:
    """Methods to try on a disk in this order; the first that works is used."""
    found = []
    if is_nvme(path):
        try:
            found += _formats(read_controller(run(["nvme", "id-ctrl", path, "--output-format=json"])), path)
        except AgentError as error:
            log(f"{error}; trying another erase method for {path}")
    secure = Method("secure-discard", _blkdiscard("--secure"), blank=(0x00, 0xFF))
    zeroed = Method("write-zeroes", _blkdiscard("--zeroout"), blank=(0x00,))
    return [*found, secure, zeroed, Method("overwrite", overwrite, blank=(0x00,))]


def is_nvme(path: str) -> bool:
    """Whether a disk is a namespace of an NVMe controller."""
    return os.path.basename(path).startswith("nvme")


def read_controller(text: str) -> Controller:
    """Parses `nvme id-ctrl --output-format=json`; AgentError for anything else."""
    try:
        data = json.loads(text)
        oacs, fna = int(data["oacs"]), int(data["fna"])
    except (ValueError, KeyError, TypeError):
        raise AgentError("the NVMe controller does not report its capabilities") from None
    return Controller(
        bool(oacs & _FORMATS), bool(fna & _CRYPTO), bool(fna & _ALL_NAMESPACES), bool(oacs & _MANAGES)
    )


def hidden_namespaces(path: str) -> str | None:
    """Which part of a disk's NVMe controller is not accessible as a disk, as a sentence; None if all of it is."""
    if not is_nvme(path):
        return None
    controller = read_controller(run(["nvme", "id-ctrl", path, "--output-format=json"]))
    if not controller.manages:
        return None  # it has only the namespaces that it was made with
    hidden = sorted(namespaces(path, "--all") - namespaces(path))
    if not hidden:
        return None
    named = ", ".join(map(str, hidden))
    return f"its controller has unattached namespaces that keep their data: {named}"


def namespaces(path: str, *options: str) -> set[int]:
    """Namespace numbers of a disk's controller: the attached ones, or with `--all` every existing one."""
    return {int(number, 16) for number in _NAMESPACE.findall(run(["nvme", "list-ns", path, *options]))}


def overwrite(path: str, size: int, deadline: float, progress: Progress) -> None:
    """Write zeros over the whole disk."""
    zeros = memoryview(bytes(_BLOCK))
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_EXCL | os.O_CLOEXEC)
        try:
            done = synced = 0
            while done < size:
                if time.monotonic() > deadline:
                    raise AgentError(f"{path} was not overwritten in time: {done} of {size} bytes")
                done += os.pwrite(descriptor, zeros[: min(_BLOCK, size - done)], done)
                if done - synced >= _SYNC:
                    os.fdatasync(descriptor)
                    synced = done
                    progress(done)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise AgentError(f"cannot overwrite {path}: {error.strerror}") from None
    progress(size)


def _formats(controller: Controller, path: str) -> list[Method]:
    if not controller.formats:
        return []
    # a format of all namespaces could erase one that is being verified or that belongs to another host
    if controller.all_namespaces and len(namespaces(path, *(["--all"] if controller.manages else []))) > 1:
        log(f"{path}: a format affects all namespaces of its controller; trying another erase method")
        return []
    user = Method("nvme-format-user-data-erase", _format(1), blank=(0x00, 0xFF), noise=True)
    crypto = Method("nvme-format-crypto-erase", _format(2), blank=(0x00, 0xFF), noise=True)
    return [crypto, user] if controller.crypto else [user]


def _format(setting: int) -> Callable[[str, int, float, Progress], None]:
    """Format of a namespace with a secure-erase setting; its block size stays."""

    def carry_out(path: str, size: int, deadline: float, progress: Progress) -> None:
        left = _left(path, deadline)
        # without --force it waits for a key press
        options = (f"--ses={setting}", "--force", f"--timeout={round(left * 1000)}")
        run(["nvme", "format", path, *options], seconds=left + 30)
        run(["udevadm", "settle", "--timeout=30"], check=False)
        progress(size)

    return carry_out


def _blkdiscard(option: str) -> Callable[[str, int, float, Progress], None]:
    """blkdiscard, in chunks; it opens the disk exclusively."""

    def carry_out(path: str, size: int, deadline: float, progress: Progress) -> None:
        for start in range(0, size, _STEP):
            part = (f"--offset={start}", f"--length={min(_STEP, size - start)}")
            run(["blkdiscard", option, *part, path], seconds=_left(path, deadline))
            progress(min(start + _STEP, size))

    return carry_out


def _left(path: str, deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise AgentError(f"{path} was not erased in time")
    return left
