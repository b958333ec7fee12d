"""Kernels of the distributions' archives, as far as a dated source gives their exact versions."""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import Field

from rackwright.catalog.tables import Table, Version
from rackwright.model.options import Frozen
from rackwright.model.sku import Source
from rackwright.osfamily.known import OsRelease


class KernelOffer(Frozen):
    """One kernel of the distribution."""

    release: str = Field(description="As uname -r prints it.")
    version: str = Field(description="Package version; `*`: only a package index has it.")
    upstream: Version
    suite: str | None = None
    default: bool = Field(default=True, description="False: only if the cluster file names it.")
    extra_modules: bool = Field(default=False, description="Whether it has a second package of modules.")


class KernelArchive(Frozen):
    """Kernels of some OS releases on one CPU architecture."""

    os: tuple[OsRelease, ...] = Field(min_length=1)
    cpu: Literal["x86_64", "aarch64"] = "x86_64"
    whole: bool = Field(
        default=False, description="Whether the archive's index was read, and not only pages of it."
    )
    kernels: tuple[KernelOffer, ...] = Field(min_length=1)
    sources: tuple[Source, ...] = Field(min_length=1)

    @property
    def read(self) -> date:
        """The day it was last read."""
        return max(source.read for source in self.sources)


class KernelTable(Table):
    """Kernels by OS release; an archive gets new ones every few weeks."""

    rows: tuple[KernelArchive, ...]
