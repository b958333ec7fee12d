"""Anaconda: RHEL and its rebuilds.

Commands: pykickstart 3.78, docs/kickstart-docs.txt; arguments: Anaconda, docs/user-guide/boot-options.rst (8eddd3c9) and
dracut.cmdline(7). All read 2026-11-27.
"""

from __future__ import annotations

from rackwright.errors import InstallError
from rackwright.install.installers import network, scripts
from rackwright.install.installers.request import ONCE, Answers, Request
from rackwright.install.installers.scripts import BOOT_MIB, DISK, ESP_MIB, Finish
from rackwright.model.install import Encryption, Volumes
from rackwright.render import render

_TARGET = "/mnt/sysroot"
_SIZE, _KEY = "rackwright-size", "rackwright-key"
"""Placeholders for the size of an array's member and for the passphrase; the check on the node replaces them."""


def answers(request: Request) -> Answers:
    """The kickstart file, and the kernel arguments that point to it."""
    port, node = network.port_of(request), request.node
    encrypted = request.install.encryption is not Encryption.NONE
    end = Finish(
        target=_TARGET,
        scrub=f"rm -f {_TARGET}/root/*-ks.cfg",  # inst.nosave keeps logs and kickstarts off the disk
        clear=("/etc/NetworkManager/system-connections/*", "/etc/sysconfig/network-scripts/ifcfg-*"),
        initramfs=f"chroot {_TARGET} dracut --force --regenerate-all" if encrypted else ":",
        menu=False,
        copy_esp=False,
        selinux=True,
    )
    variables = {"storage": storage(request), "size_placeholder": _SIZE, "key_placeholder": _KEY}
    base, repositories = _repositories(request)
    packages = ["policycoreutils-python-utils"] if request.cluster.ssh.port != 22 else []
    text = render(
        "install/ks.cfg.j2",
        node=node,
        run=request.run,
        base=base,
        repositories=repositories,
        ssh_port=request.cluster.ssh.port,
        packages=[*packages, *_clevis(request)],
        guard=scripts.guard(request, **variables),
        finish=scripts.finish(request, end),
        onerror=scripts.report_failure(request),
    )
    arguments = [
        f"inst.ks={request.files_url}ks.cfg",
        *([] if request.media is None else [f"inst.stage2={request.media}"]),
        "inst.cmdline",
        "inst.nosave=all",
        *network.dracut_arguments(port, node.name),
        *scripts.console(request),
    ]
    files = {"ks.cfg": text, ONCE: f"{request.session}\n{request.recovery or ''}\n"}
    return Answers(files, " ".join(arguments))


def storage(request: Request) -> str:
    """What the check writes for %include, with placeholders for values known only on the node."""
    install, arguments = request.install, scripts.first_boot(request)
    if install.encryption is Encryption.TANG:  # the initramfs contacts the server before the root is mounted
        arguments = [*arguments, *network.dracut_arguments(network.port_of(request), request.node.name)]
    return render(
        "install/storage.ks.j2",
        disks=[f"{DISK}{number}" for number in range(len(request.disks))],
        mirror=install.mirror,
        lvm=install.volumes is Volumes.LVM,
        encrypted=install.encryption is not Encryption.NONE,
        key=_KEY,
        size=_SIZE,
        esp_mib=ESP_MIB,
        boot_mib=BOOT_MIB,
        arguments=" ".join(arguments),
    )


def sample(text: str) -> str:
    """A sample storage section, for a validator."""
    return text.replace(DISK, "disk/by-id/sample-").replace(_SIZE, "8192").replace(_KEY, "sample")


def _clevis(request: Request) -> list[str]:
    """tpm2-tools is a dependency of clevis here, and that package has both pins."""
    return [one for one in scripts.clevis(request, "clevis-dracut") if one != "clevis-tpm2"]


def _repositories(request: Request) -> tuple[str, list[tuple[str, str]]]:
    """URL of the base repository, and the others by name, in the layout of the site's mirror."""
    os, mirror = request.node.os, request.cluster.mirrors.dnf
    if mirror is None:
        raise InstallError(f"Installing {request.node.name} needs a mirror of {os}.")
    major = os.id.rpartition("-")[2]
    found = {
        name: f"{mirror.rstrip('/')}/{path}".replace("$releasever", major).replace("$basearch", "x86_64")
        for name, path in os.repository_files[0].repositories.items()
    }
    base = next(name for name in found if name.endswith("baseos"))
    others = [(name, url) for name, url in found.items() if name.endswith("appstream")]
    return found[base], others
