"""A package archive other than the distribution's: its URL and signing key."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from rackwright.model.options import Frozen
from rackwright.model.strings import HttpUrl

PackageVersion = Annotated[
    str, StringConstraints(pattern=r"^([0-9]{1,3}:)?[0-9]{1,4}\.[0-9]{1,4}([0-9A-Za-z.+_~-]{0,80})$")
]
"""An exact version as the package tool prints it, with the epoch if it has one."""
Suite = Annotated[str, StringConstraints(pattern=r"^(/|[A-Za-z0-9][A-Za-z0-9._/-]{0,99})$")]
Component = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")]


class PackageArchive(Frozen):
    """Where packages come from, e.g. a signed copy of the vendor's archive at the site."""

    url: HttpUrl = Field(
        description="apt: the folder with `dists` (or, with suite `/`, with `Packages`); dnf: the folder "
        "with `repodata`."
    )
    suite: Suite = Field(default="/", description="apt suite; `/`: a flat archive. Not used by dnf.")
    components: tuple[Component, ...] = Field(default=(), description="apt components, if there is a suite.")
    key_url: HttpUrl = Field(description="URL of the archive's public key.")
    fingerprint: str = Field(
        pattern=r"^[0-9A-F]{40}$", description="Fingerprint of that key; any other key is refused."
    )
