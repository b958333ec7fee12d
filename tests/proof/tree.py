"""The checkout: which files a suite depends on, a digest of their content, and what a change touches."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rackwright.errors import ExitCode, RackwrightError
from tests.proof.suites import Suite, Tier


class UnknownRef(RackwrightError):  # noqa: N818 - reads as the sentence it is
    """git does not know the commit that `--since` names."""

    exit_code = ExitCode.USAGE


@dataclass(frozen=True)
class Tree:
    """A git checkout."""

    root: Path

    def digest(self, suite: Suite, tier: Tier) -> str:
        """SHA-256 of the files a suite depends on and of how its tests are run; history plays no part."""
        asked = {
            "tests": suite.arguments(tier),
            "environment": suite.knobs(tier),
            "files": [(name, self._content(name)) for name in self.files(suite.paths)],
        }
        return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()

    def files(self, paths: Iterable[str]) -> list[str]:
        """Files below these paths that git tracks or would offer to add."""
        listed = self._git("--literal-pathspecs", "ls-files", "-co", "--exclude-standard", "-z", "--", *paths)
        there = {name for name in _names(listed) if _is_file(self.root / name)}
        return sorted(there)

    def changed_since(self, ref: str) -> list[str]:
        """Files that differ from where this branch left `ref`: committed, uncommitted and untracked ones."""
        if (
            not ref
            or ref.startswith("-")
            or self._try("rev-parse", "-q", "--verify", f"{ref}^{{commit}}") is None
        ):
            raise UnknownRef(
                f"git knows no commit {ref!r}.", hint="`git fetch`, or name a commit that is in this clone"
            )
        base = (self._try("merge-base", ref, "HEAD") or ref).strip()
        changed = self._git("diff", "--name-only", "--no-renames", "-z", base, "--")
        untracked = self._git("ls-files", "-o", "--exclude-standard", "-z")
        return sorted({*_names(changed), *_names(untracked)})

    def commit(self) -> str:
        """The commit the checkout is at."""
        return self._git("rev-parse", "HEAD").strip()

    def uncommitted(self, paths: Iterable[str]) -> bool:
        """Whether that commit lacks something of what stands below these paths."""
        return bool(self._git("--literal-pathspecs", "status", "--porcelain", "--", *paths))

    def _content(self, name: str) -> str:
        path = self.root / name
        content = b"link to " + os.fsencode(os.readlink(path)) if path.is_symlink() else path.read_bytes()
        return hashlib.sha256(content).hexdigest()

    def _try(self, *arguments: str) -> str | None:
        done = subprocess.run(
            ["git", *arguments],
            cwd=self.root,
            capture_output=True,
            encoding="utf-8",
            errors="surrogateescape",
            check=False,
        )
        if done.returncode not in (0, 1):
            raise RackwrightError(f"git {' '.join(arguments)} failed: {done.stderr.strip()}")
        return done.stdout if done.returncode == 0 else None

    def _git(self, *arguments: str) -> str:
        out = self._try(*arguments)
        if out is None:
            raise RackwrightError(f"git {' '.join(arguments)} failed.")
        return out


def touched(suites: Iterable[Suite], changed: Iterable[str]) -> tuple[Suite, ...]:
    """The suites that depend on one of these files."""
    names = list(changed)
    return tuple(
        suite
        for suite in suites
        if any(name == path or name.startswith(f"{path}/") for name in names for path in suite.paths)
    )


def _names(listed: str) -> list[str]:
    return [name for name in listed.split("\0") if name]


def _is_file(path: Path) -> bool:
    return path.is_symlink() or path.is_file()
