"""Shell scripts that all installers run: the check before the first write, and the final configuration."""

from __future__ import annotations

import json
from dataclasses import dataclass
from shlex import quote

from rackwright.install.installers import network
from rackwright.install.installers.request import ONCE, Request
from rackwright.install.installers.signatures import confirmed
from rackwright.model.install import Encryption, Volumes
from rackwright.render import render

ESP_MIB, BOOT_MIB = 512, 1024
"""Sizes as in an installed image; here /boot is always a separate file system."""
DISK = "rackwright-disk-"
"""Placeholder for a disk until the check has found it: no such device name exists, so nothing is written before."""


@dataclass(frozen=True)
class Finish:
    """How the final step differs between installers."""

    target: str
    """Where the installed system is mounted."""
    scrub: str
    """Shell that prevents the installer from leaving its logs and answers on the disk."""
    clear: tuple[str, ...] = ()
    """Network files of the installer that would contradict the declared ones."""
    packages: str = ":"
    """Shell that installs clevis if the installer has not."""
    initramfs: str = ":"
    menu: bool = True
    """Whether kernel arguments are stored in files that update-grub reads."""
    copy_esp: bool = True
    """Whether the installer sets up only one EFI partition."""
    selinux: bool = False


def guard(request: Request, **variables: object) -> str:
    """The check of the disks; it also passes the disks' names in this boot to the installer."""
    install = request.install
    disks = [
        {"serial": disk.serial, "by_path": disk.by_path, "confirmed": confirmed(disk)}
        for disk in request.disks
    ]
    return render(
        "install/guard.sh.j2",
        q=quote,
        head=request.head,
        ca=request.ca,
        files_url=request.files_url,
        once=ONCE,
        installer=install.installer,
        disks=disks,
        placeholder=DISK,
        mirror=install.mirror,
        lvm=install.volumes is Volumes.LVM,
        encrypted=install.encryption is not Encryption.NONE,
        esp_mib=ESP_MIB,
        boot_mib=BOOT_MIB,
        **variables,
    )


def finish(request: Request, how: Finish) -> str:
    """Configures the node: name, network, administrator, host key; then reports to the head."""
    install, cluster, node = request.install, request.cluster, request.node
    pin, settings = _pin(request)
    files = [(path, text, f"{mode:o}") for path, (text, mode) in _files(request, how).items()]
    return render(
        "install/finish.sh.j2",
        q=quote,
        head=request.head,
        files_url=request.files_url,
        target=how.target,
        files=files,
        clear=how.clear,
        networkd=node.os.network == "networkd",
        user=cluster.ssh.user,
        ssh_port=cluster.ssh.port,
        admin_key=request.admin_key,
        encrypted=install.encryption is not Encryption.NONE,
        pin=pin,
        pin_settings=settings,
        packages=how.packages,
        initramfs=how.initramfs,
        menu=how.menu,
        copy_esp=how.copy_esp,
        mirror=install.mirror,
        selinux=how.selinux,
        scrub=how.scrub,
        run=request.run,
        serials=json.dumps([disk.serial for disk in request.disks]),
    )


def report_failure(request: Request) -> str:
    """What runs when an installer gives up."""
    return render("install/onerror.sh.j2", q=quote, head=request.head)


def console(request: Request) -> list[str]:
    """The last console is the one that /dev/console is."""
    return [] if request.install.console is None else ["console=tty0", f"console={request.install.console}"]


def first_boot(request: Request) -> list[str]:
    """Kernel arguments of the installed system; the run id distinguishes it from an older one on the same disk."""
    return [*console(request), *request.install.kernel_arguments, f"rackwright.run={request.run}"]


def clevis(request: Request, initramfs: str) -> list[str]:
    """Packages that unlock the root at boot; `initramfs` is the matching initramfs package."""
    encryption = request.install.encryption
    if encryption is Encryption.NONE:
        return []
    return ["clevis", "clevis-luks", initramfs, *(["clevis-tpm2"] if encryption is Encryption.TPM2 else [])]


def _files(request: Request, how: Finish) -> dict[str, tuple[str, int]]:
    cluster, node, user = request.cluster, request.node, request.cluster.ssh.user
    address = cluster.management_address(node)
    root_login = "prohibit-password" if user == "root" else "no"
    sshd = f"Port {cluster.ssh.port}\nPermitRootLogin {root_login}\nPasswordAuthentication no\n"
    found = {
        "/etc/hostname": (f"{node.name}\n", 0o644),
        "/etc/hosts": (
            f"127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n{address} {node.fqdn} {node.name}\n",
            0o644,
        ),
        **network.files(request),
        "/etc/ssh/sshd_config.d/90-install.conf": (sshd, 0o600),
    }
    if cluster.ssh.become == "sudo" and user != "root":
        found[f"/etc/sudoers.d/90-{user}"] = (f"{user} ALL=(ALL:ALL) NOPASSWD: ALL\n", 0o440)
    if how.menu:
        arguments = first_boot(request)
        if (
            request.install.encryption is Encryption.TANG
        ):  # the initramfs contacts the server before the root is mounted
            arguments = [*arguments, *network.initramfs_arguments(network.port_of(request), node.name)]
        line = f'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX {" ".join(arguments)}"\n'
        found["/etc/default/grub.d/80-install.cfg"] = (line, 0o644)
    return found


def _pin(request: Request) -> tuple[str, str]:
    """clevis pin and configuration, as in an installed image; contains no secret."""
    if request.install.encryption is Encryption.TANG:
        return "tang", json.dumps({"url": request.install.tang})
    return "tpm2", json.dumps({"pcr_bank": "sha256", "pcr_ids": "7"})
