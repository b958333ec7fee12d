"""Why a request cannot be met: every rule checks the complete choice, and all reasons are reported at once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from rackwright.lock.choice import cuda_floor, pair_of
from rackwright.lock.companions import companion_rules
from rackwright.lock.names import module_package
from rackwright.lock.request import Choice, StackRequest
from rackwright.lock.safety import safety_rules
from rackwright.lock.versions import at_least, newest, numbers
from rackwright.lock.words import INDEX_HINT, Refusal, lacks, listed
from rackwright.model.sku import Architecture

Rule = Callable[[StackRequest, Choice], Iterator[Refusal]]


def refusals(request: StackRequest, choice: Choice) -> tuple[Refusal, ...]:
    """Every reason against a choice, in the order of the rules; none for a good one."""
    rules: tuple[Rule, ...] = (
        _known,
        _modules,
        _minimum_driver,
        _last_branch,
        _driver,
        _kernel,
        _pair,
        _cuda,
        _first_cuda,
        *companion_rules(),
        *safety_rules(),
    )
    return tuple(refusal for rule in rules for refusal in rule(request, choice))


def _known(request: StackRequest, choice: Choice) -> Iterator[Refusal]:
    name = request.sku.name
    if request.rule is None:
        yield Refusal(
            f"The SKU {name} does not declare its GPU architecture, which determines modules and driver.",
            f"add `architecture` below `skus.{name}.gpus`",
        )
    if request.gpus.nvswitch is None:
        yield Refusal(
            f"The SKU {name} does not declare whether its GPUs are connected by NVSwitches.",
            f"add `nvswitch: none`, `node` or `rack` below `skus.{name}.gpus`",
        )
    if request.offer is None:
        what = {"distribution": "own archive", "nvidia": "NVIDIA repository", "mirror": "mirror"}
        other = "set `gpu_stack.source: nvidia`" if request.wanted.source == "distribution" else INDEX_HINT
        yield Refusal(
            f"The shipped table of {request.tables.dates()['offers']} does not list {request.os}'s "
            f"{what[request.wanted.source]}.",
            other,
        )


def _modules(request: StackRequest, choice: Choice) -> Iterator[Refusal]:
    rule = request.rule
    if rule is None:
        return
    grace = request.sku.cpu_architecture == "aarch64"
    if choice.modules == "proprietary" and (grace or "proprietary" not in rule.modules):
        yield Refusal(
            f"{request.product} needs open kernel modules: Blackwell and Grace support no others.",
            "set `modules: auto`",
        )
    if choice.modules == "open" and "open" not in rule.modules:
        yield Refusal(
            f"{request.product} needs proprietary kernel modules: open ones support Turing and later, "
            f"but its GPUs are {rule.architecture.capitalize()}.",
            "set `modules: auto`",
        )


def _minimum_driver(request: StackRequest, choice: Choice) -> Iterator[Refusal]:
    minimum, offer = request.minimum_driver, request.offer
    if minimum is None or offer is None:
        return
    last = newest([driver.version for driver in offer.drivers])
    if not at_least(last, minimum):
        need = f"{request.product} needs driver >= {minimum}"
        if offer.whole:
            hint = "set `gpu_stack.source: nvidia`" if offer.source == "distribution" else None
            yield Refusal(f"{need}; {offer.name} ends at {last}.", hint)
        else:
            place = f"the shipped table of {offer.read} for {offer.name} on {request.os}"
            yield Refusal(f"{need}; {place} ends at {last}.", INDEX_HINT)
    elif choice.driver is not None and not at_least(choice.driver.version, minimum):
        fitting = [driver.version for driver in offer.drivers if at_least(driver.version, minimum)]
        usual = [version for version in fitting if version.startswith(request.tables.drivers.default_branch)]
        yield Refusal(
            f"{request.product} needs driver >= {minimum}, not {choice.driver.version}.",
            f"e.g. `driver: {{version: {newest(usual or fitting)}}}`",
        )


def _last_branch(request: StackRequest, choice: Choice) -> Iterator[Refusal]:
    rule = request.rule
    if rule is None or rule.last_branch is None or choice.driver is None:
        return
    if int(choice.driver.branch) > int(rule.last_branch):
        yield Refusal(
            f"{request.product} is supported up to branch {rule.last_branch}, but {choice.driver.version} "
            f"is later: it dropped {rule.architecture.capitalize()}.",
            f'set `driver: {{branch: "{rule.last_branch}"}}`',
        )


def _driver(request: StackRequest, choice: Choice) -> Iterator[Refusal]:
    offer, wanted = request.offer, request.wanted.driver
    if offer is None:
        return
    if choice.driver is None:
        has = sorted({driver.version for driver in offer.drivers}, key=numbers)
        requested = f"driver {wanted.version}" if wanted.version else f"driver of branch {wanted.branch}"
        yield lacks(offer, request.os, requested, has)
    elif choice.modules not in choice.driver.modules:
        yield Refusal(
            f"{offer.name} has driver {choice.driver.version} without {choice.modules} modules.",
            f"set `modules: {choice.driver.modules[0]}`, or choose another version",
        )


def _kernel(request: StackRequest, choice: Choice) -> Iterator[Refusal]:
    wanted, archive = request.wanted.kernel, request.archive
    if wanted is None or choice.kernel is not None:
        return
    if request.os.family.kernel_release(wanted, request.sku.cpu_architecture) is None:
        example = archive.kernels[0].release if archive else "6.8.0-139-generic"
        yield Refusal(
            f"{wanted} is not a kernel release of {request.os}.",
            f"use the output of `uname -r`, e.g. `{example}`",
        )
    elif archive is not None:
        yield Refusal(
            f"{request.os}'s archive as read on {archive.read} has no kernel {wanted}; it has "
            f"{listed([kernel.release for kernel in archive.kernels])}.",
            "for a newer one, add the archive's index to `gpu_stack.package_index`",
        )


def _pair(request: StackRequest, choice: Choice) -> Iterator[Refusal]:
    pair = pair_of(request, choice.driver, choice.modules, choice.kernel)
    if pair is None or pair.builds or choice.driver is None or choice.kernel is None:
        return
    package = module_package(request, choice.driver, choice.modules)
    yield Refusal(
        f"{package} {choice.driver.revision} does not build against the headers of linux "
        f"{choice.kernel.upstream} ({request.os}): {pair.words}.",
        _other_way(request, choice),
    )


def _other_way(request: StackRequest, choice: Choice) -> str | None:
    """A driver of the same source that is not known to fail."""
    offer, rule = request.offer, request.rule
    if offer is None or rule is None:
        return None
    for driver in sorted(offer.drivers, key=lambda driver: numbers(driver.version), reverse=True):
        for modules in driver.modules:
            pair = pair_of(request, driver, modules, choice.kernel)
            if modules in rule.modules and (pair is None or pair.builds):
                combination = f'`driver: {{version: "{driver.version}"}}` and `modules: {modules}`'
                return f"try {combination}, which is not known to fail there; or use `source: nvidia`"
    return None


def _cuda(request: StackRequest, choice: Choice) -> Iterator[Refusal]:
    release, offer = choice.cuda, request.offer
    if release is None:
        return
    rule, driver = request.rule, choice.driver
    if rule and rule.last_cuda_major and numbers(release)[0] > rule.last_cuda_major:
        yield Refusal(
            f"CUDA {release} no longer compiles for {Architecture(rule.architecture).capitalize()}: "
            f"{request.product} supports CUDA {rule.last_cuda_major} at most.",
            f'set `cuda: "{rule.last_cuda_major}.9"`',
        )
    floor = cuda_floor(request, release)
    known = {row.release for row in request.tables.cuda.rows}
    if floor is None or release not in known:
        read = request.tables.dates()["cuda"]
        yield Refusal(
            f"CUDA {release} is not in the shipped table of {read}, whose last release is {newest(sorted(known))}."
        )
    elif driver is not None and not at_least(driver.version, floor):
        yield Refusal(
            f"CUDA {release} needs driver >= {floor} (minor-version compatibility), not {driver.version}."
        )
    if offer is not None and release not in (offer.cuda or {}):
        yield lacks(offer, request.os, f"CUDA {release}", list(offer.cuda or ()))


def _first_cuda(request: StackRequest, choice: Choice) -> Iterator[Refusal]:
    minimum = request.minimum_cuda
    if choice.cuda is None or minimum is None or at_least(choice.cuda, minimum):
        return
    gpus = request.gpus
    kind = f"compute capability {gpus.compute_capability}" if request.capability else f"{gpus.architecture}"
    yield Refusal(
        f"{request.product} ({kind}) needs CUDA >= {minimum}: {choice.cuda} cannot compile for it.",
        f'set `cuda: "{minimum}"` or a later release',
    )
