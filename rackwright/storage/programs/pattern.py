"""The data of a rank: every block of 4 KiB is unique, so that no layer in the path can deduplicate it."""

from __future__ import annotations

import mmap
import random

PAGE = 4096
_HEAD, _STAMP = 8, 4
"""Bytes at the start of each page that identify it: first the number of the block, then random bytes of this file and page."""
COMPARED_BYTES = 256 * 2**20
"""How much of a file is compared byte by byte: of the default size 6 %, for comparing means reading it again."""


class Pattern:
    """Blocks of one rank's file; any rank can make any rank's blocks."""

    def __init__(self, seed: str, size: int) -> None:
        self._block = mmap.mmap(-1, size)  # aligned to pages, as O_DIRECT wants it
        self._block[:] = random.Random(seed).randbytes(size)
        self._in_block = _heads(memoryview(self._block))
        self._heads = bytearray(self._in_block.tobytes())

    def block(self, number: int) -> memoryview:
        """A block, in memory that the next call writes over; about 15 us for 4 MiB, for the clock is running."""
        self._in_block[:] = memoryview(self._heads_of(number)).cast("Q")
        return memoryview(self._block)

    def is_marked(self, number: int, data: memoryview) -> bool:
        """Whether each page of data begins as that page of that block does; as fast as `block`."""
        return _heads(data).tobytes() == self._heads_of(number)

    def is_block(self, number: int, data: memoryview) -> bool:
        """Whether data is that block, every byte of it."""
        return bytes(data) == bytes(self.block(number))

    def _heads_of(self, number: int) -> bytearray:
        pages = len(self._heads) // _HEAD
        for place, byte in enumerate(number.to_bytes(_STAMP, "little")):
            self._heads[place::_HEAD] = bytes([byte]) * pages
        return self._heads


def _heads(block: memoryview) -> memoryview:
    """The start of each page, in one access, since each is a cache miss."""
    return block.cast("Q")[:: PAGE // _HEAD]


def compared(seed: str, size: int, block: int) -> list[int]:
    """Numbers of the blocks of a file that are compared byte by byte: all of a small file, a sample of a large one."""
    blocks = size // block
    return sorted(random.Random(seed).sample(range(blocks), compared_count(size, block)))


def compared_count(size: int, block: int) -> int:
    """Number of those blocks."""
    return min(size // block, -(-COMPARED_BYTES // block))
