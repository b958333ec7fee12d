"""Threads that ask many nodes, and that a Ctrl-C does not wait for."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


@contextmanager
def side_by_side(threads: int) -> Iterator[ThreadPoolExecutor]:
    """An executor that drops what has not begun when its block is left, and waits for nothing.

    What has begun ends with the connection it talks on: leave the block that owns the connections last.
    """
    executor = ThreadPoolExecutor(max(1, threads))
    try:
        yield executor
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
