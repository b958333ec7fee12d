"""Runs the node's programs in its root while it is mounted below the target."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from rackwright.install.agent.disks import TARGET
from rackwright.install.agent.programs import SECONDS, run

_BOUND = ("dev", "proc", "sys")
_IN_MEMORY = {"run": "755", "tmp": "1777"}


@contextmanager
def entered() -> Iterator[None]:
    """Mounts devices, processes, and in-memory /run and /tmp in the target while the block runs."""
    mounted: list[str] = []
    try:
        for name in _BOUND:
            run(["mount", "--bind", f"/{name}", f"{TARGET}/{name}"])
            mounted.append(name)
        # temporary files of these programs, including keys, never reach the disk
        for name, mode in _IN_MEMORY.items():
            run(["mount", "-t", "tmpfs", "-o", f"mode={mode}", name, f"{TARGET}/{name}"])
            mounted.append(name)
        yield
    finally:
        for name in reversed(mounted):
            run(["umount", f"{TARGET}/{name}"], check=False)


def run_inside(argv: Sequence[str], seconds: float = SECONDS) -> str:
    """Run a program of the node in its root (see `entered`)."""
    return run(["chroot", TARGET, *argv], seconds=seconds)
