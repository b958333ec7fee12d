"""Threads that query many nodes, without making Ctrl-C wait for them."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager


@contextmanager
def side_by_side(threads: int) -> Iterator[ThreadPoolExecutor]:
    """An executor that drops queued tasks and does not wait for running ones when its block exits.

    Running tasks end with the connection they use: exit the block that owns the connections last.
    """
    executor = ThreadPoolExecutor(max(1, threads))
    try:
        yield executor
    finally:
        executor.shutdown(wait=False, cancel_futures=True)
