"""Options of roles that install a Python environment of locked wheels."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from rackwright.boundary import printable
from rackwright.model.options import RoleOptions
from rackwright.model.strings import HttpUrl, NodePath
from rackwright.model.text import mistake
from rackwright.render import render

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster


_LINE = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^]]*\])?==([^ ;\\]+)(?: ; (.*?))? \\$")
"""As uv and pip-compile write it; hashes are on the lines that follow."""
_REQUIREMENT = re.compile(r"^[A-Za-z0-9]")
_SHOWN = 5


def locked(lock: str) -> dict[str, set[str]]:
    """Versions by normalised name; several where the version depends on the Python."""
    found: dict[str, set[str]] = {}
    for line in lock.splitlines():
        if match := _LINE.match(line):
            found.setdefault(normal(match[1]), set()).add(match[2])
    return found


def normal(name: str) -> str:
    """A project's name as PyPI compares it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


class HasPythonEnvironment(RoleOptions):
    """Which wheels, where they come from, and with which Python."""

    environments: ClassVar[str]
    """The folder of environments on nodes; `current` in it is the one in use."""
    own_lock: ClassVar[str]
    """Template of rackwright's own lock."""

    python: NodePath = Field(
        default="/usr/bin/python3",
        description="Python that the environment is made with; its minor version is in the lock.",
    )
    lock: Path | None = Field(
        default=None,
        description="A requirements file with hashes, beside the cluster file, e.g. with torch. None: rackwright's own.",
    )
    index_url: HttpUrl | None = Field(
        default=None, description="Python package index. None: `mirrors.pypi`, and without it PyPI."
    )
    wheels: HttpUrl | None = Field(
        default=None, description="A page that links to every wheel of the lock, for sites without an index."
    )
    keep: int = Field(default=1, ge=1, le=20, description="Former environments that are kept.")

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if self.wheels is not None and self.index_url is not None:
            raise mistake(
                "Wheels come from `wheels` or from `index_url`, not from both.", "remove one of them"
            )
        return self

    def lock_text(self, cluster: Cluster) -> str:
        """The site's lock, or rackwright's own. OSError if it cannot be read."""
        if self.lock is None:
            return render(self.own_lock)
        return (Path(cluster.path).parent / self.lock).read_text()

    def lock_mistakes(self, cluster: Cluster, needed: str) -> Iterable[tuple[str, str, str | None]]:
        """A site's lock that cannot be read, lacks `needed`, or has lines without a version and hashes (see `problems`)."""
        if self.lock is None:
            return
        hint = "write it with `uv pip compile --universal --generate-hashes`"
        try:
            text = self.lock_text(cluster)
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            yield "lock", f"The lock {self.lock} cannot be read: {why}.", "it is beside the cluster file"
            return
        lines = list(enumerate(text.splitlines(), 1))
        loose = [
            (number, line) for number, line in lines if _REQUIREMENT.match(line) and not _LINE.match(line)
        ]
        for number, line in loose[:_SHOWN]:
            yield "lock", f"{self.lock}:{number}: `{printable(line, 60)}` has no version with hashes.", hint
        if needed not in locked(text):
            yield "lock", f"The lock {self.lock} has no {needed}.", hint

    def pip_source(self, cluster: Cluster) -> tuple[str, ...]:
        """pip's options for where wheels come from. Hashes are compared, so plain HTTP reveals and changes nothing."""
        page = self.wheels
        index = self.index_url or cluster.mirrors.pypi
        if page is not None:
            source: tuple[str, ...] = ("--no-index", "--find-links", page)
        elif index is not None:
            source = ("--index-url", index)
        else:
            return ()
        url = urlsplit(page or index or "")
        return (*source, "--trusted-host", url.netloc) if url.scheme == "http" else source
