"""Checks of the kernel role, from its live state and what its next boot will have."""

from __future__ import annotations

from functools import partial

from rackwright.claims.check import Check, CheckContext, NotInScope, Undetermined, Warned, fail
from rackwright.claims.kernel import loaded_modules
from rackwright.claims.packages import held_at
from rackwright.claims.units import starts_at_boot
from rackwright.facts.settings import Answer
from rackwright.lock.kernel_packages import KernelPackages
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability
from rackwright.roles.kernel import arguments, bridges, modules, pages, texts
from rackwright.roles.kernel.options import KernelOptions

Context = CheckContext[KernelOptions]
_VULNERABILITIES = "/sys/devices/system/cpu/vulnerabilities"
_REBOOT = "a reboot is due"


def _chosen(context: Context) -> KernelPackages:
    chosen = context.options.kernel(context.cluster, context.node)
    if chosen is None:
        raise NotInScope("neither the lock nor `release` names a kernel for this node")
    return chosen


def _held(context: Context) -> str:
    return held_at(context, texts.packages(_chosen(context), context.node))


def _runs(context: Context) -> str:
    chosen, found = _chosen(context), context.output("uname -r").strip()
    if found != chosen.release:
        fail(f"the running kernel is {found}, not {chosen.release}: {_REBOOT}")
    return found


def _boots(context: Context) -> str:
    chosen = _chosen(context)
    read, _ = context.node.family.boots(chosen.release)
    found = context.fact(Answer, read, may_be_empty=True)
    if found != chosen.release:
        fail(f"the boot loader does not boot {chosen.release} by default")
    return chosen.release


def _compare(context: Context, line: str, what: str, otherwise: str) -> str:
    if not line.strip():
        raise Undetermined(f"{what} is empty")
    declared, remove = arguments.declared(context.node, context.options), context.options.remove
    missing, unwanted = arguments.differences(line, declared, remove)
    wrong = [f"lacks {' '.join(missing)}"] if missing else []
    wrong += [f"has {' '.join(unwanted)}, which must not be set"] if unwanted else []
    if wrong:
        fail(f"{what} {' and '.join(wrong)}: {otherwise}")
    return " ".join((*declared, *(f"no {name}" for name in remove)))


def _command_line(context: Context) -> str:
    line = context.output("cat /proc/cmdline")
    return _compare(
        context, line, "/proc/cmdline", f"{_REBOOT}, or the boot loader does not read its settings"
    )


def _next_boot(context: Context) -> str:
    line = context.output("sh -c %s", context.node.family.next_arguments)
    return _compare(context, line, "the next boot's command line", "apply the role")


def _huge_pages(context: Context) -> str:
    found = []
    for size, count in context.options.hugepages.items():
        there = context.output(f"cat {pages.path_of(size)}").strip()
        if not there.isdecimal():
            raise Undetermined(f"{pages.path_of(size)} is {there or 'empty'}")
        if int(there) != count:
            fail(
                f"{there} of {count} pages of {size} are reserved: memory was in use, and a reboot reserves them"
            )
        found.append(f"{count} of {size}")
    return ", ".join(found)


def _loaded(context: Context) -> str:
    missing = [
        module
        for module in context.options.modules.load
        if context.fact(Answer, modules.loaded_read(module), may_be_empty=True) != "loaded"
    ]
    if missing:
        loaded_modules(context)  # raises where the node does not answer
        fail(f"not loaded: {', '.join(missing)}")
    return ", ".join(context.options.modules.load)


def _kept_out(context: Context) -> str:
    blacklist = context.options.modules.blacklist
    there = loaded_modules(context)
    loaded = [module for module in blacklist if modules.canonical(module) in there]
    if loaded:
        fail(f"loaded: {', '.join(loaded)}: {_REBOOT}")
    for module in blacklist:
        if context.fact(Answer, modules.kept_out_read(module)) == "loaded":
            fail(f"{module} is built into this kernel: modprobe cannot blacklist it")
    read = context.output("modprobe --showconfig").splitlines()
    lines = {modules.canonical(line.strip()) for line in read}
    for module in blacklist:
        if f"blacklist {modules.canonical(module)}" not in lines:
            fail(f"modprobe may load {module}: no configuration it reads blacklists it")
    return f"not loaded: {', '.join(blacklist)}"


def _parameters(context: Context) -> str:
    compared = 0
    for module, parameters in context.options.modules.options.items():
        folder = f"/sys/module/{modules.canonical(module)}"
        if context.host.run("test -d %s", folder).rc != 0:
            raise Undetermined(f"{module} is not loaded, and takes its parameters when it is")
        for name, value in parameters.items():
            there = context.output(f"cat {folder}/parameters/{name}").strip()
            if not modules.same(value, there):
                fail(f"{name} of {module} is {there}, not {value}: {_REBOOT}")
            compared += 1
    return f"{compared} parameters"


def _identity(context: Context) -> str:
    kinds = set(context.output("cat /sys/kernel/iommu_groups/*/type").split())
    if not kinds:
        raise Undetermined("the kernel lists no IOMMU group")
    if kinds != {"identity"}:
        fail(f"IOMMU groups are {', '.join(sorted(kinds))}, not identity alone")
    return "every IOMMU group is identity"


def _acs(context: Context) -> str:
    context.output("command -v setpci")
    found = bridges.parse(context.output("sh -c %s", bridges.READ))
    if found.redirecting:
        some = ", ".join(f"{bridge} ({bits})" for bridge, bits in list(found.redirecting.items())[:4])
        fail(f"ACS is on at {len(found.redirecting)} bridges, e.g. {some}")
    return f"{found.quiet} bridges redirect nothing"


def _page_size(context: Context) -> str:
    wanted = {"4k": "4096", "64k": "65536"}[context.options.page_size or "4k"]
    there = context.output("getconf PAGESIZE").strip()
    if there != wanted:
        fail(f"pages are of {there} bytes, not {wanted}: {_REBOOT}")
    return f"{there} bytes"


def _mitigations(context: Context) -> str:
    """What the kernel lists of each vulnerability, as far as the declaration decides it."""
    lines = context.output("sh -c %s", f"cd {_VULNERABILITIES} && grep -H . *").splitlines()
    found = {name: state for name, _, state in (line.partition(":") for line in lines)}
    if not found:
        raise Undetermined("the kernel lists no CPU vulnerabilities")
    exposed = [name for name, state in found.items() if state.startswith("Vulnerable")]
    if context.options.mitigations == "off":
        # those of firmware and of hardware stay; these two are software alone
        still = [n for n in ("meltdown", "spectre_v2") if found.get(n, "").startswith("Mitigation")]
        if still:
            fail(f"{', '.join(still)} are mitigated, but `mitigations` is off: {_REBOOT}")
        return f"off; vulnerable: {', '.join(exposed) or 'none'}"
    if context.options.mitigations == "auto,nosmt":
        smt = [name for name, state in found.items() if "SMT vulnerable" in state]
        if smt:
            fail(f"SMT leaves {', '.join(smt)} open, but `mitigations` is auto,nosmt: {_REBOOT}")
    if "mitigations=off" in context.output("cat /proc/cmdline").split():
        fail("the kernel was started with mitigations=off, which is not declared")
    if exposed:
        raise Warned(f"the kernel has no mitigation for {', '.join(exposed)}: install newer microcode")
    return f"{len(found)} vulnerabilities, none of them open"


def _declares_arguments(node: Node, options: KernelOptions) -> bool:
    return bool(arguments.declared(node, options) or options.remove)


def _sets_mitigations(node: Node, options: KernelOptions) -> bool:
    return options.mitigations != "default"


def _acs_off(node: Node, options: KernelOptions) -> bool:
    return options.turns_acs_off(node)


_KERNEL = frozenset({Capability.KERNEL})
_MODULES = frozenset({Capability.KERNEL_MODULES})
_HARDWARE = frozenset({Capability.HARDWARE})
CHECKS = (
    Check("the declared kernel is installed and held", _held),
    Check("the running kernel is the declared one", _runs, needs=_KERNEL),
    Check("the declared kernel boots by default", _boots, needs=_KERNEL),
    Check(
        "the running kernel has the declared arguments",
        _command_line,
        needs=_KERNEL,
        applies=_declares_arguments,
    ),
    Check("the next boot has the declared arguments", _next_boot, needs=_KERNEL, applies=_declares_arguments),
    Check(
        "the declared huge pages are reserved",
        _huge_pages,
        needs=_KERNEL,
        applies=lambda node, options: bool(options.hugepages),
    ),
    Check(
        "the declared modules are loaded",
        _loaded,
        needs=_MODULES,
        applies=lambda node, options: bool(options.modules.load),
    ),
    Check(
        "blacklisted modules are not loaded",
        _kept_out,
        needs=_MODULES,
        applies=lambda node, options: bool(options.modules.blacklist),
    ),
    Check(
        "loaded modules have the declared parameters",
        _parameters,
        needs=_MODULES,
        applies=lambda node, options: bool(options.modules.options),
    ),
    Check("the IOMMU is in passthrough mode", _identity, needs=_HARDWARE, applies=arguments.passes_through),
    Check(
        "ACS is disabled at every boot",
        partial(starts_at_boot, unit=texts.ACS_UNIT, why="bridges redirect peers after a reboot"),
        needs=_HARDWARE,
        applies=_acs_off,
    ),
    Check("no PCI bridge redirects peer-to-peer traffic", _acs, needs=_HARDWARE, applies=_acs_off),
    Check(
        "the kernel has the declared page size",
        _page_size,
        needs=_KERNEL,
        applies=lambda node, options: options.page_size is not None,
    ),
    Check(
        "CPU vulnerabilities are mitigated as declared",
        _mitigations,
        needs=_KERNEL,
        applies=_sets_mitigations,
    ),
)
