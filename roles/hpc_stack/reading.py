"""What MPI's, NCCL's and the loader's tools print, read into types."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rackwright.claims.check import Undetermined, fail


@dataclass(frozen=True)
class OpenMpi:
    """What `ompi_info --parsable --all` reports of a build."""

    version: str
    components: frozenset[str]
    """`framework:name`, e.g. `pml:ucx`."""
    cuda: bool


def parse_ompi_info(text: str) -> OpenMpi:
    """Lines `ompi:version:full:5.0.7`, `mca:pml:ucx:version:...`, `..._cuda_support:value:true`."""
    version = re.search(r"^ompi:version:full:(\S+)$", text, re.MULTILINE)
    if version is None:
        raise Undetermined(f"ompi_info reports no version: {text.strip()[:80]!r}")
    return OpenMpi(
        version[1],
        frozenset(re.findall(r"^mca:(\w+:\w+):version:", text, re.MULTILINE)),
        re.search(r"mpi_built_with_cuda_support:value:\"?true", text) is not None,
    )


def parse_ldd(text: str) -> dict[str, str | None]:
    """`libnccl.so.2 => /usr/lib/libnccl.so.2 (0x...)`: path by library; None: not found."""
    found: dict[str, str | None] = {}
    for name, path in re.findall(r"^\s*(\S+) => (not found|/\S+)", text, re.MULTILINE):
        found[name] = None if path == "not found" else path
    return found


def library(loaded: dict[str, str | None], stem: str) -> str:
    """The path of one library of a program. Undetermined where the program does not ask for it."""
    named = [path for name, path in loaded.items() if name.startswith(f"{stem}.so")]
    if not named:
        raise Undetermined(f"ldd lists no {stem}")
    if named[0] is None:
        fail(f"{stem} is not found by the loader")
    return named[0]
