"""Limits of users on an XFS filesystem, as the kernel has them.

Format: xfs_quota(8) and what `report` prints in public issues and scripts that agree (xfsprogs 6.1, read 2026-11-26).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from shlex import quote

from pyinfra.api.facts import FactBase

_END = "rackwright: end"
_ROW = re.compile(
    r"#?(?P<uid>\d+)\s+(?P<kib_used>\d+)\s+(?P<kib_soft>\d+)\s+(?P<kib>\d+)\s+\d+\s+\[[^\]]*\]"
    r"\s+(?P<files_used>\d+)\s+(?P<files_soft>\d+)\s+(?P<files>\d+)\s+\d+\s+\[[^\]]*\]\s*"
)
DEFAULT = 0
"""XFS stores the limits of users without individual limits as those of uid 0, who has no limits."""


@dataclass(frozen=True)
class Limits:
    """Hard limits; 0: none."""

    kib: int = 0
    files: int = 0
    kib_soft: int = 0
    files_soft: int = 0

    def __str__(self) -> str:
        parts = [f"{self.kib} KiB" if self.kib else "", f"{self.files} files" if self.files else ""]
        parts += ["soft limits" if self.kib_soft or self.files_soft else ""]
        return ", ".join(filter(None, parts)) or "unlimited"


@dataclass(frozen=True)
class Quotas:
    """What a filesystem counts and enforces."""

    enforced: bool
    limits: dict[int, Limits]
    """By uid, of users that own something there or have a limit; DEFAULT: of all others."""


class UserQuotas(FactBase[Quotas | None]):
    """User quotas of the XFS filesystem mounted on a folder; None where it has none, or nothing is mounted."""

    def command(self, path: str) -> str:
        # `xfs_quota` takes any folder for the filesystem around it.
        asked = " && ".join(
            f"xfs_quota -x -c {quote(question)} {quote(path)}"
            for question in ("state -u", "report -u -b -i -n -N")
        )
        return f"(mountpoint -q {quote(path)} && {asked} && echo {quote(_END)}) 2>/dev/null || :"

    @staticmethod
    def default() -> Quotas | None:
        return None

    def process(self, output: list[str]) -> Quotas | None:
        if not output or output[-1] != _END:
            return None
        state = [line.strip() for line in output]
        if "Accounting: ON" not in state:
            return None
        rows = [match for line in state if (match := _ROW.fullmatch(line)) is not None]
        unread = [line for line in state if line.startswith("#") and _ROW.fullmatch(line) is None]
        if unread:
            raise ValueError(f"xfs_quota prints {unread[0][:80]!r}")
        return Quotas("Enforcement: ON" in state, {int(row["uid"]): _limits(row) for row in rows})


def _limits(row: re.Match[str]) -> Limits:
    return Limits(int(row["kib"]), int(row["files"]), int(row["kib_soft"]), int(row["files_soft"]))


def differing(
    there: Quotas | None, default: Limits, users: dict[int, Limits]
) -> dict[int, tuple[Limits, Limits]]:
    """(found, wanted) by uid: of DEFAULT, of declared users, and of all others that own something there."""
    found = there.limits if there is not None else {}
    wanted = {**dict.fromkeys(found, default), **users, DEFAULT: default}
    return {
        uid: (has, limits)
        for uid, limits in sorted(wanted.items())
        if (has := found.get(uid, Limits())) != limits
    }
