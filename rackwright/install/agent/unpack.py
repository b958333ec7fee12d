"""Unpacks the image while it downloads; only the unpacked files are stored."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import IO, Self

from rackwright.install.agent.order import Image
from rackwright.install.agent.programs import ENVIRONMENT, AgentError

_END_SECONDS = 900.0
"""Time limit for unpacking the received data, which depends on the disk."""
_SHOWN = 600
_TAR = (
    "tar",
    "--extract",
    "--file=-",
    "--numeric-owner",
    "--preserve-permissions",
    "--xattrs",
    "--xattrs-include=*",
)


def unpack(
    blocks: Iterable[bytes],
    image: Image,
    target: str,
    *,
    exclude: Sequence[str] = (),
    progress: Callable[[int], None] = lambda _: None,
) -> None:
    """Unpack the blocks into a folder; `progress` is called at each percent.

    AgentError if the image is not the announced one, does not fit, or cannot be unpacked.
    """
    digest, done, shown = hashlib.sha256(), 0, -1
    with tempfile.TemporaryFile() as said, _Pipeline(target, exclude, said) as pipeline:
        for block in blocks:
            digest.update(block)
            if not pipeline.write(block):
                break
            done += len(block)
            if (percent := done * 100 // image.size) != shown:
                shown = percent
                progress(percent)
        if not pipeline.end():
            said.seek(0)
            raise AgentError(_reason(said.read().decode(errors="replace"), target, image))
    if digest.hexdigest() != image.sha256:
        raise AgentError(
            f"the downloaded image has SHA-256 {digest.hexdigest()}, but {image.sha256} was announced"
        )


class _Pipeline:
    """Runs zstd and tar; both have exited when the block ends."""

    def __init__(self, target: str, exclude: Sequence[str], said: IO[bytes]) -> None:
        tar = [*_TAR, *(f"--exclude={pattern}" for pattern in exclude), f"--directory={target}"]
        pipe = subprocess.PIPE
        self._zstd = subprocess.Popen(
            ["zstd", "--decompress", "--stdout", "--quiet"],
            stdin=pipe,
            stdout=pipe,
            stderr=said,
            env=ENVIRONMENT,
        )
        assert self._zstd.stdin is not None
        assert self._zstd.stdout is not None
        self._input = self._zstd.stdin
        try:
            self._tar = subprocess.Popen(
                tar, stdin=self._zstd.stdout, stdout=said, stderr=said, env=ENVIRONMENT
            )
        except OSError:
            self._zstd.kill()
            raise
        self._zstd.stdout.close()  # so that zstd exits when tar does

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in (self._zstd, self._tar):
            process.kill()
            process.wait()
        with suppress(BrokenPipeError):
            self._input.close()

    def write(self, block: bytes) -> bool:
        """Write a block; False if the programs have exited early."""
        try:
            self._input.write(block)
        except BrokenPipeError:
            return False
        return True

    def end(self) -> bool:
        """Whether both unpacked everything that was written."""
        with suppress(BrokenPipeError):
            self._input.close()
        try:
            codes = [process.wait(_END_SECONDS) for process in (self._tar, self._zstd)]
        except subprocess.TimeoutExpired:
            raise AgentError(f"the disk did not finish writing the image within {_END_SECONDS:g} s") from None
        return codes == [0, 0]


def _reason(said: str, target: str, image: Image) -> str:
    lines = [line for line in said.strip().splitlines() if line]
    if any("No space left on device" in line for line in lines):
        return f"no space left: {image.name} does not fit on the file system at {target}"
    return f"cannot unpack {image.name}: {' '.join(lines)[-_SHOWN:] or 'no reason given'}"
