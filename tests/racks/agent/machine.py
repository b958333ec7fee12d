"""One machine under qemu without an operating system: firmware, blank disks, a CD drive and a serial console."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from rackwright.lab import qemu
from tests.racks.agent.wire import TAPS

MACS = ("02:00:5e:10:00:11", "02:00:5e:10:00:12")
MAC = MACS[0]
SERIAL = "SN-11"
_SECURE_FIRMWARE = Path("/usr/share/OVMF/OVMF_CODE_4M.ms.fd")
_SECURE_VARIABLES = Path("/usr/share/OVMF/OVMF_VARS_4M.ms.fd")


class Machine:
    """Its disks, its firmware's variables and its consoles are files of one folder."""

    def __init__(
        self, folder: Path, namespace: str, disks: int, *, secure_boot: bool = False, mib: int = 6144
    ) -> None:
        self.folder, self.namespace, self.secure_boot = folder, namespace, secure_boot
        self.disks = [folder / f"disk{number}.qcow2" for number in range(disks)]
        self._process: subprocess.Popen[bytes] | None = None
        self._boots = 0
        self.networks = [_tap(TAPS[0])]
        """What its ports are connected to."""
        self.clock = "utc"
        """Its clock when it is switched on: `utc`, or another time in ISO 8601."""
        self.settings: dict[str, str] = {}
        """Of its firmware (edk2's OvmfPkg/RUNTIME_CONFIG.md), by name."""
        for disk in self.disks:
            subprocess.run(
                ["qemu-img", "create", "-q", "-f", "qcow2", disk, f"{mib}M"], check=True, timeout=60
            )
        source = _SECURE_VARIABLES if secure_boot else qemu.FIRMWARE_VARIABLES
        shutil.copyfile(source, folder / "variables.fd")

    def connect_all(self) -> None:
        """A second port, on the switch too."""
        self.networks = [_tap(name) for name in TAPS]

    @property
    def console(self) -> Path:
        """What the serial console of the last start printed."""
        return self.folder / f"console{self._boots}.log"

    def start(self, medium: Path | None = None, *, disks: Sequence[Path] | None = None) -> None:
        """Switch it on; from the medium where there is one, else from its disks."""
        assert self._process is None
        self._boots += 1
        log = (self.folder / f"qemu{self._boots}.log").open("wb")
        argv = ["ip", "netns", "exec", self.namespace, "setpriv", "--pdeathsig", "KILL", "--"]
        argv += self._command(medium, self.disks if disks is None else disks)
        self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        log.close()

    def wait_off(self, seconds: float) -> float:
        """Wait until it has switched itself off, and return how long that took."""
        start = time.monotonic()
        assert self._process is not None
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still on after {seconds:g} s: {self.said()[-3000:]}") from None
        self._process = None
        return time.monotonic() - start

    def wait_for(self, text: str, seconds: float) -> float:
        """Wait until the console shows a text."""
        start = time.monotonic()
        while text not in self.said():
            assert time.monotonic() < start + seconds, f"{text!r} not seen: {self.said()[-3000:]}"
            assert self._process is not None
            assert self._process.poll() is None, f"off before {text!r}: {self.said()[-3000:]}"
            time.sleep(0.5)
        return time.monotonic() - start

    def said(self) -> str:
        """What the console of the last start shows."""
        return self.console.read_text(errors="replace") if self.console.exists() else ""

    def type(self, line: str) -> None:
        """Type a line on the serial console."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(self.folder / "serial"))
            connection.sendall(line.encode() + b"\n")
            time.sleep(0.5)

    def ask(self, command: str, end: str) -> str:
        """What the console shows once a command has ended, where root is logged in; `end` marks it."""
        self.type(f"{command}; echo {end[:2]}''{end[2:]}")
        self.wait_for(end, 120)
        return self.said()

    def off(self) -> None:
        """Pull the plug."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(30)
            self._process = None

    def write(self, disk: int, command: Sequence[str]) -> None:
        """Change a disk of a machine that is off; the raw file's name is added to the command."""
        raw = self.folder / "raw"
        convert = ["qemu-img", "convert"]
        subprocess.run([*convert, "-O", "raw", self.disks[disk], raw], check=True, timeout=300)
        subprocess.run([*command, raw], check=True, timeout=60)
        subprocess.run([*convert, "-O", "qcow2", raw, self.disks[disk]], check=True, timeout=300)
        raw.unlink()

    def _command(self, medium: Path | None, disks: Sequence[Path]) -> list[str]:
        (self.folder / "serial").unlink(missing_ok=True)
        firmware = _SECURE_FIRMWARE if self.secure_boot else qemu.FIRMWARE
        words = [
            qemu.PROGRAM,
            *("-no-user-config", "-nodefaults", "-display", "none", "-no-reboot"),
            *("-machine", f"q35{',smm=on' if self.secure_boot else ''}"),
            *("-accel", "tcg,thread=multi,tb-size=256", "-cpu", "max,la57=off", "-smp", "2", "-m", "2048M"),
            *("-smbios", f"type=1,manufacturer=rackwright,product=test,serial={SERIAL}"),
            *("-drive", f"if=pflash,unit=0,format=raw,readonly=on,file={firmware}"),
            *("-drive", f"if=pflash,unit=1,format=raw,file={self.folder}/variables.fd"),
            *("-rtc", f"base={self.clock}"),
            *("-device", "virtio-rng-pci"),
            *("-chardev", f"socket,id=s,path={self.folder}/serial,server=on,wait=off,logfile={self.console}"),
            *("-serial", "chardev:s"),
        ]
        for number, network in enumerate(self.networks):
            port = f"virtio-net-pci,netdev=net{number},mac={MACS[number]},romfile=,bootindex={9 + number},speed=10000,duplex=full"
            words += ["-netdev", f"{network},id=net{number}", "-device", port]
        for name, value in self.settings.items():
            words += ["-fw_cfg", f"name=opt/org.tianocore/{name},string={value}"]
        if self.secure_boot:
            words += ["-global", "driver=cfi.pflash01,property=secure,value=on"]
        for number, disk in enumerate(disks):
            index = f",bootindex={number + 1}"
            words += ["-drive", f"if=none,id=d{number},format=qcow2,cache=unsafe,discard=unmap,file={disk}"]
            words += ["-device", f"virtio-blk-pci,drive=d{number},serial={disk_serial(disk)}{index}"]
        if medium is not None:
            words += ["-drive", f"if=none,id=cd,format=raw,media=cdrom,readonly=on,file={medium}"]
            words += ["-device", "ide-cd,drive=cd,bootindex=0"]
        return words


def _tap(name: str) -> str:
    return f"tap,ifname={name},script=no,downscript=no"


def disk_serial(disk: Path) -> str:
    """Serial number that the machine sees of a disk."""
    return f"RW-{disk.stem}"
