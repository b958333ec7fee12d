"""Ubuntu's installer, subiquity: a NoCloud folder.

Keys: Autoinstall configuration reference manual (canonical/subiquity, doc/reference, 44e42fc6); storage actions: curtin,
doc/topics/storage.rst (737e305d). Both read 2026-11-27.
"""

from __future__ import annotations

from typing import Any

import yaml

from rackwright.install.installers import network, scripts
from rackwright.install.installers.request import ONCE, Answers, Request
from rackwright.install.installers.scripts import BOOT_MIB, DISK, ESP_MIB, Finish
from rackwright.model.install import Encryption, Volumes

_TARGET = "/target"
# Subiquity copies its logs, including its kernel command line, after the late commands: divert them to memory here.
_SCRUB = (
    f"rm -rf {_TARGET}/var/log/installer\nmkdir -p {_TARGET}/var/log/installer\n"
    f"mount -t tmpfs -o size=256m none {_TARGET}/var/log/installer\n"
    # leftovers for cloud-init would delete the host key, and configure the user and the network a second time
    f"rm -rf {_TARGET}/etc/cloud/cloud.cfg.d/*installer* {_TARGET}/var/lib/cloud/seed\n"
    f"mkdir -p {_TARGET}/etc/cloud\n: >{_TARGET}/etc/cloud/cloud-init.disabled"
)


def answers(request: Request) -> Answers:
    """Files of a NoCloud folder, and the kernel arguments that point to it."""
    end = Finish(
        target=_TARGET,
        scrub=_SCRUB,
        clear=("/etc/netplan/*.yaml",),
        initramfs=f"chroot {_TARGET} update-initramfs -u -k all",
    )
    document = {"autoinstall": _document(request, scripts.guard(request), scripts.finish(request, end))}
    port = network.port_of(request)
    arguments = [
        "autoinstall",
        f"ds=nocloud-net;s={request.files_url}",
        *network.initramfs_arguments(port, request.node.name),
        *([] if request.media is None else [f"url={request.media}"]),
        *scripts.console(request),
    ]
    files = {
        "user-data": "#cloud-config\n" + yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=10**6),
        "meta-data": f"instance-id: rackwright-{request.run}\n",
        "vendor-data": "",
        ONCE: f"{request.session}\n{request.recovery or ''}\n",
    }
    return Answers(files, " ".join(arguments))


def _document(request: Request, guard: str, finish: str) -> dict[str, Any]:
    return {
        "version": 1,
        "early-commands": [guard],
        "locale": "en_US.UTF-8",
        "keyboard": {"layout": "us"},
        "refresh-installer": {"update": False},
        "network": network.netplan(network.port_of(request)),
        "apt": _apt(request),
        "storage": {"swap": {"size": 0}, "config": _storage(request)},
        "ssh": {"install-server": True, "allow-pw": False},
        "packages": [*scripts.clevis(request, "clevis-initramfs"), "dosfstools", "efibootmgr"],
        "drivers": {"install": False},
        "timezone": "Etc/UTC",
        "updates": "security",
        "shutdown": "poweroff",
        "user-data": {
            "users": [],
            "ssh_deletekeys": False,
        },  # instead of a subiquity user with a password
        "late-commands": [finish],
        "error-commands": [scripts.report_failure(request)],
    }


def _apt(request: Request) -> dict[str, Any]:
    mirrors = request.cluster.mirrors
    found: dict[str, Any] = {"preserve_sources_list": False, "geoip": False}
    if mirrors.apt is not None:
        found["primary"] = [{"arches": ["default"], "uri": mirrors.apt}]
        found["security"] = [{"arches": ["default"], "uri": mirrors.apt_security or mirrors.apt}]
    if mirrors.apt_proxy is not None:
        found["http_proxy"] = mirrors.apt_proxy
    return found


def _storage(request: Request) -> list[dict[str, Any]]:
    install, numbers = request.install, range(len(request.disks))
    actions: list[dict[str, Any]] = []
    for number in numbers:
        actions += _disk(number)
    boot, root = "boot0", "root0"
    if install.mirror:
        for name, level in (("boot", "md-boot"), ("root", "md-root")):
            members = [f"{name}{number}" for number in numbers]
            actions.append({"id": level, "type": "raid", "name": name, "raidlevel": 1, "devices": members})
        boot, root = "md-boot", "md-root"
    if install.encryption is not Encryption.NONE:
        key = {"keyfile": "/run/rackwright/recovery"}  # created by the check; not part of any answer
        actions.append({"id": "crypt", "type": "dm_crypt", "volume": root, "dm_name": "root_crypt", **key})
        root = "crypt"
    if install.volumes is Volumes.LVM:
        actions.append({"id": "group", "type": "lvm_volgroup", "name": "system", "devices": [root]})
        actions.append(
            {"id": "volume", "type": "lvm_partition", "name": "root", "volgroup": "group", "size": -1}
        )
        root = "volume"
    for volume, path in ((root, "/"), (boot, "/boot")):
        actions.append({"id": f"{volume}-format", "type": "format", "volume": volume, "fstype": "ext4"})
        actions.append({"id": f"{volume}-mount", "type": "mount", "device": f"{volume}-format", "path": path})
    actions.append({"id": "esp0-mount", "type": "mount", "device": "esp0-format", "path": "/boot/efi"})
    return actions


def _disk(number: int) -> list[dict[str, Any]]:
    disk, part = f"disk{number}", {"type": "partition", "device": f"disk{number}", "wipe": "superblock"}
    return [
        {
            "id": disk,
            "type": "disk",
            "ptable": "gpt",
            "wipe": "superblock-recursive",
            "grub_device": False,
            "match": {"path": f"{DISK}{number}"},
        },
        {
            "id": f"esp{number}",
            **part,
            "number": 1,
            "size": f"{ESP_MIB}M",
            "flag": "boot",
            "grub_device": True,
        },
        {"id": f"boot{number}", **part, "number": 2, "size": f"{BOOT_MIB}M"},
        {"id": f"root{number}", **part, "number": 3, "size": -1},
        {"id": f"esp{number}-format", "type": "format", "volume": f"esp{number}", "fstype": "fat32"},
    ]


class _Dumper(yaml.SafeDumper):
    """Dump YAML with scripts as readable blocks and without anchors."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ANN401
        return True


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
