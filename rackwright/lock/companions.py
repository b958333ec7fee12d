"""Rules for components that must match the driver: fabricmanager, NVLSM, IMEX, DCGM, container toolkit, NCCL, DOCA."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rackwright.lock.request import Choice, StackRequest
from rackwright.lock.words import INDEX_HINT, Refusal, lacks, listed, unlisted
from rackwright.model.gpu_stack import ToolkitVersions


def companion_rules() -> tuple[Callable[[StackRequest, Choice], Iterator[Refusal]], ...]:
    """The rules of this file."""
    return (_fabricmanager, _nvlsm, _imex, _container_toolkit, _offered, _doca)


def _fabricmanager(request: StackRequest, choice: Choice) -> Iterator[Refusal]:
    offer = request.offer
    if offer is None or not request.needs_fabricmanager or offer.fabricmanager:
        return
    need = (
        f"{request.product} has NVSwitches and needs nvidia-fabricmanager and libnvidia-nscq at the "
        "driver's version"
    )
    if offer.fabricmanager is None:
        yield Refusal(
            f"{need}, which the shipped table of {offer.read} for {offer.name} on {request.os} does not list.",
            INDEX_HINT,
        )
    else:
        yield Refusal(f"{need}; {offer.name} has neither.", "set `gpu_stack.source: nvidia`")


def _nvlsm(request: StackRequest, choice: Choice) -> Iterator[Refusal]:
    offer = request.offer
    if offer is None or not request.needs_nvlsm or offer.nvlsm:
        return
    need = f"{request.product} has NVSwitches of NVLink generation 5 and needs nvlsm"
    yield unlisted(offer, request.os, need, offer.nvlsm)


def _imex(request: StackRequest, choice: Choice) -> Iterator[Refusal]:
    offer = request.offer
    if request.needs_imex and not choice.imex:
        yield Refusal(
            f"{request.product} shares one NVLink domain with other nodes and needs IMEX on each of them; "
            "`imex: false` disables it.",
            "remove `gpu_stack.imex`",
        )
    if choice.imex and not request.needs_imex and request.gpus.nvswitch is not None:
        yield Refusal(
            f"{request.product} shares no NVLink domain with other nodes, so IMEX is not needed.",
            "remove `gpu_stack.imex`",
        )
    if choice.imex and request.needs_imex and offer is not None and not offer.imex:
        need = f"{request.product} needs nvidia-imex at the driver's version"
        yield unlisted(offer, request.os, need, offer.imex)


def _container_toolkit(request: StackRequest, choice: Choice) -> Iterator[Refusal]:
    wanted = request.wanted.container_toolkit
    if isinstance(wanted, ToolkitVersions) and len(wanted.distinct()) > 1:
        yield Refusal(
            "The container toolkit's four packages must have the same version; "
            f"the declared ones are {listed(wanted.distinct())}.",
            f'set `container_toolkit: "{wanted.distinct()[-1]}"`',
        )


def _offered(request: StackRequest, choice: Choice) -> Iterator[Refusal]:
    """Versions that the file requests and the source is not known to have."""
    offer, wanted = request.offer, request.wanted
    if offer is None:
        return
    toolkit = wanted.container_toolkit
    asked: tuple[tuple[str, str | None, tuple[str, ...] | None], ...] = (
        ("DCGM", wanted.dcgm, offer.dcgm),
        ("container toolkit", toolkit if isinstance(toolkit, str) else None, offer.container_toolkit),
        ("NCCL", wanted.nccl, offer.nccl),
    )
    for what, version, has in asked:
        if version is not None and version != "none" and version not in (has or ()):
            yield lacks(offer, request.os, f"{what} {version}", has or ())


def _doca(request: StackRequest, choice: Choice) -> Iterator[Refusal]:
    if choice.doca is None:
        return
    known = {
        release
        for offer in request.tables.offers.rows
        if request.os in offer.os
        for release in offer.doca or ()
    }
    if choice.doca not in known:
        has = f"lists {listed(sorted(known))}" if known else "lists no release"
        read = request.tables.dates()["offers"]
        yield Refusal(
            f"DOCA-Host {choice.doca} is not in the shipped table of {read} for {request.os}, which {has}.",
            "set `gpu_stack.doca` to a listed release, or `ofed: inbox`",
        )
