"""Chooses a version of everything, as well as the offers allow; rackwright.lock.refusals judges it after."""

from __future__ import annotations

from dataclasses import dataclass

from rackwright.catalog.offers import DriverOffer, KernelOffer, Modules
from rackwright.catalog.tables import Pair
from rackwright.lock.names import module_package
from rackwright.lock.question import Question
from rackwright.lock.versions import at_least, debian_key, numbers
from rackwright.model.gpu_stack import ToolkitVersions


@dataclass(frozen=True)
class Choice:
    """One version of everything. None: left out, or nothing to be had; the refusals say which."""

    modules: Modules
    driver: DriverOffer | None
    kernel: KernelOffer | None
    cuda: str | None
    dcgm: str | None
    container_toolkit: str | None
    nccl: str | None
    doca: str | None
    imex: bool

    @property
    def cuda_major(self) -> int | None:
        """The major of the CUDA toolkit, or else of what the driver brings."""
        if self.cuda is not None:
            return int(self.cuda.split(".")[0])
        if self.driver is None:
            return None
        return 13 if int(self.driver.branch) >= 580 else 12


def choose(question: Question) -> Choice:
    """A choice for one kind of node."""
    offer, wish = question.offer, question.wish
    modules = _modules(question)
    driver = _driver(question, modules)
    toolkit = wish.container_toolkit
    if isinstance(toolkit, ToolkitVersions):
        toolkit = toolkit.distinct()[0]
    doca = wish.doca or question.tables.offers.default_doca
    return Choice(
        modules=modules,
        driver=driver,
        kernel=_kernel(question, driver, modules),
        cuda=_cuda(question, driver),
        dcgm=_one_of(wish.dcgm, question.tables.offers.default_dcgm, offer.dcgm if offer else None),
        container_toolkit=_one_of(
            toolkit,
            question.tables.offers.default_container_toolkit,
            offer.container_toolkit if offer else None,
        ),
        nccl=_one_of(wish.nccl, question.tables.offers.default_nccl, offer.nccl if offer else None),
        doca=doca if wish.ofed == "doca" else None,
        imex=question.needs_imex if wish.imex is None else wish.imex,
    )


def _modules(question: Question) -> Modules:
    if question.wish.modules != "auto":
        return question.wish.modules
    return "proprietary" if question.rule and "open" not in question.rule.modules else "open"


def _driver(question: Question, modules: Modules) -> DriverOffer | None:
    """The newest driver that is asked for; among equals one that is not known to fail."""
    if question.offer is None:
        return None
    wish = question.wish.driver
    offered = [
        driver
        for driver in question.offer.drivers
        if (wish.version or wish.branch or driver.default)
        and wish.version in (None, driver.version)
        and wish.branch in (None, driver.branch)
    ]
    default = question.tables.drivers.default_branch
    if wish.branch is None and wish.version is None and any(driver.branch == default for driver in offered):
        offered = [driver for driver in offered if driver.branch == default]
    offered = [driver for driver in offered if modules in driver.modules] or offered
    return max(offered, key=lambda driver: (numbers(driver.version), driver.default), default=None)


def pair_of(
    question: Question, driver: DriverOffer | None, modules: Modules, kernel: KernelOffer | None
) -> Pair | None:
    """What is known about building a driver package against a kernel's headers."""
    if driver is None or driver.revision is None or kernel is None:
        return None
    package = module_package(question, driver, modules)
    for pair in question.tables.pairs.rows:
        if (pair.os, pair.package, pair.revision, pair.kernel) == (
            question.os,
            package,
            driver.revision,
            kernel.upstream,
        ):
            return pair
    return None


def _kernel(question: Question, driver: DriverOffer | None, modules: Modules) -> KernelOffer | None:
    """The wished kernel, or the newest: first of those known to build, then of those nothing is known of."""
    if question.offer is None:
        return None
    wish = question.wish.kernel
    if wish is not None:
        return next((kernel for kernel in question.offer.kernels if kernel.release == wish), None)

    def rank(kernel: KernelOffer) -> tuple[int, object]:
        pair = pair_of(question, driver, modules, kernel)
        return (1 if pair is None else 2 if pair.builds else 0), debian_key(kernel.version)

    return max((kernel for kernel in question.offer.kernels if kernel.default), key=rank, default=None)


def _cuda(question: Question, driver: DriverOffer | None) -> str | None:
    wish, offer = question.wish.cuda, question.offer
    if wish is not None:
        return None if wish == "none" else wish
    if offer is None or offer.cuda is None or driver is None:
        return None
    if offer.source == "distribution":
        return next(iter(offer.cuda), None)
    last = question.rule.last_cuda_major if question.rule else None
    releases = {
        row.release
        for row in question.tables.cuda.rows
        if row.release in offer.cuda
        and (last is None or numbers(row.release)[0] <= last)
        and _runs_on(question, row.release, driver)
    }
    native = [
        row.release
        for row in question.tables.cuda.rows
        if row.release in releases and at_least(driver.version, row.driver)
    ]
    best = max(native or releases, key=numbers, default=None)
    minimum = minimum_of(question, "cuda-toolkit", None)
    if question.wish.security == "enforce" and best and minimum and not at_least(best, minimum):
        safe = [release for release in releases if at_least(release, minimum)]
        return min(safe, key=numbers, default=best)
    return best


def _runs_on(question: Question, release: str, driver: DriverOffer) -> bool:
    floor = cuda_floor(question, release)
    return floor is not None and at_least(driver.version, floor)


def cuda_floor(question: Question, release: str) -> str | None:
    """The driver that every release of this one's major runs on; None: the major is not in the table."""
    major = numbers(release)[0] if numbers(release) else 0
    return next((floor.driver for floor in question.tables.cuda.floors if floor.major == major), None)


def minimum_of(question: Question, component: str, branch: str | None) -> str | None:
    """The minimum-security version; None: the table has none."""
    for row in question.tables.security.rows:
        if row.component == component and row.branch == branch:
            return row.version
    return None


def _one_of(wish: str | None, default: str, offered: tuple[str, ...] | None) -> str | None:
    """The wish, or the default where it is offered, or else the newest that is."""
    if wish is not None:
        return None if wish == "none" else wish
    if not offered:
        return None
    return default if default in offered else max(offered, key=numbers)
