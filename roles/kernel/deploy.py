"""Applies the kernel role to a node, as far as its platform has it."""

from __future__ import annotations

from pyinfra.api.deploy import deploy
from pyinfra.context import host

from rackwright.data import Site, site_of
from rackwright.lock.kernel_packages import KernelPackages
from rackwright.model.cluster import Node
from rackwright.model.platforms import Capability, has
from rackwright.operations import files, packages, reboots, settings, units
from rackwright.render import render
from rackwright.roles.kernel import arguments, modules, pages, texts
from rackwright.roles.kernel.options import KernelOptions, Modules


@deploy("kernel")
def kernel(options: KernelOptions) -> None:
    """Modules' settings, the kernel and what it boots with, huge pages, ACS; what waits for a reboot."""
    site = site_of()
    node, chosen = site.node, options.kernel(site.cluster, site.node)
    boots = has(node.platform, Capability.KERNEL)
    if boots and texts.sets_modprobe(options.modules):
        # before any package: a kernel package builds an initramfs, which reads it
        files.file(
            name="Write the modprobe settings",
            path=texts.MODPROBE,
            content=modules.modprobe(options.modules),
        )
    if chosen is not None:
        packages.installed(
            name="Install the declared kernel and its headers",
            packages=texts.packages(chosen, node),
            hold=True,
            build_modules=False,
        )
    if boots:
        _initramfs(node, options.modules, chosen)
        _boot(site, options, chosen)
        _huge_pages(options)
    if has(node.platform, Capability.KERNEL_MODULES):
        _modules(options.modules)
    if has(node.platform, Capability.HARDWARE):
        _acs(options.turns_acs_off(node))


def _initramfs(node: Node, wanted: Modules, chosen: KernelPackages | None) -> None:
    image, rebuild = node.family.initramfs(texts.release(chosen))
    if texts.sets_modprobe(wanted):
        settings.setting(
            name="Update the initramfs",
            target="initramfs",
            read=f"[ {image} -nt {texts.MODPROBE} ] && echo current",
            want="current",
            write=rebuild,
            because=f"{texts.MODPROBE} is newer",
        )
        return
    settings.setting(
        name="Remove the module settings from modprobe and the initramfs",
        target="undeclared modprobe settings",
        read=f"[ -e {texts.MODPROBE} ] || echo none",
        want="none",
        write=f": >{texts.MODPROBE} && {rebuild} && rm -f {texts.MODPROBE}",
    )


def _boot(site: Site, options: KernelOptions, chosen: KernelPackages | None) -> None:
    node = site.node
    declared = arguments.declared(node, options)
    if (folder := node.family.grub_folder) is not None:
        _grub(folder, declared, options, chosen)
    if chosen is not None:
        read, write = node.family.boots(chosen.release)
        settings.setting(
            name="Set the declared kernel for the next boot",
            target="kernel that boots",
            read=read,
            want=chosen.release,
            write=write,
        )
        reboots.due(
            name="Compare the running kernel", target="running kernel", read="uname -r", want=chosen.release
        )
    if declared or options.remove or node.family.grub_folder is None:
        settings.setting(
            name="Set the kernel arguments for the next boot",
            target="kernel arguments of the next boot",
            read=arguments.read(
                node.family.next_arguments, declared, options.remove, node.family.arguments_left(declared)
            ),
            want=arguments.wanted(declared),
            write=node.family.put_arguments(declared, options.remove),
        )
    if declared or options.remove:
        reboots.due(
            name="Compare the kernel's command line",
            target="kernel command line",
            read=arguments.read("cat /proc/cmdline", declared, options.remove),
            want=arguments.wanted(declared),
        )


def _grub(
    folder: str, declared: tuple[str, ...], options: KernelOptions, chosen: KernelPackages | None
) -> None:
    """One file with all of rackwright's settings, or none; removes the files of earlier versions."""
    if not (declared or options.remove or chosen):
        ours = " ".join((texts.grub(folder), *texts.earlier(folder)))
        settings.setting(
            name="Remove rackwright's settings from the GRUB menu",
            target="rackwright's settings in GRUB's menu",
            read=f"ls {ours} 2>/dev/null | grep -q . || echo none",
            want="none",
            write=f": >{texts.grub(folder)} && rm -f {' '.join(texts.earlier(folder))} && update-grub "
            f"&& rm -f {texts.grub(folder)}",
        )
        return
    files.directory(name="Create the folder for GRUB settings", path=folder)
    files.file(
        name="Write GRUB's default kernel and arguments",
        path=texts.grub(folder),
        content=render(
            "kernel/grub.cfg.j2",
            kernel=None if chosen is None else chosen.release,
            arguments=declared,
            remove=options.remove,
        ),
    )
    for path in host.loop(texts.earlier(folder)):  # type: ignore[no-untyped-call]
        files.absent(name=f"Remove {path} of an earlier version", path=path)


def _huge_pages(options: KernelOptions) -> None:
    counts = pages.while_running(options.hugepages)
    if not counts:
        files.absent(name="Stop reserving huge pages at boot", path=texts.TMPFILES)
        return
    files.file(
        name="Reserve huge pages at boot",
        path=texts.TMPFILES,
        content=render("kernel/tmpfiles.conf.j2", pages=counts),
    )
    for path, count in host.loop(counts.items()):  # type: ignore[no-untyped-call]
        settings.setting(
            name=f"Reserve pages of {path.split('/')[-2]}",
            target=f"huge pages, {path.split('/')[-2]}",
            read=f"cat {path}",
            want=str(count),
            write=f"echo {count} >{path}",
        )


def _modules(wanted: Modules) -> None:
    if wanted.load:
        files.file(
            name="Write the list of modules to load at boot",
            path=texts.MODULES_LOAD,
            content=render("kernel/modules-load.conf.j2", modules=wanted.load),
        )
    else:
        files.absent(name="Remove the list of modules to load at boot", path=texts.MODULES_LOAD)
    for module in host.loop(wanted.load):  # type: ignore[no-untyped-call]
        settings.setting(
            name=f"Load {module}",
            target=f"kernel module {module}",
            read=modules.loaded_read(module),
            want="loaded",
            write=f"modprobe {module}",
        )
    for module, parameters in host.loop(wanted.options.items()):  # type: ignore[no-untyped-call]
        reboots.due(
            name=f"Compare the parameters of {module}",
            target=f"parameters of {module}",
            read=modules.parameters_read(module, parameters),
            want="as declared",
        )
    for module in host.loop(wanted.blacklist):  # type: ignore[no-untyped-call]
        reboots.due(
            name=f"Compare whether {module} is loaded",
            target=f"kernel module {module}",
            read=modules.kept_out_read(module),
            want="not loaded",
        )


def _acs(off: bool) -> None:
    unit = f"/etc/systemd/system/{texts.ACS_UNIT}"
    if not off:
        units.unit(
            name="Leave ACS as it is", unit=texts.ACS_UNIT, running=False, enabled=False, disruptive=False
        )
        files.absent(name="Remove the ACS unit", path=unit)
        files.absent(name="Remove the ACS script", path=texts.ACS)
        return
    packages.installed(name="Install setpci", packages=("pciutils",))
    files.file(
        name="Write the script that disables ACS",
        path=texts.ACS,
        content=render("kernel/acs-off.sh.j2"),
        mode="755",
        validate="sh -n %s",
    )
    files.file(name="Write the ACS unit", path=unit, content=render("kernel/acs-off.service.j2"))
    units.unit(
        name="Disable ACS now and at boot",
        unit=texts.ACS_UNIT,
        restart_on=(texts.ACS,),
        disruptive=False,
    )
