"""All nodes at once: every rank writes its file, reads that of another node, and makes, looks up and removes files."""

from __future__ import annotations

import errno
import json
import mmap
import os
import platform
import resource
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

from rackwright.storage.programs.barrier import Answer, Coordinator, follow
from rackwright.storage.programs.children import Children, become, say
from rackwright.storage.programs.pattern import Pattern, compared

PHASES = ("write", "read", "compare", "create", "stat", "remove", "clean")
GRACE_SECONDS = 5
"""Between the deadline of the ranks and that of their parents, in which the result is printed."""


class Rank:
    """One rank's work; each phase returns bytes or files, and the seconds they took.

    Nothing is subtracted from these seconds: while one rank works on its data, others use its share of the server.
    """

    def __init__(self, asked: dict[str, Any], rank: int) -> None:
        self._asked = asked
        self._ranks = len(asked["nodes"]) * asked["jobs"]
        self._rank = rank
        # a rank of the next node: what this node wrote may still be in its page cache
        self._other = (rank + (asked["jobs"] if len(asked["nodes"]) > 1 else 1)) % self._ranks
        self._size, self._block = int(asked["size"]), int(asked["block"])
        # made here, before the first phase: it takes longer than reading or writing a block
        self._own, self._theirs = self._pattern(rank), self._pattern(self._other)
        self._data = memoryview(mmap.mmap(-1, self._block))
        self._data[:] = bytes(self._block)  # no page fault is left for the first read

    def work(self) -> dict[str, Callable[[], Answer]]:
        """The phases by name."""
        return {name: getattr(self, name) for name in PHASES}

    def write(self) -> Answer:
        """Its own file, with fsync in the time."""
        begun = time.monotonic()
        file, direct = self._open(self._path(self._rank), os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        for number in range(self._size // self._block):
            _write_all(file, self._own.block(number))
        os.fsync(file)
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(file)
        return {"done": self._size, "seconds": time.monotonic() - begun, "direct": direct}

    def read(self) -> Answer:
        """Another node's file; only the start of each page is looked at."""
        return self._checked(range(self._size // self._block), self._theirs.is_marked)

    def compare(self) -> Answer:
        """Every byte of some blocks of that file, read again; no rate is made of it."""
        seed = f"{self._asked['token']} {self._rank}"
        return self._checked(compared(seed, self._size, self._block), self._theirs.is_block)

    def _checked(self, numbers: Sequence[int], is_right: Callable[[int, memoryview], bool]) -> Answer:
        begun = time.monotonic()
        file, direct = self._open(self._path(self._other), os.O_RDONLY)
        # without O_DIRECT `compare` would find in the page cache what `read` has read
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        for number in numbers:
            _read_all(file, self._data, number)
            if not is_right(number, self._data):
                place = number * self._block
                where = f"bytes {place} to {place + self._block} of the file of rank {self._other}"
                return {"error": f"{where} differ from what was written", "wrong": True}
        os.close(file)
        done = len(numbers) * self._block
        return {"done": done, "seconds": time.monotonic() - begun, "direct": direct}

    def create(self) -> Answer:
        """Empty files in a separate folder."""
        begun = time.monotonic()
        os.mkdir(self._files(self._rank), 0o700)
        for number in range(self._asked["files"]):
            os.close(os.open(self._file(self._rank, number), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        return {"done": self._asked["files"], "seconds": time.monotonic() - begun}

    def stat(self) -> Answer:
        """The files of another node's rank."""
        begun = time.monotonic()
        for number in range(self._asked["files"]):
            os.stat(self._file(self._other, number))
        return {"done": self._asked["files"], "seconds": time.monotonic() - begun}

    def remove(self) -> Answer:
        """Its own files."""
        begun = time.monotonic()
        for number in range(self._asked["files"]):
            os.unlink(self._file(self._rank, number))
        os.rmdir(self._files(self._rank))
        return {"done": self._asked["files"], "seconds": time.monotonic() - begun}

    def clean(self) -> Answer:
        """Its data."""
        begun = time.monotonic()
        os.unlink(self._path(self._rank))
        return {"done": 1, "seconds": time.monotonic() - begun}

    def _pattern(self, rank: int) -> Pattern:
        return Pattern(f"{self._asked['token']} {rank}", self._block)

    def _path(self, rank: int) -> str:
        return os.path.join(self._asked["folder"], f"data.{rank}")

    def _files(self, rank: int) -> str:
        return os.path.join(self._asked["folder"], f"files.{rank}")

    def _file(self, rank: int, number: int) -> str:
        return os.path.join(self._files(rank), f"file.{number}")

    def _open(self, path: str, flags: int) -> tuple[int, bool]:
        """Open with O_DIRECT if requested; without it if the filesystem lacks it, which the answer reports."""
        if self._asked["direct"]:
            try:
                return os.open(path, flags | os.O_DIRECT, 0o600), True
            except OSError as error:
                if error.errno != errno.EINVAL:
                    raise
            if flags & os.O_CREAT and os.path.lexists(path):
                os.unlink(path)  # open(2): the file may have been made before the refusal
        return os.open(path, flags, 0o600), False


def _write_all(file: int, block: memoryview) -> None:
    while len(block):
        block = block[os.write(file, block) :]


def _read_all(file: int, data: memoryview, number: int) -> None:
    done = 0
    while done < len(data):
        count = os.preadv(file, [data[done:]], number * len(data) + done)
        if not count:
            raise OSError(errno.EIO, f"the file ends within block {number}")
        done += count


def summary(asked: dict[str, Any], done: list[tuple[str, dict[int, Answer]]], missing: list[int]) -> Answer:
    """By phase and node: bytes or files of its ranks together, and the seconds of the slowest."""
    jobs, names = asked["jobs"], asked["nodes"]
    phases, errors = [], []
    for phase, answers in done:
        nodes = []
        for index in range(len(names)):
            own = [answers[rank] for rank in range(index * jobs, (index + 1) * jobs)]
            nodes.append(
                [sum(one.get("done", 0) for one in own), max(one.get("seconds", 0.0) for one in own)]
            )
        phases.append({"phase": phase, "nodes": nodes})
        for rank, answer in sorted(answers.items()):
            if "error" in answer:
                text = f"rank {rank}: {phase}: {answer['error']}"
                kind = "wrong" if answer.get("wrong") else "hung" if answer.get("hung") else "error"
                errors.append({"node": names[rank // jobs], "kind": kind, "text": text[:400]})
    for rank in missing:
        errors.append({"node": names[rank // jobs], "kind": "hung", "text": f"rank {rank} never started"})
    flags = [answer["direct"] for _, answers in done for answer in answers.values() if "direct" in answer]
    return {"phases": phases, "errors": errors[:64], "errors_count": len(errors), "direct": all(flags)}


def main(asked: dict[str, Any], index: int) -> None:
    """One process per node: starts this node's ranks, and on the first node synchronises all of them."""
    wrong = become(asked["user"])
    deadline = time.monotonic() + asked["seconds"]
    jobs, first = asked["jobs"], index == 0
    ranks = len(asked["nodes"]) * jobs
    if wrong is not None:
        say(
            {
                "phases": [],
                "errors": [{"node": asked["nodes"][index], "kind": "error", "text": wrong}],
                "errors_count": 1,
            }
        )
        return
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    address, port, token = asked["address"], asked["port"], asked["token"]

    def rank(number: int) -> None:
        own = index * jobs + number
        follow(address, port, token, own, Rank(asked, own).work(), deadline)

    children = Children(jobs, rank)
    if first:
        done, missing = Coordinator(address, port, token, ranks, deadline).run(PHASES)
        say(summary(asked, done, missing))
    children.wait((time.monotonic() if first else deadline) + GRACE_SECONDS)


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    main(given, given["nodes"].index(platform.node().split(".")[0]))
    os._exit(0)
