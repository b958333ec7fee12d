"""Where the locked CUDA toolkit is on a node."""

from __future__ import annotations

from rackwright.lock.content import GroupLock


def cuda_home(group: GroupLock) -> str:
    """CUDA_HOME: NVIDIA's releases are installed side by side, the distribution has one, with its tools in /usr/bin.

    Sources: CUDA installation guide for Linux, "Post-installation actions"; contents of
    nvidia-cuda-toolkit in bookworm, read 2026-11-21.
    """
    return "/usr/lib/cuda" if group.source == "distribution" else f"/usr/local/cuda-{group.cuda}"
