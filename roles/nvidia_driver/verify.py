"""Checks of the nvidia_driver role: installed, held, built, loaded, all as locked."""

from __future__ import annotations

from functools import partial

from rackwright.claims.check import Check, CheckContext, NotInScope, Undetermined, fail
from rackwright.claims.gpu import as_locked
from rackwright.claims.kernel import loaded_modules
from rackwright.lock.content import GroupLock
from rackwright.lock.for_roles import group_of
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability
from rackwright.roles.nvidia_driver import texts
from rackwright.roles.nvidia_driver.options import NvidiaDriverOptions
from rackwright.roles.nvidia_driver.readings import (
    parse_dkms,
    parse_loaded,
    parse_parameters,
    parse_secure_boot,
)
from rackwright.roles.nvidia_driver.sources import module_name

_REBOOT = "a reboot is due"


def _group(context: CheckContext[NvidiaDriverOptions]) -> GroupLock:
    return group_of(context.cluster, context.node)


def _audit(context: CheckContext[NvidiaDriverOptions]) -> str:
    output = context.output("dpkg --audit").strip()
    if output:
        fail(f"dpkg reports incomplete packages: {' '.join(output.split())[:200]}")
    return "dpkg reports no incomplete package"


def _kernels_to_build_for(context: CheckContext[NvidiaDriverOptions]) -> tuple[str, ...]:
    kernel = _group(context).kernel
    if kernel is not None:
        return (kernel,)
    found = context.output("sh -c %s", "ls -d /lib/modules/*/build").split()
    return tuple(path.split("/")[3] for path in found)


def _built(context: CheckContext[NvidiaDriverOptions]) -> str:
    version = _group(context).driver_version
    kernels = _kernels_to_build_for(context)
    built = [entry for entry in parse_dkms(context.output("dkms status")) if entry.version == version]
    for kernel in kernels:
        there = [entry for entry in built if entry.kernel == kernel]
        if not there:
            fail(f"no module of {version} is built for {kernel}")
        for entry in there:
            if entry.state != "installed" or entry.warning:
                fail(f"{entry.module} {version} is {entry.state} {entry.warning}".strip() + f" for {kernel}")
    return f"{version} is installed for {', '.join(kernels)}"


def _module_file(context: CheckContext[NvidiaDriverOptions]) -> str:
    group, kernels = _group(context), _kernels_to_build_for(context)
    name = module_name(group)
    for kernel in kernels:
        result = context.host.run("modinfo -k %s -F version %s", kernel, name)
        if result.rc in (126, 127):
            raise Undetermined("cannot run `modinfo`: not found")
        found = result.stdout.strip()
        if found != group.driver_version:
            fail(
                f"modprobe would load {name} {found or 'not at all'} on {kernel}, not {group.driver_version}"
            )
    return f"{name} {group.driver_version} on {', '.join(kernels)}"


def _loaded(context: CheckContext[NvidiaDriverOptions]) -> str:
    group = _group(context)
    result = context.host.run("cat /proc/driver/nvidia/version")
    if result.rc != 0:
        if "No such file" in result.stderr:
            fail("no driver is loaded: see `dmesg` for why, or load it with `modprobe nvidia`")
        raise Undetermined(f"/proc/driver/nvidia/version cannot be read: {result.stderr.strip()}")
    version, is_open = parse_loaded(result.stdout)
    if version != group.driver_version:
        fail(f"driver {version} is loaded, not the locked {group.driver_version}: {_REBOOT}")
    if is_open != group.open_modules:
        kinds = {True: "open", False: "proprietary"}
        fail(
            f"{kinds[is_open]} modules are loaded, not the locked {kinds[group.open_modules]} ones: {_REBOOT}"
        )
    return f"{version}, {'open' if is_open else 'proprietary'} modules"


def _parameters(context: CheckContext[NvidiaDriverOptions]) -> str:
    declared = texts.parameters(context.options)
    found = parse_parameters(context.output("cat /proc/driver/nvidia/params"))
    for name, value in declared.items():
        key, wanted = name.removeprefix("NVreg_"), value.strip('"')
        key = {"RestrictProfilingToAdminUsers": "RmProfilingAdminOnly"}.get(key, key)
        there = found.get(key)
        if there is None:
            raise Undetermined(f"the loaded driver does not report its {key}")
        if there.strip('"') != wanted:
            fail(f"{key} is {there}, not {wanted}: {_REBOOT}")
    return f"{len(declared)} parameters"


def _no_nouveau(context: CheckContext[NvidiaDriverOptions], *, loaded: bool) -> str:
    if loaded:
        if "nouveau" in loaded_modules(context):
            fail(f"nouveau is loaded and holds the GPUs: {_REBOOT}")
        return "nouveau is not loaded"
    if "blacklist nouveau" not in context.output("modprobe --showconfig").splitlines():
        fail("modprobe may load nouveau: no configuration it reads blacklists it")
    return "nouveau is blacklisted"


def _declares_secure_boot(context: CheckContext[NvidiaDriverOptions]) -> bool:
    stack = context.cluster.gpu_stack
    return stack is not None and stack.secure_boot


def _secure_boot(context: CheckContext[NvidiaDriverOptions]) -> str:
    result = context.host.run("mokutil --sb-state")
    declared = _declares_secure_boot(context)
    found = parse_secure_boot(result.rc, result.stdout, result.stderr)
    words = {True: "on", False: "off"}
    if found != declared:
        fail(f"Secure Boot is {words[found]}, but `gpu_stack.secure_boot` is {words[declared]}")
    return f"Secure Boot is {words[found]}"


def _signed_by_site(context: CheckContext[NvidiaDriverOptions]) -> str:
    if not _declares_secure_boot(context):
        raise NotInScope("`gpu_stack.secure_boot` is declared off: no signature is needed")
    signing = context.options.signing
    certificate = "/var/lib/dkms/mok.pub" if signing is None else signing.certificate
    result = context.host.run("mokutil --test-key %s", certificate)
    if "is already enrolled" in result.stdout + result.stderr:
        return f"{certificate} is enrolled"
    if "is not enrolled" in result.stdout + result.stderr:
        fail(f"{certificate} is not enrolled: see `rackwright bmc enrol-key --help`")
    raise Undetermined(f"mokutil does not report whether {certificate} is enrolled")


def _has_dpkg(node: Node, options: NvidiaDriverOptions) -> bool:
    return node.family.package_tool == "apt"


_MODULES = frozenset({Capability.KERNEL_MODULES})
CHECKS = (
    Check("the driver is installed as locked and held", as_locked),
    Check("every package is completely installed", _audit, applies=_has_dpkg),
    Check("the driver's modules are built for the locked kernel", _built),
    Check("modprobe loads the locked driver", _module_file),
    Check("the loaded driver is the locked one", _loaded, needs=_MODULES),
    Check("the driver's parameters are the declared ones", _parameters, needs=_MODULES),
    Check("nouveau is blacklisted", partial(_no_nouveau, loaded=False)),
    Check("nouveau is not loaded", partial(_no_nouveau, loaded=True), needs=_MODULES),
    Check("Secure Boot is as declared", _secure_boot, needs=_MODULES),
    Check("the key that signs modules is enrolled", _signed_by_site, needs=_MODULES),
)
