"""The data of a rank: no block of 4 KiB is like another one, so that nothing on the way can leave any of it out."""

from __future__ import annotations

import mmap
import random

PAGE = 4096
_STAMP = 4
"""Bytes at the start of each page that hold the number of the block."""


class Pattern:
    """Blocks of one rank's file; any rank can make any rank's blocks."""

    def __init__(self, seed: str, size: int) -> None:
        self._size = size
        self._block = mmap.mmap(-1, size)  # aligned to pages, as O_DIRECT wants it
        self._block[:] = random.Random(seed).randbytes(size)

    def block(self, number: int) -> memoryview:
        """A block, in memory that the next call writes over."""
        view = memoryview(self._block)
        pages = self._size // PAGE
        for place, byte in enumerate(number.to_bytes(_STAMP, "little")):
            view[place::PAGE] = bytes([byte]) * pages
        return view

    def is_block(self, number: int, data: memoryview) -> bool:
        """Whether data is that block, every byte of it."""
        return bytes(data) == bytes(self.block(number))
