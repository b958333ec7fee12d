"""Solves the whole cluster: each kind of GPU node to exact versions, or to the reasons why that is impossible."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.errors import RackwrightError
from rackwright.lock.choice import choose
from rackwright.lock.content import GroupLock, Lock
from rackwright.lock.index import Index
from rackwright.lock.lock_file import requested_stack
from rackwright.lock.names import packages_of
from rackwright.lock.notes import needed_indexes, notes
from rackwright.lock.refusals import refusals
from rackwright.lock.request import StackRequest, Tables
from rackwright.lock.source import offer_for
from rackwright.lock.words import Refusal
from rackwright.model.cluster import Cluster
from rackwright.model.gpu_stack import GpuStack
from rackwright.model.sku import Architecture


@dataclass(frozen=True)
class Refused:
    """A kind of node that cannot get the stack that was requested, with every reason."""

    sku: str
    os: str
    source: str
    reasons: tuple[Refusal, ...]


@dataclass(frozen=True)
class Solution:
    """A lock, and the kinds of node that were refused."""

    lock: Lock
    refused: tuple[Refused, ...]
    skipped: tuple[str, ...]
    """SKUs with GPUs that have no NVIDIA stack."""


def solve(cluster: Cluster, tables: Tables, index: Index) -> Solution:
    """The lock of a cluster. Raises RackwrightError if the file has no section gpu_stack."""
    if cluster.gpu_stack is None:
        raise RackwrightError(
            f"{cluster.path.name} has no section gpu_stack to lock.",
            hint='e.g. `gpu_stack: {source: nvidia, driver: {branch: "580"}}`',
        )
    groups: list[GroupLock] = []
    refused: list[Refused] = []
    requests, skipped = _requests(cluster, cluster.gpu_stack, tables, index)
    for request in requests:
        answer = solve_group(request)
        if isinstance(answer, GroupLock):
            groups.append(answer)
        else:
            refused.append(Refused(request.sku.name, request.os.id, request.wanted.source, answer))
    stack, places = requested_stack(cluster)
    lock = Lock(
        cluster=cluster.name,
        tables=tables.dates(),
        index=places,
        index_sha256=dict(zip(places, index.sha256, strict=False)),
        gpu_stack=stack,
        groups=tuple(groups),
    )
    return Solution(lock, tuple(refused), skipped)


def _requests(
    cluster: Cluster, wanted: GpuStack, tables: Tables, index: Index
) -> tuple[list[StackRequest], tuple[str, ...]]:
    """One request for each kind of node with NVIDIA GPUs, sorted; and the SKUs left out."""
    kinds = {(node.sku.name, node.os): node.sku for node in cluster.nodes if node.sku.gpus is not None}
    requests, skipped = [], set()
    for (name, os), sku in sorted(kinds.items(), key=lambda kind: (kind[0][0], kind[0][1].id)):
        if sku.gpus is None:
            continue
        if sku.gpus.architecture is Architecture.CDNA3:
            skipped.add(name)
            continue
        offer = offer_for(tables.offers, wanted, os, index)
        requests.append(StackRequest(sku, sku.gpus, os, wanted, tables, index, offer))
    return requests, tuple(sorted(skipped))


def solve_group(request: StackRequest) -> GroupLock | tuple[Refusal, ...]:
    """The lock of one kind of node, or every reason against it."""
    choice = choose(request)
    reasons = list(refusals(request, choice))
    components = packages_of(request, choice)
    exact, hashes, missing = _look_up(request, components)
    if not reasons:
        reasons = missing
    if reasons or choice.driver is None:
        return tuple(reasons)
    return GroupLock(
        sku=request.sku.name,
        os=request.os,
        source=request.wanted.source,
        kernel=None if choice.kernel is None else choice.kernel.release,
        driver_branch=choice.driver.branch,
        driver_version=choice.driver.version,
        open_modules=choice.modules == "open",
        cuda=choice.cuda,
        fabricmanager=request.needs_fabricmanager,
        nvlsm=request.needs_nvlsm,
        imex=choice.imex,
        ofed="inbox" if choice.doca is None else "doca",
        packages=dict(sorted(exact.items())),
        components={component: tuple(sorted(part)) for component, part in components.items()},
        sha256=hashes,
        needs_index=tuple(needed_indexes(request, components, exact)),
        notes=tuple(notes(request, choice, exact)),
    )


def _look_up(
    request: StackRequest, components: dict[str, dict[str, str]]
) -> tuple[dict[str, str], dict[str, str], list[Refusal]]:
    """Versions to the last revision and hashes, where an index was read; and what it lacks.

    An index of NVIDIA's repository has no kernels and one of the OS's archive may have nothing else: what
    no index describes stays as the tables have it.
    """
    exact, hashes, missing = {}, {}, []
    for part, names in components.items():
        described = bool(request.indexed_kernels) if part == "kernel" else request.index_has_stack
        for name, pattern in names.items():
            exact[name] = pattern
            entry = request.index.best(name, pattern) if request.index.packages else None
            if entry is not None:
                exact[name] = entry.version
                if entry.sha256 is not None:
                    hashes[name] = entry.sha256
            elif described:
                what = name if pattern == "*" else f"{name} {pattern}"
                hint = "add every index of the source to `gpu_stack.package_index`"
                missing.append(Refusal(f"The package index has no {what}.", hint))
    return exact, hashes, missing
