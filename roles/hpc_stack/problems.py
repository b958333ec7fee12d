"""Mistakes of the hpc_stack section that only show against the resolved cluster, and against the lock."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.errors import RackwrightError
from rackwright.lock.for_roles import Trouble, has_stack, lock_problems
from rackwright.lock.lock_file import read_lock
from rackwright.model.cluster import Cluster, Node
from rackwright.roles.hpc_stack.capabilities import capability_of, compiles
from rackwright.roles.hpc_stack.options import HpcStackOptions
from rackwright.roles.hpc_stack.releases import KNOWN, Part, Release, numbers, sha256_of, url

_PMIX_FIRST, _PMIX_END = (4, 2, 0), (6,)
"""Open MPI 5.0 asks for 4.2.0 (open-mpi/ompi#11998); PRRTE 3, which it contains, refuses 6 (openpmix/prrte#2237).
Read 2026-11-23."""


def built(options: HpcStackOptions) -> dict[Part, Release]:
    """What a node with GPUs builds, in the order in which it is needed."""
    found: dict[Part, Release] = {}
    if options.mpi == "build":
        if isinstance(options.pmix, Release):
            found["pmix"] = options.pmix
        if isinstance(options.ucx, Release):
            found["ucx"] = options.ucx
        found["openmpi"] = options.openmpi
    if options.nccl_tests is not None:
        found["nccl_tests"] = options.nccl_tests
    return found


def problems_of(options: HpcStackOptions, cluster: Cluster) -> Iterator[Trouble]:
    """Everything but the lock."""
    nodes = cluster.running("hpc_stack", options)
    for part, release in built(options).items():
        yield from _source(cluster, part, release)
    if isinstance(options.pmix, Release) and not _PMIX_FIRST <= numbers(options.pmix.version) < _PMIX_END:
        yield (
            "pmix.version",
            f"Open MPI 5.0 needs PMIx 4.2 or newer, and older than 6; this is {options.pmix.version}.",
            "e.g. `4.2.9`",
        )
    gpus = [node for node in nodes if has_stack(node)]
    if options.nccl_tests is not None:
        yield from _nccl_tests(options, gpus)
    if options.nccl and not gpus:
        yield "nccl", "No node of the role hpc_stack has NVIDIA's GPUs, which NCCL is for.", "remove `nccl`"


def _source(cluster: Cluster, part: Part, release: Release) -> Iterator[Trouble]:
    if sha256_of(part, release) is None:
        known = sorted(version for name, version in KNOWN if name == part)
        yield (
            f"{part}.sha256",
            f"The SHA-256 of {part} {release.version} is not declared.",
            f"declare `sha256` of its tarball{f', or take {known[-1]}' if known and not release.file else ''}",
        )
    if url(part, release, cluster.mirrors.files) is None:
        yield (
            f"{part}.file",
            f"The cluster has no `mirrors.files` that {release.file} could come from.",
            "set `mirrors.files`, or remove `file` to take upstream's",
        )


def _nccl_tests(options: HpcStackOptions, gpus: list[Node]) -> Iterator[Trouble]:
    if not gpus:
        yield "nccl_tests", "No node of the role hpc_stack has NVIDIA's GPUs, which nccl-tests is for.", None
    for node in gpus:
        if "cuda" not in node.options:
            yield (
                "nccl_tests",
                f"{node.name} has no CUDA toolkit, with which nccl-tests is compiled.",
                "add a section cuda",
            )
            return
        if not options.compute_capabilities and node.sku.gpus and capability_of(node.sku.gpus) is None:
            yield (
                "compute_capabilities",
                f"The compute capability of {node.sku.gpus.model} ({node.sku.name}) is not known.",
                'declare it, e.g. `compute_capabilities: ["9.0"]`',
            )
            return


def lock_problems_of(options: HpcStackOptions, cluster: Cluster) -> Iterator[Trouble]:
    """What the lock lacks for the nodes of these options."""
    nodes = [node for node in cluster.running("hpc_stack", options) if options.has_nccl(cluster, node)]
    if not nodes:
        return
    found = list(lock_problems(cluster, "hpc_stack"))
    yield from found or _missing(options, cluster, nodes)


def _missing(options: HpcStackOptions, cluster: Cluster, nodes: list[Node]) -> Iterator[Trouble]:
    try:
        lock = read_lock(cluster)
    except RackwrightError:
        return  # lock_problems reports it
    for node in {(node.sku.name, node.os.id): node for node in reversed(nodes)}.values():
        group = lock.group_of(node)
        if group is None:
            continue
        if not group.components.get("nccl"):
            yield (
                "",
                f"The lock leaves nccl out for {node.sku.name} on {node.os}.",
                "set `gpu_stack.nccl` and lock again, or set `nccl: false`",
            )
        if options.nccl_tests is None:
            continue
        if group.cuda is None:
            yield (
                "nccl_tests",
                f"The lock leaves cuda out for {node.sku.name} on {node.os}.",
                "set `gpu_stack.cuda` and lock again, or remove `nccl_tests`",
            )
            continue
        for capability in capabilities(options, node):
            if (why := compiles(group.cuda, capability)) is not None:
                yield "nccl_tests", f"{why} ({node.sku.name}).", "lock another `gpu_stack.cuda`"


def capabilities(options: HpcStackOptions, node: Node) -> tuple[str, ...]:
    """What nccl-tests is compiled for on a node."""
    own = capability_of(node.sku.gpus) if node.sku.gpus is not None else None
    return options.compute_capabilities or ((own,) if own is not None else ())
