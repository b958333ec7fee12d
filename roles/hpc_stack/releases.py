"""Sources that are built: where upstream publishes them, and SHA-256 of the releases known here."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from rackwright.model.options import Frozen

Part = Literal["openmpi", "ucx", "pmix", "nccl_tests"]
Flag = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_@%+=:,./ -]+$")]


class Release(Frozen):
    """One source tarball, and what configure is given besides the role's own flags."""

    version: str = Field(pattern=r"^[0-9]+(\.[0-9]+){1,3}$", description="Release, e.g. 5.0.10.")
    file: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._+~-]*\.tar\.(gz|bz2|xz)$",
        description="Tarball on `mirrors.files`. None: upstream's name, from the mirror or from upstream.",
    )
    sha256: str | None = Field(
        default=None,
        pattern=r"^[0-9a-f]{64}$",
        description="SHA-256 of the tarball. None: the published one, known for some releases.",
    )
    flags: tuple[Flag, ...] = Field(
        default=(),
        description="After the role's own: arguments of configure, e.g. `--disable-oshmem`; of nccl-tests, of make.",
    )


UPSTREAM: dict[Part, tuple[str, str]] = {
    "openmpi": ("https://download.open-mpi.org/release/open-mpi/v{series}/", "openmpi-{version}.tar.bz2"),
    "ucx": ("https://github.com/openucx/ucx/releases/download/v{version}/", "ucx-{version}.tar.gz"),
    "pmix": ("https://github.com/openpmix/openpmix/releases/download/v{version}/", "pmix-{version}.tar.bz2"),
    "nccl_tests": ("https://github.com/NVIDIA/nccl-tests/archive/refs/tags/v{version}.tar.gz", ""),
}
"""Folder and file; GitHub's archive of a tag has neither a file name nor a published checksum."""

# Each in two places that do not copy each other, read 2026-11-23: EasyBuild's and Spack's package files (ucx,
# pmix 5.0.8), EasyBuild's OpenMPI-5.0.10-GCC-15.2.0.eb and an RPM spec (openmpi), Spack and the source index of
# packages.microsoft.com's slurm-ubuntu-noble (pmix 4.2.9). Open MPI 5.0.10 with PMIx 4.2.9 is what
# Azure/azhpc-images pins.
KNOWN: dict[tuple[Part, str], str] = {
    ("openmpi", "5.0.10"): "0acecc4fc218e5debdbcb8a41d182c6b0f1d29393015ed763b2a91d5d7374cc6",
    ("ucx", "1.20.0"): "7c8a6093cada179aa1d851b83625e3b25ed5658966e309de5118c27a038c7ef9",
    ("pmix", "4.2.9"): "6b11f4fd5c9d7f8e55fc6ebdee9af04b839f44d06044e58cea38c87c168784b3",
    ("pmix", "5.0.8"): "bf5f0a341d0ec7f465627a7570f4dcda3b931bc859256428a35f6c72f13462d0",
}


def sha256_of(part: Part, release: Release) -> str | None:
    """The declared digest, else the published one of upstream's own file; None: not known."""
    return release.sha256 or (None if release.file else KNOWN.get((part, release.version)))


def tarball(part: Part, release: Release) -> str:
    """The file's name, on a mirror and on the node."""
    own = UPSTREAM[part][1].format(version=release.version)
    return release.file or own or f"{part.replace('_', '-')}-{release.version}.tar.gz"


def url(part: Part, release: Release, mirror: str | None) -> str | None:
    """Where the tarball comes from; None where it is a file of the site's and the site has no mirror."""
    if mirror is not None:
        return f"{mirror.rstrip('/')}/{tarball(part, release)}"
    if release.file is not None:
        return None
    folder, file = UPSTREAM[part]
    series = ".".join(release.version.split(".")[:2])
    return (folder + file).format(version=release.version, series=series)


def numbers(version: str) -> tuple[int, ...]:
    """Compares 4.2.9 with 5.0.10."""
    return tuple(int(part) for part in version.split("."))
