"""How a disk is erased: the methods that it may support, the strongest first."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass

from rackwright.install.agent.programs import AgentError, log, run

SLOWEST = 25 * 10**6
"""Bytes a second of a disk that is still at work, with many others behind one controller."""
_LEAST_SECONDS = 1800.0
_STEP = 1 << 30
"""An erasing program is run on one piece at a time, so that it can be stopped and its progress is known."""
_BLOCK, _SYNC = 4 << 20, 256 << 20
_FORMATS, _MANAGES = 0b10, 0b1000
"""Bits of OACS (NVM Express base specification, Identify Controller): Format NVM, Namespace Management."""
_ALL_NAMESPACES, _CRYPTO = 0b11, 0b100
"""Bits of FNA: a format concerns all namespaces; cryptographic erase is supported."""
_NAMESPACE = re.compile(r"^\[\s*\d+\]:(0x[0-9a-f]+)", re.MULTILINE)

Progress = Callable[[int], None]
"""Called with the bytes that are done."""


@dataclass(frozen=True, slots=True)
class Method:
    """One method, and how places read that it has erased."""

    name: str
    """In reports and certificates; docs/bare-metal.md says what each is worth."""
    carry_out: Callable[[str, int, float, Progress], None]
    """Erases a disk of a size before a deadline of time.monotonic(); AgentError where it does not."""
    blank: tuple[int, ...]
    """Bytes of which erased sectors may consist."""
    noise: bool = False
    """Whether they may be random."""


@dataclass(frozen=True, slots=True)
class Controller:
    """What an NVMe controller says that it can do."""

    formats: bool
    crypto: bool
    all_namespaces: bool
    manages: bool


def limit_seconds(size: int) -> float:
    """How long the erasure of a disk of this many bytes may take."""
    return _LEAST_SECONDS + size / SLOWEST


def methods(path: str) -> list[Method]:
    """What may be tried on a disk, in this order; the first that works is used."""
    found = []
    if is_nvme(path):
        try:
            found += _formats(read_controller(run(["nvme", "id-ctrl", path, "--output-format=json"])), path)
        except AgentError as error:
            log(f"{error}; {path} is erased otherwise")
    secure = Method("secure-discard", _blkdiscard("--secure"), blank=(0x00, 0xFF))
    zeroed = Method("write-zeroes", _blkdiscard("--zeroout"), blank=(0x00,))
    return [*found, secure, zeroed, Method("overwrite", overwrite, blank=(0x00,))]


def is_nvme(path: str) -> bool:
    """Whether a disk is a namespace of an NVMe controller."""
    return os.path.basename(path).startswith("nvme")


def read_controller(text: str) -> Controller:
    """Out of `nvme id-ctrl --output-format=json`; AgentError for something else."""
    try:
        data = json.loads(text)
        oacs, fna = int(data["oacs"]), int(data["fna"])
    except (ValueError, KeyError, TypeError):
        raise AgentError("the NVMe controller does not say what it can do") from None
    return Controller(
        bool(oacs & _FORMATS), bool(fna & _CRYPTO), bool(fna & _ALL_NAMESPACES), bool(oacs & _MANAGES)
    )


def hidden_namespaces(path: str) -> str | None:
    """What of a disk's NVMe controller cannot be reached as a disk, as a sentence; None where all of it can."""
    if not is_nvme(path):
        return None
    controller = read_controller(run(["nvme", "id-ctrl", path, "--output-format=json"]))
    if not controller.manages:
        return None  # it has the namespaces that it was made with
    hidden = sorted(namespaces(path, "--all") - namespaces(path))
    if not hidden:
        return None
    named = ", ".join(map(str, hidden))
    return f"its controller has namespaces that are not attached and keep what they hold: {named}"


def namespaces(path: str, *options: str) -> set[int]:
    """Numbers of the namespaces of a disk's controller: those attached to it, or `--all` that exist."""
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
        raise AgentError(f"{path} cannot be overwritten: {error.strerror}") from None
    progress(size)


def _formats(controller: Controller, path: str) -> list[Method]:
    if not controller.formats:
        return []
    # a format that reaches other namespaces would erase one that is being verified, or that belongs to another host
    if controller.all_namespaces and len(namespaces(path, *(["--all"] if controller.manages else []))) > 1:
        log(f"{path}: a format concerns all namespaces of its controller, so it is erased otherwise")
        return []
    user = Method("nvme-format-user-data-erase", _format(1), blank=(0x00, 0xFF), noise=True)
    crypto = Method("nvme-format-crypto-erase", _format(2), blank=(0x00, 0xFF), noise=True)
    return [crypto, user] if controller.crypto else [user]


def _format(setting: int) -> Callable[[str, int, float, Progress], None]:
    """The format of a namespace with a secure-erase setting; its block size stays."""

    def carry_out(path: str, size: int, deadline: float, progress: Progress) -> None:
        left = _left(path, deadline)
        # --force: else it waits for a key to be pressed
        options = (f"--ses={setting}", "--force", f"--timeout={round(left * 1000)}")
        run(["nvme", "format", path, *options], seconds=left + 30)
        run(["udevadm", "settle", "--timeout=30"], check=False)
        progress(size)

    return carry_out


def _blkdiscard(option: str) -> Callable[[str, int, float, Progress], None]:
    """blkdiscard, which opens the disk for itself alone, part by part."""

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
