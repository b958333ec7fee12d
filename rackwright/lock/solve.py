"""Solves the whole cluster: each kind of node with GPUs to exact versions, or to the reasons why not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from rackwright.catalog.tables import Branch
from rackwright.errors import RackwrightError
from rackwright.lock.choice import choose, pair_of
from rackwright.lock.content import GroupLock, Lock
from rackwright.lock.index import Index
from rackwright.lock.lock_file import requested_stack
from rackwright.lock.names import packages_of
from rackwright.lock.refusals import refusals
from rackwright.lock.request import Choice, StackRequest, Tables
from rackwright.lock.safety import below_minimum
from rackwright.lock.source import offer_for
from rackwright.lock.versions import debian_key
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
            f"{cluster.path.name} has no section gpu_stack, so there is nothing to lock.",
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
        cluster=cluster.name, tables=tables.dates(), index=places, gpu_stack=stack, groups=tuple(groups)
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
    packages = {name: version for part in components.values() for name, version in part.items()}
    exact, hashes, missing = _look_up(request, packages)
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
        notes=tuple(_notes(request, choice, exact)),
    )


def _look_up(
    request: StackRequest, packages: dict[str, str]
) -> tuple[dict[str, str], dict[str, str], list[Refusal]]:
    """Versions to the last revision and hashes, where an index was read; and what it lacks."""
    exact, hashes, missing = dict(packages), {}, []
    for name, pattern in packages.items() if request.index.packages else ():
        entry = request.index.best(name, pattern)
        if entry is None:
            what = name if pattern == "*" else f"{name} {pattern}"
            missing.append(
                Refusal(
                    f"The package index has no {what}.",
                    "add every index of the source to `gpu_stack.package_index`",
                )
            )
            continue
        exact[name] = entry.version
        if entry.sha256 is not None:
            hashes[name] = entry.sha256
    return exact, hashes, missing


def _notes(request: StackRequest, choice: Choice, packages: dict[str, str]) -> Iterator[str]:
    offer, driver = request.offer, choice.driver
    if offer is None or driver is None:
        return
    branch = _branch(request, driver.branch)
    if branch is not None and branch.end_of_life is not None:
        read = max(source.read for source in request.tables.drivers.sources)
        if branch.end_of_life < read.isoformat()[:7]:
            yield f"Driver branch {branch.branch} reached its end of life in {branch.end_of_life}."
    yield from below_minimum(request, choice)
    if request.gpus.architecture is Architecture.BLACKWELL and request.gpus.minimum_driver is None:
        yield f"The tables do not have the first driver that supports {request.product}."
    yield from _kernel_notes(request, choice)
    for what, chosen in (
        ("DCGM", choice.dcgm),
        ("container toolkit", choice.container_toolkit),
        ("CUDA toolkit", choice.cuda),
        ("NCCL", choice.nccl),
    ):
        if chosen is None and getattr(request.wanted, _FIELD_OF[what]) is None:
            yield f"No {what}: {offer.name} for {request.os} is not known to have one."
    if request.wanted.source == "mirror" and not request.index.packages:
        yield "The mirror's index was not read; it is assumed to have what NVIDIA's repositories have."
    if any("*" in version for version in packages.values()):
        yield "Some versions end in `*`: without a package index their revisions are not known."


def _kernel_notes(request: StackRequest, choice: Choice) -> Iterator[str]:
    kernel, offer = choice.kernel, request.offer
    if kernel is None or offer is None:
        yield f"The tables have no kernel of {request.os}: it is not locked."
        return
    latest = max(
        (other for other in offer.kernels if other.default),
        key=lambda other: debian_key(other.version),
        default=kernel,
    )
    pair = pair_of(request, choice.driver, choice.modules, kernel)
    if pair is None:
        yield f"It is not known whether the driver builds against the headers of {kernel.release}."
    elif kernel != latest:
        yield (
            f"The kernel is {kernel.release} ({kernel.version}) and not the newest, "
            f"{latest.release} ({latest.version}): the driver is known to build against the first only."
        )


_FIELD_OF = {"DCGM": "dcgm", "container toolkit": "container_toolkit", "CUDA toolkit": "cuda", "NCCL": "nccl"}


def _branch(request: StackRequest, name: str) -> Branch | None:
    return next((row for row in request.tables.drivers.rows if row.branch == name), None)
