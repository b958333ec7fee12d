"""An archive of packages that is not the distribution's: its place, and the key it is trusted by."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from rackwright.model.options import Frozen
from rackwright.model.strings import HttpUrl

PackageVersion = Annotated[
    str, StringConstraints(pattern=r"^([0-9]{1,3}:)?[0-9]{1,4}\.[0-9]{1,4}([0-9A-Za-z.+_~-]{0,80})$")
]
"""An exact version, as the package tool prints it: with the epoch, where it has one."""
Suite = Annotated[str, StringConstraints(pattern=r"^(/|[A-Za-z0-9][A-Za-z0-9._/-]{0,99})$")]
Component = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]


class PackageArchive(Frozen):
    """Where packages come from, e.g. a signed copy of the vendor's archive at the site."""

    url: HttpUrl = Field(
        description="Of apt the folder with `dists` (or, with suite `/`, with `Packages`); of dnf the one "
        "with `repodata`."
    )
    suite: Suite = Field(default="/", description="apt's suite; `/`: a flat archive. dnf has none.")
    components: tuple[Component, ...] = Field(
        default=(), description="apt's components, where it has a suite."
    )
    key_url: HttpUrl = Field(description="Where the archive's public key is.")
    fingerprint: str = Field(
        pattern=r"^[0-9A-F]{40}$", description="Of that key; a key with another one never lands on a node."
    )
