"""What the nvidia_driver role writes and asks, as text: shared by the deploy and its checks."""

from __future__ import annotations

from collections.abc import Iterator
from shlex import quote

from rackwright.lock.content import GroupLock
from rackwright.render import render
from rackwright.roles.nvidia_driver.options import NvidiaDriverOptions
from rackwright.roles.nvidia_driver.sources import module_name

MODPROBE = "/etc/modprobe.d/rackwright-nvidia.conf"
MODULES_LOAD = "/etc/modules-load.d/rackwright-nvidia.conf"
DKMS_SIGNING = "/etc/dkms/framework.conf.d/rackwright.conf"


def parameters(options: NvidiaDriverOptions) -> dict[str, str]:
    """Parameters of the driver's main module by name, NVreg_ included; what is left out is the driver's."""
    wanted = options.modules
    dwords = dict(wanted.registry_dwords)
    if wanted.stream_memory_operations:
        dwords.setdefault("PeerMappingOverride", 1)
    found = {"NVreg_RestrictProfilingToAdminUsers": "0" if wanted.profiling_for_all else "1"}
    if wanted.stream_memory_operations:
        found["NVreg_EnableStreamMemOPs"] = "1"
    if wanted.coherent_memory is not None:
        found["NVreg_CoherentGPUMemoryMode"] = wanted.coherent_memory
    if wanted.pci_topology_check_override:
        found["NVreg_GrdmaPciTopoCheckOverride"] = "1"
    if dwords:
        found["NVreg_RegistryDwords"] = (
            '"' + "".join(f"{key}={n};" for key, n in sorted(dwords.items())) + '"'
        )
    return found


def modprobe(options: NvidiaDriverOptions, group: GroupLock) -> str:
    """modprobe's file. Debian's own packages install the modules under other names than NVIDIA's."""
    main = module_name(group)
    uvm = "nvidia_uvm" if main == "nvidia" else f"{main}-uvm"
    return render(
        "nvidia_driver/modprobe.conf.j2",
        main=main,
        parameters=parameters(options),
        uvm={uvm: {"uvm_disable_hmm": "1"}} if options.modules.uvm_disable_hmm else {},
    )


def pin(group: GroupLock) -> str:
    """apt's preferences: what the driver's packages depend on comes at the driver's version, or not at all."""
    return render("nvidia_driver/preferences.j2", version=group.driver_version)


def initramfs(group: GroupLock) -> tuple[str, str]:
    """Shell that prints `current` where the kernel's initramfs has read modprobe's file, and that rebuilds it."""
    kernel = quote(group.kernel) if group.kernel else "$(uname -r)"
    image, rebuild = group.os.family.initramfs(kernel)
    return f"[ {image} -nt {MODPROBE} ] && echo current", rebuild


def reboot_reasons(group: GroupLock) -> Iterator[str]:
    """Shell lines that add to `due` what only a reboot ends."""
    if group.kernel is not None:
        kernel = quote(group.kernel)
        yield f'[ "$(uname -r)" = {kernel} ] || due="$due; kernel $(uname -r) runs, locked is "{kernel}'
    yield from driver_reasons(group)


def driver_reasons(group: GroupLock) -> Iterator[str]:
    """Those of the modules: another driver in use cannot be replaced under its users, nor nouveau under a console."""
    version = quote(group.driver_version)
    yield (
        "loaded=$(sed -n '1s/.* \\([0-9]\\{3\\}\\.[0-9.]*\\) .*/\\1/p' /proc/driver/nvidia/version 2>/dev/null)\n"
        f'case "$loaded" in "" | {version}) ;; '
        f'*) due="$due; driver $loaded is loaded, locked is "{version} ;; esac'
    )
    yield '[ ! -d /sys/module/nouveau ] || due="$due; nouveau is loaded"'


LOADED = "as locked, or none yet"
"""What `loaded_read` prints where no reboot is needed for the driver."""


def loaded_read(group: GroupLock) -> str:
    """Shell that prints which driver or nouveau is loaded that only a reboot replaces, or LOADED."""
    reasons = "\n".join(driver_reasons(group))
    return f'due=\n{reasons}\n[ -n "$due" ] && echo "${{due#; }}" || echo {quote(LOADED)}'


def load_read(group: GroupLock) -> str:
    """Shell that prints `loaded` where the driver is, or cannot be before a reboot."""
    reasons = "\n".join(reboot_reasons(group))
    return f'due=\n{reasons}\n[ -d /sys/module/nvidia ] || [ -n "$due" ] && echo loaded'
