"""Chooses a version of everything, as well as the offers allow; rackwright.lock.refusals judges it after."""

from __future__ import annotations

from rackwright.catalog.offers import DriverOffer, KernelOffer, Modules
from rackwright.catalog.tables import Pair
from rackwright.lock.names import module_package
from rackwright.lock.request import Choice, StackRequest
from rackwright.lock.versions import at_least, debian_key, numbers
from rackwright.model.gpu_stack import ToolkitVersions


def choose(request: StackRequest) -> Choice:
    """A choice for one kind of node."""
    offer, wanted = request.offer, request.wanted
    modules = _modules(request)
    driver = _driver(request, modules)
    toolkit = wanted.container_toolkit
    if isinstance(toolkit, ToolkitVersions):
        toolkit = toolkit.distinct()[0]
    doca = wanted.doca or request.tables.offers.default_doca
    return Choice(
        modules=modules,
        driver=driver,
        kernel=_kernel(request, driver, modules),
        cuda=_cuda(request, driver),
        dcgm=_one_of(wanted.dcgm, request.tables.offers.default_dcgm, offer.dcgm if offer else None),
        container_toolkit=_one_of(
            toolkit,
            request.tables.offers.default_container_toolkit,
            offer.container_toolkit if offer else None,
        ),
        nccl=_one_of(wanted.nccl, request.tables.offers.default_nccl, offer.nccl if offer else None),
        doca=doca if wanted.ofed == "doca" else None,
        imex=request.needs_imex if wanted.imex is None else wanted.imex,
    )


def _modules(request: StackRequest) -> Modules:
    if request.wanted.modules != "auto":
        return request.wanted.modules
    return "proprietary" if request.rule and "open" not in request.rule.modules else "open"


def _driver(request: StackRequest, modules: Modules) -> DriverOffer | None:
    """The newest driver that is asked for; among equals one that is not known to fail."""
    if request.offer is None:
        return None
    wanted = request.wanted.driver
    offered = [
        driver
        for driver in request.offer.drivers
        if (wanted.version or wanted.branch or driver.default)
        and wanted.version in (None, driver.version)
        and wanted.branch in (None, driver.branch)
    ]
    default = request.tables.drivers.default_branch
    if (
        wanted.branch is None
        and wanted.version is None
        and any(driver.branch == default for driver in offered)
    ):
        offered = [driver for driver in offered if driver.branch == default]
    offered = [driver for driver in offered if modules in driver.modules] or offered
    return max(offered, key=lambda driver: (numbers(driver.version), driver.default), default=None)


def pair_of(
    request: StackRequest, driver: DriverOffer | None, modules: Modules, kernel: KernelOffer | None
) -> Pair | None:
    """What is known about building a driver package against a kernel's headers."""
    if driver is None or driver.revision is None or kernel is None:
        return None
    package = module_package(request, driver, modules)
    for pair in request.tables.pairs.rows:
        if (pair.os, pair.package, pair.revision, pair.kernel) == (
            request.os,
            package,
            driver.revision,
            kernel.upstream,
        ):
            return pair
    return None


def _kernel(request: StackRequest, driver: DriverOffer | None, modules: Modules) -> KernelOffer | None:
    """The requested kernel, or the newest: first of those known to build, then of those nothing is known of."""
    if request.offer is None:
        return None
    wanted = request.wanted.kernel
    if wanted is not None:
        return next((kernel for kernel in request.offer.kernels if kernel.release == wanted), None)

    def rank(kernel: KernelOffer) -> tuple[int, object]:
        pair = pair_of(request, driver, modules, kernel)
        return (1 if pair is None else 2 if pair.builds else 0), debian_key(kernel.version)

    return max((kernel for kernel in request.offer.kernels if kernel.default), key=rank, default=None)


def _cuda(request: StackRequest, driver: DriverOffer | None) -> str | None:
    wanted, offer = request.wanted.cuda, request.offer
    if wanted is not None:
        return None if wanted == "none" else wanted
    if offer is None or offer.cuda is None or driver is None:
        return None
    if offer.source == "distribution":
        return next(iter(offer.cuda), None)
    last = request.rule.last_cuda_major if request.rule else None
    releases = {
        row.release
        for row in request.tables.cuda.rows
        if row.release in offer.cuda
        and (last is None or numbers(row.release)[0] <= last)
        and _runs_on(request, row.release, driver)
    }
    native = [
        row.release
        for row in request.tables.cuda.rows
        if row.release in releases and at_least(driver.version, row.driver)
    ]
    best = max(native or releases, key=numbers, default=None)
    minimum = minimum_of(request, "cuda-toolkit", None)
    if request.wanted.security == "enforce" and best and minimum and not at_least(best, minimum):
        safe = [release for release in releases if at_least(release, minimum)]
        return min(safe, key=numbers, default=best)
    return best


def _runs_on(request: StackRequest, release: str, driver: DriverOffer) -> bool:
    floor = cuda_floor(request, release)
    return floor is not None and at_least(driver.version, floor)


def cuda_floor(request: StackRequest, release: str) -> str | None:
    """The driver that every release of this one's major runs on; None: the major is not in the table."""
    major = numbers(release)[0] if numbers(release) else 0
    return next((floor.driver for floor in request.tables.cuda.floors if floor.major == major), None)


def minimum_of(request: StackRequest, component: str, branch: str | None) -> str | None:
    """The minimum-security version; None: the table has none."""
    for row in request.tables.security.rows:
        if row.component == component and row.branch == branch:
            return row.version
    return None


def _one_of(wanted: str | None, default: str, offered: tuple[str, ...] | None) -> str | None:
    """The requested version, or the default where it is offered, or else the newest that is."""
    if wanted is not None:
        return None if wanted == "none" else wanted
    if not offered:
        return None
    return default if default in offered else max(offered, key=numbers)
