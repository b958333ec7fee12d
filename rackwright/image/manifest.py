"""manifest.json: what an image is made of, and what it leaves to the first run on a node."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import file_digest
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from rackwright import __version__
from rackwright.errors import ImageError

NAME = "manifest.json"
PACKAGE_QUERY = (
    "dpkg-query -W -f '${binary:Package}\\t${Version}\\t${Architecture}\\t${source:Package}\\t"
    "${source:Version}\\t${db:Status-Abbrev}\\n'"
)


class _Document(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Package(_Document):
    """One installed package."""

    name: str
    version: str
    architecture: str
    source: str = Field(description="Name of the source package.")
    source_version: str


class Artefact(_Document):
    """A file of the image's folder."""

    name: str
    bytes: int
    sha256: str = Field(pattern="^[0-9a-f]{64}$")


class Operation(_Document):
    """An operation that was carried out in the image."""

    role: str
    name: str


class Manifest(_Document):
    """What an image is made of."""

    version: Literal[1] = Field(default=1, alias="schema", description="Version of this schema.")
    rackwright: str = Field(default=__version__, description="Version of rackwright that built it.")
    key: str = Field(description="Name of all it was made of: equal keys, equal recipes.")
    cluster: str = Field(description="`cluster.name`.")
    file_sha256: str = Field(description="SHA-256 of the cluster file.")
    group: str = Field(description="The nodes it is for, as a NodeSet.")
    evaluated: str = Field(description="Those whose declarations were compared; of a large group a part.")
    os: str = Field(description="As in the cluster file.")
    platform: str = Field(description="`vm`, `bare-metal` or `container`.")
    architecture: str = Field(description="As uname -m prints it.")
    kernel: str | None = Field(description="The kernel that boots by default; null: none is in it.")
    format: Literal["disk", "oci", "root"]
    size_gib: int | None = Field(description="Size of the disk in GiB; null: not a disk.")
    recipe: str = Field(description="Key of the base tree.")
    installed: tuple[Operation, ...] = Field(description="Operations carried out in it, in this order.")
    left: dict[str, tuple[str, ...]] = Field(
        description="Role -> operations left to the first run on a node."
    )
    differing: dict[str, tuple[str, ...]] = Field(
        description="Those of them that are left because they are not the same on all evaluated nodes."
    )
    packages: tuple[Package, ...]
    files: tuple[Artefact, ...]


def packages(text: str) -> tuple[Package, ...]:
    """Packages from the output of PACKAGE_QUERY; ImageError for one that is not whole."""
    found = []
    for line in text.splitlines():
        name, version, architecture, source, source_version, status = line.split("\t")
        if status.strip() in ("ii", "hi"):
            found.append(
                Package(
                    name=name.partition(":")[0],
                    version=version,
                    architecture=architecture,
                    source=source,
                    source_version=source_version,
                )
            )
        elif status[1] not in "cn":  # removed with its configuration left, or never installed
            raise ImageError(
                f"package {name} {version} is half installed in the image: dpkg has it as {status!r}"
            )
    return tuple(found)


def artefacts(paths: Sequence[Path]) -> tuple[Artefact, ...]:
    """These files with their digests."""
    found = []
    for path in paths:
        with path.open("rb") as file:
            digest = file_digest(file, "sha256").hexdigest()
        found.append(Artefact(name=path.name, bytes=path.stat().st_size, sha256=digest))
    return tuple(found)


def write(manifest: Manifest, folder: Path) -> None:
    """Write manifest.json."""
    (folder / NAME).write_text(manifest.model_dump_json(indent=2, by_alias=True) + "\n")


def read(folder: Path) -> Manifest | None:
    """The manifest of a built image; None where there is none that this version reads."""
    try:
        return Manifest.model_validate_json((folder / NAME).read_text())
    except (OSError, ValueError):
        return None
