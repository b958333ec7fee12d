"""Debian's installer.

Questions: example-preseed.txt of installation-guide 20230508+deb12u1, partman-auto-recipe.txt and
partman-auto-raid-recipe.txt of debian-installer 20230607+deb12u15, templates and scripts in the initrd of
debian-installer-12-netboot-amd64 of the same version. All read 2026-11-27.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from rackwright.install.installers import network, scripts
from rackwright.install.installers.request import ONCE, Answers, Request
from rackwright.install.installers.scripts import BOOT_MIB, ESP_MIB, Finish
from rackwright.model.install import Encryption, Install, Volumes
from rackwright.render import render

_TARGET = "/target"
_ARCHIVE = "http://deb.debian.org/debian"
# These run after the late command: one saves the log, which contains the command line and the passphrase question.
_SCRUB = (
    "rm -f /usr/lib/finish-install.d/94save-logs\n"
    f"rm -rf {_TARGET}/var/log/installer\n"
    f"mkdir -p {_TARGET}/etc/network\n"
    f"printf 'source /etc/network/interfaces.d/*\\nauto lo\\niface lo inet loopback\\n' >{_TARGET}/etc/network/interfaces"
)
_REST = 10**9
"""Larger than any disk, in MB."""


def answers(request: Request) -> Answers:
    """The preseed file with its two scripts, and the kernel arguments that point to it."""
    port, node, mirrors = network.port_of(request), request.node, request.cluster.mirrors
    # netcfg asks for both and rejects empty answers on the command line; the installed system gets the declared values
    there = urlsplit(request.head).hostname
    gateway, nameservers = port.network.gateway or there, port.nameservers or (there,)
    end = Finish(target=_TARGET, scrub=_SCRUB, initramfs=f"chroot {_TARGET} update-initramfs -u -k all")
    text = render(
        "install/preseed.cfg.j2",
        node=node,
        run=request.run,
        files_url=request.files_url,
        port=port,
        gateway=gateway,
        nameservers=nameservers,
        domain=request.cluster.domain,
        mirror_url=urlsplit(mirrors.apt or _ARCHIVE),
        proxy=mirrors.apt_proxy or "",
        # a mirror of the archive has no security suite; the first apply writes the declared sources
        services="security, updates" if mirrors.apt is None else "updates",
        method=_method(request.install),
        recipe=recipe(request.install),
        packages=[
            "openssh-server",
            "sudo",
            "efibootmgr",
            "dosfstools",
            *scripts.clevis(request, "clevis-initramfs"),
        ],
    )
    files = {
        "preseed.cfg": text,
        "guard.sh": "#!/bin/sh\n" + scripts.guard(request),
        "finish.sh": "#!/bin/sh\n" + scripts.finish(request, end),
        ONCE: f"{request.session}\n{request.recovery or ''}\n",
    }
    return Answers(files, " ".join(_arguments(request, str(gateway), str(nameservers[0]))))


def _arguments(request: Request, gateway: str, nameserver: str) -> list[str]:
    """What d-i must know before it can download the file."""
    port = network.port_of(request)
    return [
        "auto=true",
        "priority=critical",
        f"url={request.files_url}preseed.cfg",
        f"interface={port.macs[0]}",
        f"hostname={request.node.name}",
        f"domain={request.cluster.domain}",
        "netcfg/disable_autoconfig=true",
        f"netcfg/get_ipaddress={port.address}",
        f"netcfg/get_netmask={port.network.cidr.netmask}",
        f"netcfg/get_gateway={gateway}",
        f"netcfg/get_nameservers={nameserver}",
        "netcfg/confirm_static=true",
        "DEBIAN_FRONTEND=text",
        *scripts.console(request),
    ]


def recipe(install: Install) -> str:
    """partman's recipe: `minimal priority maximal type` in MB, then what to do with the partition."""
    lvm, mirror = install.volumes is Volumes.LVM, install.mirror
    encrypted = install.encryption is not Encryption.NONE
    once = (
        "$lvmignore{ } " if mirror and lvm else ""
    )  # partman reads the recipe again for volumes on the array
    esp = f"{ESP_MIB} {ESP_MIB} {ESP_MIB} free {once}$iflabel{{ gpt }} $reusemethod{{ }} method{{ efi }} format{{ }} ."
    size = f"{BOOT_MIB} {BOOT_MIB} {BOOT_MIB}"
    rest = f"4096 10000 {_REST}"
    if mirror:
        parts = [esp, f"{size} raid {once}method{{ raid }} .", f"{rest} raid {once}method{{ raid }} ."]
        if lvm:
            parts.append(f"{rest} ext4 $defaultignore{{ }} $lvmok{{ }} lv_name{{ root }} {_formatted('/')} .")
    else:
        hidden = "$defaultignore{ } " if lvm or encrypted else ""
        parts = [esp, f"{size} ext4 {hidden}{_formatted('/boot')} ."]
        volume = "$lvmok{ } lv_name{ root } " if lvm else ""
        parts.append(f"{rest} ext4 {volume}{_formatted('/')} .")
    return f"rackwright :: {' '.join(parts)}"


def _formatted(path: str) -> str:
    return f"method{{ format }} format{{ }} use_filesystem{{ }} filesystem{{ ext4 }} mountpoint{{ {path} }}"


def _method(install: Install) -> str:
    if install.mirror:
        return "raid"
    if install.encryption is not Encryption.NONE:
        return "crypto"
    return "lvm" if install.volumes is Volumes.LVM else "regular"
