"""Kernel modules of filesystems: they exist for the declared kernel, or the run ends with a clear message."""

from __future__ import annotations

from shlex import quote

from rackwright.data import Site
from rackwright.mount_roles import declared_kernel
from rackwright.operations import packages, settings


def kernel_headers(site: Site) -> None:
    """Headers of the usual kernel, where no role installs a declared kernel with its headers."""
    if declared_kernel(site.cluster, site.node) is None:
        packages.installed(
            name="Install kernel headers",
            packages=site.node.os.headers(site.node.sku.cpu_architecture),
        )


def module_available(site: Site, module: str, *, after_reboot: bool = False) -> None:
    """modprobe would find the module for the declared kernel; the run ends with an error where it would not."""
    kernel = declared_kernel(site.cluster, site.node)
    of = '"$(uname -r)"' if kernel is None else quote(kernel)
    read = f"modinfo -k {of} -F filename {quote(module)} >/dev/null && echo built"
    settings.setting(
        name=f"Check that the module {module} exists",
        target=f"module {module} for {kernel or 'the running kernel'}",
        read=read,
        want="built",
        write=(
            f"depmod {of}; ({read}) 2>/dev/null || "
            f'{{ echo "module {module} does not exist for kernel "{of}": the client has no matching one" >&2; exit 1; }}'
        ),
        after_reboot=after_reboot,
    )
