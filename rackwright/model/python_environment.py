"""Options of roles that install a Python environment of locked wheels."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from rackwright.model.options import RoleOptions
from rackwright.model.strings import HttpUrl, NodePath
from rackwright.model.text import mistake
from rackwright.render import render

if TYPE_CHECKING:
    from rackwright.model.cluster import Cluster


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
