"""Notes of a lock: information for its reader that does not prevent it."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.catalog.offers import Offer
from rackwright.catalog.tables import Branch
from rackwright.lock.choice import pair_of, usual_kernels
from rackwright.lock.request import Choice, StackRequest
from rackwright.lock.safety import below_minimum
from rackwright.lock.versions import debian_key
from rackwright.model.sku import Architecture

_FIELD_OF = {"DCGM": "dcgm", "container toolkit": "container_toolkit", "CUDA toolkit": "cuda", "NCCL": "nccl"}


def notes(request: StackRequest, choice: Choice, packages: dict[str, str]) -> Iterator[str]:
    """All of them, the driver's first."""
    offer, driver = request.offer, choice.driver
    if offer is None or driver is None:
        return
    branch = _branch(request, driver.branch)
    if branch is not None and branch.end_of_life is not None:
        read = max(source.read for source in request.tables.drivers.sources)
        if branch.end_of_life < read.isoformat()[:7]:
            yield f"Driver branch {branch.branch} reached its end of life in {branch.end_of_life}."
    yield from below_minimum(request, choice)
    yield from _hardware(request)
    yield from _kernel(request, choice)
    yield from _left_out(request, choice, offer)
    if request.wanted.source == "mirror" and not request.index_has_stack:
        yield "The mirror's index was not read; the mirror is assumed to match NVIDIA's repositories."
    if any("*" in version for version in packages.values()):
        yield (
            "Some versions end in `*`: their revisions are unknown, so two nodes could get different ones; "
            "`needs_index` lists the indexes that have them."
        )


def needed_indexes(
    request: StackRequest, components: dict[str, dict[str, str]], exact: dict[str, str]
) -> list[str]:
    """Package indexes that would make this lock exact, as `gpu_stack.package_index` takes them."""
    stack, kernels = request.os.indexes(request.sku.cpu_architecture)
    loose = {part for part, names in components.items() if any("*" in exact[name] for name in names)}
    needed = []
    if loose - {"kernel", "ofed"}:
        other = {"mirror": "the mirror's index", "distribution": f"the index of {request.os}'s own archive"}
        needed.append(other.get(request.wanted.source, stack))
    if "ofed" in loose:
        needed.append("the index of the site's DOCA-Host repository")
    if "kernel" in loose or "kernel" not in components:
        needed.append(kernels or f"the index of {request.os}'s own archive")
    return list(dict.fromkeys(needed))


def _hardware(request: StackRequest) -> Iterator[str]:
    gpus = request.gpus
    if (
        gpus.architecture is Architecture.BLACKWELL
        and gpus.minimum_driver is None
        and request.capability is None
    ):
        yield (
            f"The first driver and CUDA release for {request.product} are those of its architecture: declare "
            "`compute_capability` or `minimum_driver` of the SKU's GPUs."
        )


def _left_out(request: StackRequest, choice: Choice, offer: Offer) -> Iterator[str]:
    for what, chosen in (
        ("DCGM", choice.dcgm),
        ("container toolkit", choice.container_toolkit),
        ("CUDA toolkit", choice.cuda),
        ("NCCL", choice.nccl),
    ):
        if chosen is not None or getattr(request.wanted, _FIELD_OF[what]) is not None:
            continue
        if offer.whole:
            yield f"No {what}: {offer.name} for {request.os} has none."
        else:
            yield (
                f"No {what}: the shipped table of {offer.read} for {offer.name} on {request.os} lists none that fits; "
                "an index in `gpu_stack.package_index` may have one."
            )


def _kernel(request: StackRequest, choice: Choice) -> Iterator[str]:
    kernel, archive = choice.kernel, request.archive
    if kernel is None:
        cpu = request.sku.cpu_architecture
        example = f"`{archive.kernels[-1].release}`" if archive else "the `uname -r` of a working node"
        yield (
            f"The kernel is not locked: the shipped tables have no default for {request.os} on {cpu}. Set `gpu_stack.kernel`, "
            f"e.g. to {example}, or add the index of the OS archive to `gpu_stack.package_index`."
        )
        return
    indexed = request.indexed_kernels
    if not indexed and archive is not None and not archive.whole and request.wanted.kernel is None:
        yield (
            f"The kernel {kernel.release} is the newest in the shipped table of {archive.read}; the archive may have a newer "
            "one. Set `gpu_stack.kernel` to use another."
        )
    latest = max(usual_kernels(request), key=lambda other: debian_key(other.version), default=kernel)
    pair = pair_of(request, choice.driver, choice.modules, kernel)
    if pair is None:
        yield f"It is unknown whether the driver builds against the headers of {kernel.release}."
    elif kernel != latest:
        yield (
            f"The kernel is {kernel.release} ({kernel.version}) instead of the newest, "
            f"{latest.release} ({latest.version}): the driver is known to build only against the former."
        )


def _branch(request: StackRequest, name: str) -> Branch | None:
    return next((row for row in request.tables.drivers.rows if row.branch == name), None)
