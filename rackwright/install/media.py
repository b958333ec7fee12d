"""Boot media of the agent: an ISO for the BMC's virtual CD, and files for PXE and UEFI HTTP boot.

The one-time token is in an archive next to the agent's, never on the kernel command line. With PXE and HTTP, only the
boot network itself protects the token; a virtual CD image goes over TLS to one BMC.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rackwright.errors import ImageError
from rackwright.install import cpio
from rackwright.install.agent.guard import AUTHORITY, CONFIG
from rackwright.install.agent_image import ESP, GRUB_NET, INITRAMFS, KERNEL, SHIM
from rackwright.lab.process import run

ARGUMENTS = "console=ttyS0,115200"
"""Kernel arguments of the agent, unless a node declares others."""
LABEL = "RACKWRIGHT"
_SITE = "site.img"
_SECONDS = 120.0
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}")

# Debian's signed netboot GRUB reads grub/grub.cfg from its server. `exit` continues with the
# firmware's next boot entry: a machine that is not armed boots as if nothing were served.
_NETBOOT = """\
set timeout=0
if [ -s $prefix/mac/$net_default_mac ]; then
    source $prefix/mac/$net_default_mac
else
    echo "rackwright: no machine with the MAC address $net_default_mac is to be installed"
    exit
fi
"""
# With HTTP boot it reads the same file from the server root; fw_path is the folder that the firmware loaded shim from.
_HTTP_MENU = """\
set timeout=0
if [ -s $fw_path/grub.cfg ]; then
    source $fw_path/grub.cfg
else
    echo "rackwright: no machine with the MAC address $net_default_mac is to be installed"
    exit
fi
"""


@dataclass(frozen=True, slots=True)
class Armed:
    """A machine that may currently boot the agent from the network."""

    mac: str
    config: bytes = field(repr=False)
    authority: bytes
    arguments: str = ARGUMENTS


def make_iso(agent: Path, config: bytes, ca: bytes, target: Path, arguments: str = ARGUMENTS) -> None:
    """Write the ISO that boots the agent image `agent` with this config.json; readable by its owner alone.

    It has only a UEFI boot entry, and works under Secure Boot: shim, GRUB and the kernel are signed by Debian.
    """
    require_xorriso()
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as staging:
        folder = Path(staging)  # 0700
        (folder / _SITE).write_bytes(site_archive(config, ca))
        (folder / "grub.cfg").write_text(grub_config(_run_of(config), arguments))
        (folder / "info").write_text("rackwright\n")  # GRUB finds its CD by this file
        grafts = {
            ".disk/info": folder / "info",
            "boot/grub/grub.cfg": folder / "grub.cfg",
            _SITE: folder / _SITE,
            **{name: agent / name for name in (KERNEL, INITRAMFS, ESP)},
        }
        argv = ["xorriso", "-as", "mkisofs", "-quiet", "-R", "-V", LABEL, "-graft-points"]
        argv += ["-e", ESP, "-no-emul-boot", "-o", str(folder / "iso")]
        run(
            [*argv, *(f"{name}={path}" for name, path in grafts.items())],
            timeout=_SECONDS,
            shown=f"xorriso {target}",
        )
        (folder / "iso").chmod(0o600)
        os.replace(folder / "iso", target)


def netboot_files(agent: Path, folder: Path, armed: Sequence[Armed]) -> None:
    """PXE files for shimx64.efi: the agent for exactly these machines, and nothing for others.

    Called again with fewer machines, it first removes the tokens of the others.
    """
    require_macs(armed)
    macs = folder / "grub/mac"
    macs.mkdir(parents=True, exist_ok=True)
    wanted = {name for one in armed for name in (one.mac, f"{one.mac}.img")}
    for path in macs.iterdir():
        if path.name not in wanted:
            path.unlink()
    for name in (KERNEL, INITRAMFS, SHIM, GRUB_NET):
        _copy(agent / name, folder / name)
    _put(folder / "grub/grub.cfg", _NETBOOT.encode())
    for one in armed:
        site = f"/grub/mac/{one.mac}.img"
        _put(macs / f"{one.mac}.img", site_archive(one.config, one.authority))
        _put(macs / one.mac, grub_config(_run_of(one.config), one.arguments, site).encode())


def http_files(armed: Armed) -> dict[str, bytes]:
    """A machine's files for UEFI HTTP boot, served in one folder with the agent's."""
    return {
        "grub.cfg": grub_config(_run_of(armed.config), armed.arguments, folder="$fw_path").encode(),
        _SITE: site_archive(armed.config, armed.authority),
    }


def http_menu() -> bytes:
    """The first GRUB configuration with HTTP boot, the same for all machines: leads to the machine's folder."""
    return _HTTP_MENU.encode()


def require_macs(armed: Sequence[Armed]) -> None:
    """ImageError if a BMC or the cluster file has an invalid MAC address."""
    wrong = [one.mac for one in armed if not _MAC.fullmatch(one.mac)]
    if wrong:
        raise ImageError(
            f"not a valid lower-case MAC address: {', '.join(wrong)}", hint="e.g. 02:00:5e:10:00:01"
        )


def site_archive(config: bytes, ca: bytes) -> bytes:
    """The archive with one machine's files."""
    return cpio.archive(
        [
            cpio.Entry("rackwright", None, 0o700),
            cpio.Entry(CONFIG.strip("/"), config, 0o600),
            cpio.Entry(AUTHORITY.strip("/"), ca, 0o600),
        ]
    )


def grub_config(run_id: str, arguments: str = ARGUMENTS, site: str = f"/{_SITE}", folder: str = "") -> str:
    """grub.cfg of a medium; the kernel command line contains no secret.

    + folder: location of the files; empty: the root of the device that GRUB was loaded from
    """
    return (
        "set default=0\nset timeout=0\n"
        "menuentry 'rackwright' {\n"
        f"\tlinux {folder}/{KERNEL} {arguments} quiet rackwright.run={run_id}\n"
        f"\tinitrd {folder}/{INITRAMFS} {folder}{site}\n"
        "}\n"
    )


def require_xorriso() -> None:
    """ImageError if xorriso is missing."""
    if shutil.which("xorriso") is None:
        raise ImageError("xorriso is missing: apt-get install xorriso")


def _run_of(config: bytes) -> str:
    run_id = str(json.loads(config)["run"])
    if not re.fullmatch(r"[a-z0-9]{1,16}", run_id):
        raise ImageError(f"{run_id!r} is not a valid run id", hint="e.g. k3x9ab12")
    return run_id


def _copy(source: Path, target: Path) -> None:
    """Copy a file of the agent, unless it exists already."""
    if (
        target.exists()
        and target.stat().st_size == source.stat().st_size
        and target.stat().st_mtime_ns == source.stat().st_mtime_ns
    ):
        return
    unfinished = target.with_name(f".{target.name}.new")
    shutil.copy2(source, unfinished)
    unfinished.chmod(0o644)
    unfinished.replace(target)


def _put(target: Path, content: bytes) -> None:
    unfinished = target.with_name(f".{target.name}.new")
    unfinished.write_bytes(content)
    unfinished.chmod(0o644)  # regardless of the umask: TFTP servers serve what all can read
    unfinished.replace(target)
