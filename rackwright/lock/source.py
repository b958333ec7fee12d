"""What a package source has: from the shipped table, or from a package index where one is named."""

from __future__ import annotations

import re

from rackwright.catalog.kernels import KernelOffer
from rackwright.catalog.offers import DriverOffer, Modules, Offer, OfferTable
from rackwright.lock.index import Index
from rackwright.lock.versions import debian_key, numbers, upstream
from rackwright.model.gpu_stack import GpuStack
from rackwright.osfamily.known import OsRelease

_CUDA_TOOLKIT = re.compile(r"cuda-toolkit-([0-9]+)-([0-9]+)")
_OPEN = re.compile(r"nvidia-open|nvidia-dkms-[0-9]+-open|nvidia-open-kernel-dkms")
_PROPRIETARY = re.compile(r"cuda-drivers|nvidia-dkms-[0-9]+|nvidia-kernel-dkms")


def offer_for(table: OfferTable, wanted: GpuStack, os: OsRelease, index: Index) -> Offer | None:
    """What the requested source offers for an OS; None where the tables do not list it.

    A mirror has what its index lists or, without an index, what NVIDIA's repositories are known to have.
    An index read for NVIDIA's repositories takes the place of the table; for a distribution's archive
    it only adds hashes, since the table knows more about it (suites, what builds). Indexes without a
    driver, e.g. of the OS's own archive, describe kernels alone.
    """
    source = "nvidia" if wanted.source == "mirror" else wanted.source
    row = next((row for row in table.rows if row.source == source and os in row.os), None)
    described = any(_kinds(name) for name in index.packages)
    if wanted.source != "distribution" and described:
        return _from_index(index, os, wanted, row, table)
    if row is not None and described:
        return row.model_copy(update={"indexed": True})
    if row is not None and wanted.source == "mirror":
        return row.model_copy(update={"source": "mirror", "name": "The mirror"})
    return row


def _from_index(index: Index, os: OsRelease, wanted: GpuStack, row: Offer | None, table: OfferTable) -> Offer:
    by_version: dict[str, set[Modules]] = {}
    for name, entries in index.packages.items():
        kinds = _kinds(name)
        for entry in entries:
            if kinds and re.fullmatch(r"[0-9]+(\.[0-9]+)*", upstream(entry.version)):
                by_version.setdefault(upstream(entry.version), set()).update(kinds)
    return Offer(
        source=wanted.source,
        name="The mirror" if wanted.source == "mirror" else "NVIDIA's repository",
        os=(os,),
        whole=True,
        indexed=True,
        drivers=tuple(
            DriverOffer(version=version, modules=tuple(sorted(by_version[version])))
            for version in sorted(by_version, key=numbers)
        ),
        fabricmanager=any(
            name.startswith(("nvidia-fabricmanager", "nvidia-fabric-manager")) for name in index.packages
        ),
        imex=any(name.startswith("nvidia-imex") for name in index.packages),
        nvlsm="nvlsm" in index.packages,
        dcgm=_versions(index, "datacenter-gpu-manager-4-core"),
        container_toolkit=_versions(index, "nvidia-container-toolkit"),
        nccl=_versions(index, "libnccl2") or _versions(index, "libnccl"),
        cuda=_cuda(index),
        doca=None if row is None else row.doca,
        sources=table.sources if row is None else row.sources,
    )


def _kinds(name: str) -> list[Modules]:
    """Kinds of kernel modules that a package provides."""
    kinds: list[Modules] = ["open"] if _OPEN.fullmatch(name) else []
    return kinds + (["proprietary"] if _PROPRIETARY.fullmatch(name) else [])


def kernels_of(index: Index, os: OsRelease, cpu: str) -> tuple[KernelOffer, ...]:
    """The usual kernels that package indexes list, oldest first."""
    found = {
        release: entry.version
        for name, entries in index.packages.items()
        for entry in entries
        if (release := os.family.kernel_of(name, entry.version, cpu)) is not None
    }
    return tuple(
        KernelOffer(release=release, version=version, upstream=_upstream(version))
        for release, version in sorted(found.items(), key=lambda kernel: debian_key(kernel[1]))
    )


def kernel_named(os: OsRelease, cpu: str, text: str) -> KernelOffer | None:
    """A kernel that only the cluster file names: its revision is not known, where the name does not have it."""
    release = os.family.kernel_release(text, cpu)
    if release is None:
        return None
    version = release.split(f".{cpu}")[0] if f".{cpu}" in release else "*"
    return KernelOffer(release=release, version=version, upstream=_upstream(release), default=False)


def _upstream(version: str) -> str:
    found = re.match(r"[0-9]+(\.[0-9]+)*", version.rpartition(":")[2])
    return found[0] if found else "0"


def _versions(index: Index, name: str) -> tuple[str, ...]:
    found = {upstream(entry.version) for entry in index.packages.get(name, ())}
    return tuple(sorted(found, key=numbers))


def _cuda(index: Index) -> dict[str, str]:
    matches = [match for name in index.packages if (match := _CUDA_TOOLKIT.fullmatch(name))]
    return {f"{match[1]}.{match[2]}": f"{match[1]}.{match[2]}.*" for match in matches}
