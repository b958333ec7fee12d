"""Applies the nvidia_driver role to a node."""

from __future__ import annotations

from pyinfra.api.deploy import deploy

from rackwright.data import Site, site_of
from rackwright.lock.content import GroupLock
from rackwright.lock.for_roles import component, group_for
from rackwright.model.platforms import Capability, has
from rackwright.operations import dkms, files, packages, reboots, settings
from rackwright.osfamily.names import Names, names
from rackwright.render import render
from rackwright.roles.nvidia_driver import texts
from rackwright.roles.nvidia_driver.options import NvidiaDriverOptions
from rackwright.roles.nvidia_driver.sources import origin, usual_headers


@deploy("nvidia_driver")
def nvidia_driver(options: NvidiaDriverOptions) -> None:
    """Sources, what modprobe reads, the driver as locked and held, its modules built and loaded."""
    site = site_of()
    group = group_for(site)
    archive = names(site.node.family, "nvidia-archive")
    if group.source != "distribution":
        _repository(site, options, group, archive)
    if (pin := archive.paths.get("pin")) is not None:
        files.file(name="Pin the driver's dependencies", path=pin, content=texts.pin(group))
    _modprobe(options, group)
    _install(site, options, group)
    dkms.built(
        name="Build the driver's modules",
        sources=f"/usr/src/nvidia*-{group.driver_version}",
        kernel=group.kernel,
    )
    if has(site.node.platform, Capability.KERNEL):
        _initramfs(group)
    if has(site.node.platform, Capability.KERNEL_MODULES):
        _load(group)


def _repository(site: Site, options: NvidiaDriverOptions, group: GroupLock, archive: Names) -> None:
    url = options.repository or origin(site.node.os, site.node.sku.cpu_architecture).url
    key = archive.paths["key"]
    files.file(
        name="Write the key of the driver's repository", path=key, content=options.key_text(site.cluster)
    )
    files.file(
        name="Write the driver's repository",
        path=archive.paths["source"],
        content=render(archive.settings["template"], url=url, key=key),
    )
    if not site.node.os.has_module_streams:
        return
    stream = f"{group.driver_branch}-{'open' if group.open_modules else 'dkms'}"
    settings.setting(
        name="Select the module stream of the driver branch",
        target="module stream nvidia-driver",
        read="dnf -q module list --enabled nvidia-driver | awk '$1 == \"nvidia-driver\" {print $2; exit}'",
        want=stream,
        write=f"dnf -q -y module reset nvidia-driver && dnf -q -y module enable nvidia-driver:{stream}",
    )


def _modprobe(options: NvidiaDriverOptions, group: GroupLock) -> None:
    # before any package: a kernel package builds an initramfs, which reads it
    files.file(
        name="Write the modules' options and keep nouveau out",
        path=texts.MODPROBE,
        content=texts.modprobe(options, group),
    )
    files.file(
        name="Write the list of modules to load at boot",
        path=texts.MODULES_LOAD,
        content=render("nvidia_driver/modules-load.conf.j2"),
    )
    if options.signing is None:
        files.absent(name="Remove the DKMS signing key settings", path=texts.DKMS_SIGNING)
        return
    files.directory(name="Create the folder for DKMS settings", path="/etc/dkms/framework.conf.d")
    files.file(
        name="Write the DKMS signing key settings",
        path=texts.DKMS_SIGNING,
        content=render("nvidia_driver/dkms-signing.conf.j2", signing=options.signing),
    )


def _install(site: Site, options: NvidiaDriverOptions, group: GroupLock) -> None:
    if group.kernel is None:
        packages.installed(
            name="Install kernel headers",
            packages=options.headers or usual_headers(site.node.os, site.node.sku.cpu_architecture),
        )
    packages.installed(
        name="Install the locked driver",
        packages=component(group, *options.parts),
        start_daemons=False,
        hold=True,
        disruptive=True,
        build_modules=False,
    )
    if has(site.node.platform, Capability.KERNEL):
        packages.installed(name="Install the Secure Boot tools", packages=("mokutil",))


def _initramfs(group: GroupLock) -> None:
    read, write = texts.initramfs(group)
    settings.setting(
        name="Update the initramfs",
        target="initramfs",
        read=read,
        want="current",
        write=write,
        because=f"{texts.MODPROBE} is newer",
    )


def _load(group: GroupLock) -> None:
    # first, so that what needs the driver waits where only a reboot brings it
    reboots.due(
        name="Check whether the driver needs a reboot",
        target="loaded driver",
        read=texts.loaded_read(group),
        want=texts.LOADED,
    )
    settings.setting(
        name="Load the driver",
        target="driver",
        read=texts.load_read(group),
        want="loaded",
        write="modprobe nvidia",
    )
