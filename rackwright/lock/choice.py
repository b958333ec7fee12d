"""Chooses a version of each component as far as the sources allow; rackwright.lock.refusals checks the result."""

from __future__ import annotations

from rackwright.catalog.kernels import KernelOffer
from rackwright.catalog.offers import DriverOffer, Modules
from rackwright.catalog.tables import Pair
from rackwright.lock.names import module_package
from rackwright.lock.request import Choice, StackRequest
from rackwright.lock.source import kernel_named
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
        driver_major=_driver_major(request, driver),
    )


def _modules(request: StackRequest) -> Modules:
    if request.wanted.modules != "auto":
        return request.wanted.modules
    return "proprietary" if request.rule and "open" not in request.rule.modules else "open"


def _driver(request: StackRequest, modules: Modules) -> DriverOffer | None:
    """The newest driver that is asked for and fits: the board first, then security, then the usual branch."""
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
    usual = request.tables.drivers.default_branch

    def rank(driver: DriverOffer) -> tuple[object, ...]:
        return (
            modules in driver.modules,
            _supports(request, driver),
            is_safe(request, driver),
            driver.branch == usual,
            numbers(driver.version),
            driver.default,
        )

    return max(offered, key=rank, default=None)


def _supports(request: StackRequest, driver: DriverOffer) -> bool:
    """Whether a driver is neither too old nor too new for the board."""
    minimum, last = request.minimum_driver, request.rule.last_branch if request.rule else None
    new_enough = minimum is None or at_least(driver.version, minimum)
    return new_enough and (last is None or int(driver.branch) <= int(last))


def is_safe(request: StackRequest, driver: DriverOffer) -> bool:
    """Whether a driver is at or above the minimum-security version of its branch, as far as that is known."""
    minimum = minimum_of(request, "nvidia-driver", driver.branch)
    return minimum is not None and at_least(driver.version, minimum)


def _driver_major(request: StackRequest, driver: DriverOffer | None) -> int | None:
    if driver is None:
        return None
    branches = (row for row in request.tables.drivers.rows if row.branch == driver.branch and row.cuda)
    cuda = next((row.cuda for row in branches), None)
    if cuda is not None:
        return int(cuda.split(".")[0])
    floors = request.tables.cuda.floors
    return max((floor.major for floor in floors if at_least(driver.version, floor.driver)), default=None)


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
    if request.wanted.kernel is not None:
        known = request.indexed_kernels or (request.archive.kernels if request.archive else ())
        return _named(request, request.wanted.kernel, known)

    def rank(kernel: KernelOffer) -> tuple[int, object]:
        pair = pair_of(request, driver, modules, kernel)
        return (1 if pair is None else 2 if pair.builds else 0), debian_key(kernel.version)

    return max(usual_kernels(request), key=rank, default=None)


def usual_kernels(request: StackRequest) -> list[KernelOffer]:
    """Kernels to choose from: of the release's own series, where it is known, and not of HWE beside it."""
    listed = [kernel for kernel in request.archive.kernels if kernel.default] if request.archive else []
    known = list(request.indexed_kernels) or listed
    own = {numbers(kernel.upstream)[:2] for kernel in listed}
    return [kernel for kernel in known if numbers(kernel.upstream)[:2] in own] or known


def _named(request: StackRequest, wanted: str, known: tuple[KernelOffer, ...]) -> KernelOffer | None:
    """The kernel that the cluster file names; None: it is not one, or an archive that was read whole lacks it."""
    cpu = request.sku.cpu_architecture
    release = request.os.family.kernel_release(wanted, cpu)
    found = next((kernel for kernel in known if kernel.release == release), None)
    whole = request.archive is not None and request.archive.whole and not request.indexed_kernels
    return found if found is not None or whole else kernel_named(request.os, cpu, wanted)


def _cuda(request: StackRequest, driver: DriverOffer | None) -> str | None:
    wanted, offer = request.wanted.cuda, request.offer
    if wanted is not None:
        return None if wanted == "none" else wanted
    if offer is None or offer.cuda is None or driver is None:
        return None
    if offer.source == "distribution":
        return next(iter(offer.cuda), None)
    last = request.rule.last_cuda_major if request.rule else None
    first = request.minimum_cuda
    releases = {
        row.release
        for row in request.tables.cuda.rows
        if row.release in offer.cuda
        and (last is None or numbers(row.release)[0] <= last)
        and (first is None or at_least(row.release, first))
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
