"""Package names and versions of a choice, as the node's package manager takes them."""

from __future__ import annotations

from collections.abc import Iterator

from rackwright.catalog.offers import ComponentNames, DriverOffer, Modules
from rackwright.lock.request import Choice, StackRequest


def module_package(request: StackRequest, driver: DriverOffer, modules: Modules) -> str | None:
    """The package that builds the kernel modules; None where no name is known."""
    rows = list(_rows(request, "modules", driver, modules))
    return rows[0].packages[0] if rows else None


def packages_of(request: StackRequest, choice: Choice) -> dict[str, dict[str, str]]:
    """By component every package with its version; `*` marks what only a package index has."""
    driver, offer = choice.driver, request.offer
    if driver is None or offer is None:
        return {}
    found: dict[str, dict[str, str]] = {}
    for component, version in _components(request, choice, driver):
        for row in _rows(request, component, driver, choice.modules):
            for name in (_filled(name, choice, driver) for name in row.packages):
                if not row.optional or _is_there(request, choice, name):
                    found.setdefault(component, {})[name] = version
    return found


def _is_there(request: StackRequest, choice: Choice, name: str) -> bool:
    """Whether a package that not every kernel has is there for this one."""
    listed = choice.kernel is not None and choice.kernel.extra_modules
    return name in request.index.packages if request.indexed_kernels else listed


def _components(request: StackRequest, choice: Choice, driver: DriverOffer) -> Iterator[tuple[str, str]]:
    """Components the node gets, each with a version or a pattern of one."""
    offer = request.offer
    assert offer is not None
    at_driver = driver.revision or f"{driver.version}-*"
    yield "pin", "*"
    for component in ("modules", "driver"):
        yield component, at_driver
    yield "persistenced", offer.persistenced or at_driver
    if choice.kernel is not None:
        yield "kernel", choice.kernel.version
    if request.needs_fabricmanager:
        yield "fabricmanager", at_driver
    if request.needs_nvlsm:
        yield "nvlsm", "*"
    if choice.imex:
        yield "imex", at_driver
    if choice.cuda is not None:
        yield "cuda", (offer.cuda or {}).get(choice.cuda, f"{choice.cuda}.*")
    if choice.dcgm is not None:
        yield "dcgm", f"{request.os.family.dcgm_epoch}{choice.dcgm}-*"
    if choice.container_toolkit is not None:
        yield "container_toolkit", f"{choice.container_toolkit}-*"
    if choice.nccl is not None:
        known = (offer.nccl_revision or "").startswith(f"{choice.nccl}-")
        suffix = "-*" if offer.source == "distribution" else f"+cuda{choice.cuda_major}.*"
        yield "nccl", (offer.nccl_revision if known else None) or f"{choice.nccl}-1{suffix}"
    if choice.doca is not None:
        yield "ofed", f"{choice.doca}*"


def _rows(
    request: StackRequest, component: str, driver: DriverOffer, modules: Modules
) -> Iterator[ComponentNames]:
    offer = request.offer
    source = "distribution" if offer is not None and offer.source == "distribution" else "nvidia"
    if component == "kernel":
        source = "distribution"
    if component == "ofed":  # DOCA comes from its own repository, independent of the driver's source
        source = "nvidia"
    for row in request.tables.packages.rows:
        if (
            (row.component, row.family, row.source) == (component, request.os.family, source)
            and row.modules in (None, modules)
            and row.flavour in (None, driver.flavour)
            and row.cpu in (None, request.sku.cpu_architecture)
            and (not row.os or request.os in row.os)
            and (row.branches_from or 0) <= int(driver.branch) <= (row.branches_until or 9999)
        ):
            yield row


def _filled(name: str, choice: Choice, driver: DriverOffer) -> str:
    kernel = "" if choice.kernel is None else choice.kernel.release
    return name.format(
        branch=driver.branch,
        version=driver.version,
        driver_major=choice.driver_major,
        cuda=(choice.cuda or "").replace(".", "-"),
        kernel=kernel,
        pages="-64k" if kernel.endswith("+64k") else "",
    )
