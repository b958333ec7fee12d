"""Parses fio's output. Pure: text in, figures out.

Format as fio 3.33 and 3.39 print it with `--output-format=json --group_reporting` (recorded 2026-11-26): lines about
errors may stand before and after the document.
"""

from __future__ import annotations

import errno
import re
from dataclasses import dataclass
from typing import Any, Literal

from rackwright.boundary import printable, read_json

Kind = Literal["write", "read"]
WRONG_DATA = errno.EILSEQ
"""fio's error where a block fails verification (verify.c, 3.33; recorded from 3.33 and 3.39)."""
BROKEN = frozenset({WRONG_DATA, errno.EIO, errno.ESTALE, errno.EUCLEAN, errno.EROFS})
"""Errors that prove a filesystem fault; others, such as ENOSPC, leave its state unknown."""
_BEGIN, _END = re.compile(r"^\{\s*$", re.MULTILINE), re.compile(r"^\}\s*$", re.MULTILINE)
_COMPLAINT = re.compile(r"^(?:fio: .+|[a-z0-9]+: verify failed .+)$", re.MULTILINE)
_NOISE = re.compile(r"^fio: pid=")


class Unreadable(ValueError):  # noqa: N818 - reads as the sentence it is
    """The text is not fio's report of one group. Its text is printable."""

    def __init__(self, message: str) -> None:
        super().__init__(printable(message, 300))


@dataclass(frozen=True)
class FioRun:
    """One group of jobs."""

    version: str
    bytes: int
    seconds: float
    """Of the slowest job, the sync at the end included."""
    error: int
    """errno; 0: none."""
    complaint: str
    """fio's message about the error."""

    @property
    def gbs(self) -> float | None:
        """GB/s; None where it took no time that fio can measure."""
        return self.bytes / self.seconds / 1e9 if self.seconds > 0 and self.bytes > 0 else None


def parse_fio(text: str, kind: Kind) -> FioRun:
    """Read the output of one run. Raises Unreadable; never guesses a figure."""
    begin = _BEGIN.search(text)
    ends = [match.end() for match in _END.finditer(text)]
    complaint = complaint_of(text)
    if begin is None or not ends or ends[-1] < begin.start():
        raise Unreadable(complaint or "fio printed no report")
    try:
        document = read_json(text[begin.start() : ends[-1]])
        [job] = document["jobs"]
        side = job[kind]
        found = FioRun(
            version=printable(str(document["fio version"]).removeprefix("fio-"), 40),
            bytes=_whole(side["io_bytes"]),
            seconds=_whole(side["runtime"]) / 1000,
            error=_whole(job["error"]),
            complaint=complaint,
        )
    except Unreadable:
        raise
    except (KeyError, TypeError, ValueError) as error:
        raise Unreadable(f"fio's report cannot be read: {type(error).__name__}: {error}") from error
    return found


def complaint_of(text: str) -> str:
    """The first error line of fio; empty: none."""
    lines = [match[0] for match in _COMPLAINT.finditer(text[:65536])]
    said = next((line for line in lines if not _NOISE.match(line)), lines[0] if lines else "")
    return printable(said, 200)


def _whole(value: Any) -> int:  # noqa: ANN401 - JSON data
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**63:
        raise Unreadable(f"{value!r} is not a count")
    return value
