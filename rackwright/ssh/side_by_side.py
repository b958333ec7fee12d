"""Threads that ask many nodes, which Ctrl-C does not wait for."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


@contextmanager
def side_by_side(threads: int) -> Iterator[ThreadPoolExecutor]:
    """An executor that, when its block is left, drops queued tasks and waits for none.

    Running tasks end with the connection they use: leave the block that owns the connections last.
    """
    executor = ThreadPoolExecutor(max(1, threads))
    try:
        yield executor
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
