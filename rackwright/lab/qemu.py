"""The command line of a virtual machine: plain qemu, one process a node.

Plain qemu and not libvirt: nothing has to be set up or left running on the host, the rack's control groups
identify and end its processes, and its namespaces hold its network. UEFI starts the boot loader on the
node's own disk, so that kernels, boot menus and kernel command lines change as they do on a server.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path

from rackwright.errors import LabError
from rackwright.lab import names, state
from rackwright.lab.boot_tree import SEED_SERIAL
from rackwright.lab.process import run
from rackwright.lab.seed import ports
from rackwright.lab.spec import NodeSpec, RackSpec, VmSpec

PROGRAM = "qemu-system-x86_64"
FIRMWARE = Path("/usr/share/OVMF/OVMF_CODE_4M.fd")
FIRMWARE_VARIABLES = Path("/usr/share/OVMF/OVMF_VARS_4M.fd")
SECURE_FIRMWARE = Path("/usr/share/OVMF/OVMF_CODE_4M.ms.fd")
SECURE_VARIABLES = Path("/usr/share/OVMF/OVMF_VARS_4M.ms.fd")
"""With the keys that Microsoft's certificate authorities have signed distributions' boot loaders with."""
KVM = Path("/dev/kvm")
MONITOR, AGENT, SERIAL, CONSOLE_LOG = "monitor", "agent", "serial", "console.log"
"""Sockets and log in the folder of a node's state, which is the working directory of its qemu."""
OVERHEAD_MIB = 1024
"""Of qemu beside the machine's memory: translated code, firmware, buffers and page cache."""

MANUFACTURER, PRODUCT = "rackwright", "lab"
CD_DRIVE, CD_DEVICE, BOOT_PORT = "cd", "cd0", "nic0"
"""Names that qemu's monitor has for a racked machine's CD drive and its first port."""
_FURTHER_DISKS = 100
_PXE_SETTINGS = ("opt/org.tianocore/IPv4PXESupport", "opt/org.tianocore/IPv6PXESupport")
"""Of the firmware: edk2's OvmfPkg/RUNTIME_CONFIG.md, read 2026-11-27. It has none that prefers HTTP."""
_TRANSLATED_MIB = 256
"""Cache of translated code; without a limit a small machine grows by gigabytes."""
_PROBE_SECONDS = 30
ROOT_SLOT = 2
_FIRST_DATA_SLOT = 4
"""On the root bus, after the random numbers, the root disk and the seed, which qemu places itself."""


@dataclass(frozen=True, slots=True)
class Disks:
    """The files of a machine's disks."""

    root: Path
    seed: Path | None
    """None: a racked machine, which has no identity before it is installed."""
    variables: Path
    data: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Start:
    """With what a racked machine is switched on."""

    order: tuple[str, ...]
    """Of `cd`, `disk` and `network`; what is not in it is not booted from."""
    medium: Path | None
    """What is in its CD drive."""
    secure_boot: bool
    bios_version: str
    by_http: bool = False
    """Whether `network` means UEFI HTTP boot."""


def tap(node: str, number: int) -> str:
    """The rack's end of a machine's cable, named as a container's."""
    return names.interface("v" if number == 0 else f"e{number}", node)


def drive_name(number: int | None = None) -> str:
    """The name that qemu's monitor has for the root disk or for a data disk."""
    return "root" if number is None else f"data{number}"


def data_slot(number: int) -> str:
    """PCI address of a data disk; the catalogue's lab SKU declares it."""
    return f"0000:00:{_FIRST_DATA_SLOT + number:02x}.0"


def command(spec: RackSpec, node: NodeSpec, disks: Disks, kvm: bool, start: Start | None = None) -> list[str]:
    """qemu for a node; its sockets are relative to its working directory.

    + start: of a racked machine
    """
    assert node.vm is not None
    return [
        PROGRAM,
        *("-name", f"{spec.name}.{node.name}", "-no-user-config", "-nodefaults", "-display", "none"),
        # What a guest makes of qemu cannot start programs, change users or leave its limits.
        *("-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"),
        *("-machine", f"q35{_secure_mode(start)}", *_processor(kvm), *_shape(node, node.vm)),
        *("-rtc", "base=utc,clock=host", "-device", "virtio-rng-pci"),
        *_firmware(start),
        *_network_boot(start),
        *("-drive", f"if=pflash,unit=1,format=raw,file={_quoted(disks.variables)}"),
        *_disks(node, disks, start),
        *(word for number in range(len(node.addresses)) for word in _port(spec, node, number, start)),
        *_identity(spec, node, start),
        *(
            "-chardev",
            f"socket,id=serial,path={SERIAL},server=on,wait=off,logfile={CONSOLE_LOG},logappend=on",
        ),
        *("-serial", "chardev:serial"),
        *("-chardev", f"socket,id=agent,path={AGENT},server=on,wait=off", "-device", "virtio-serial-pci"),
        *("-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0"),
        *("-qmp", f"unix:{MONITOR},server=on,wait=off"),
    ]


def _processor(kvm: bool) -> list[str]:
    if kvm:
        return ["-accel", "kvm", "-cpu", "host"]
    # All that qemu can emulate except five-level page tables: they are for terabytes of memory, each miss of the
    # emulated TLB walks one more level, and a kernel that used them panicked in its memory allocator (qemu 7.2).
    return ["-accel", f"tcg,thread=multi,tb-size={_TRANSLATED_MIB}", "-cpu", "max,la57=off"]


def _shape(node: NodeSpec, vm: VmSpec) -> list[str]:
    """CPUs and memory, in NUMA nodes of equal size."""
    words = ["-smp", f"{node.cpus},sockets={vm.sockets},cores={vm.cores},threads={vm.threads}"]
    words += ["-m", f"{node.memory_mib}M"]
    if vm.numa_nodes == 1:
        return words
    for number in range(vm.numa_nodes):
        first, end = (node.cpus * edge // vm.numa_nodes for edge in (number, number + 1))
        lower, upper = (node.memory_mib * edge // vm.numa_nodes for edge in (number, number + 1))
        words += ["-object", f"memory-backend-ram,id=memory{number},size={upper - lower}M"]
        words += ["-numa", f"node,nodeid={number},memdev=memory{number},cpus={first}-{end - 1}"]
    return words


def _secure_mode(start: Start | None) -> str:
    return ",smm=on" if start is not None and start.secure_boot else ""


def _firmware(start: Start | None) -> list[str]:
    if start is None or not start.secure_boot:
        return ["-drive", f"if=pflash,unit=0,format=raw,readonly=on,file={FIRMWARE}"]
    # The guest's kernel must not write the variables past the firmware: only code in system management mode may.
    return [
        *("-global", "driver=cfi.pflash01,property=secure,value=on", "-global", "ICH9-LPC.disable_s3=1"),
        *("-drive", f"if=pflash,unit=0,format=raw,readonly=on,file={SECURE_FIRMWARE}"),
    ]


def _network_boot(start: Start | None) -> list[str]:
    """Boot by HTTP alone where that is asked for: by itself the firmware tries PXE first, for minutes."""
    if start is None or not start.by_http:
        return []
    return [word for name in _PXE_SETTINGS for word in ("-fw_cfg", f"name={name},string=no")]


def _identity(spec: RackSpec, node: NodeSpec, start: Start | None) -> list[str]:
    """What the firmware of a racked machine prints of it (SMBIOS)."""
    if start is None:
        return []
    serial, uuid = names.serial_number(spec.name, node.name), names.machine_uuid(spec.name, node.name)
    made = f"manufacturer={MANUFACTURER}"
    return [
        *("-uuid", uuid, "-smbios", f"type=0,vendor={MANUFACTURER},version={start.bios_version},uefi=on"),
        *("-smbios", f"type=1,{made},product={PRODUCT},serial={serial},uuid={uuid}"),
        *("-smbios", f"type=2,{made},product={PRODUCT},serial={serial}"),
        *("-smbios", f"type=3,{made},serial={serial}"),
    ]


def _disks(node: NodeSpec, disks: Disks, start: Start | None) -> list[str]:
    # The guest's flushes reach this host's page cache, which a killed qemu leaves whole: a power cut loses
    # what the guest had not flushed. Only a crash of the host itself would lose more, and the rack with it.
    drive = drive_name()
    words = ["-drive", f"if=none,id={drive},format=qcow2,cache=unsafe,file={_quoted(disks.root)}"]
    serial = drive if start is None else names.disk_serial(node.name, drive)
    first = 0 if start is None else _index(start, "disk")
    place = "" if start is None else f",addr=0x{ROOT_SLOT:x}"  # which a cluster file may name (by_path)
    words += ["-device", f"virtio-blk-pci,drive={drive}{place},serial={serial},bootindex={first}"]
    if disks.seed is not None:
        words += ["-drive", f"if=none,id=seed,format=raw,readonly=on,file={_quoted(disks.seed)}"]
        words += ["-device", f"virtio-blk-pci,drive=seed,serial={SEED_SERIAL}"]
    for number, path in enumerate(disks.data):
        drive = drive_name(number)
        words += ["-drive", f"if=none,id={drive},format=qcow2,cache=unsafe,file={_quoted(path)}"]
        place = f"addr=0x{_FIRST_DATA_SLOT + number:x}"
        booted = "" if start is None else f",bootindex={first + 1 + number}"
        words += [
            "-device",
            f"nvme,drive={drive},{place},serial={names.disk_serial(node.name, drive)}{booted}",
        ]
    return [*words, *_cd(start)]


def _cd(start: Start | None) -> list[str]:
    if start is None:
        return []
    file = "" if start.medium is None else f",format=raw,file={_quoted(start.medium)}"
    device = f"ide-cd,id={CD_DEVICE},drive={CD_DRIVE},bus=ide.0"
    booted = f",bootindex={_index(start, 'cd')}" if "cd" in start.order else ""
    return ["-drive", f"if=none,id={CD_DRIVE},media=cdrom,readonly=on{file}", "-device", f"{device}{booted}"]


def _index(start: Start, device: str) -> int:
    """Place in the firmware's order, with room after `disk` for the further disks."""
    return start.order.index(device) * _FURTHER_DISKS


def _port(spec: RackSpec, node: NodeSpec, number: int, start: Start | None) -> list[str]:
    mac, _ = ports(spec.name, node)[number]
    mtu = f",host_mtu={node.mtu}" if node.mtu > 1500 else ""
    asked = start is not None and number == 0 and "network" in start.order
    booted = f",bootindex={_index(start, 'network')}" if start is not None and asked else ""
    return [
        *("-netdev", f"tap,id=port{number},ifname={tap(node.name, number)},script=no,downscript=no"),
        *("-device", f"virtio-net-pci,id=nic{number},netdev=port{number},mac={mac},romfile={mtu}{booted}"),
    ]


def _quoted(path: Path) -> str:
    return str(path).replace(",", ",,")


def kvm_works(kernel: Path) -> bool:
    """Whether this host can run that kernel on KVM: tried, since /dev/kvm may exist and run none.

    The kernel gets no root file system and panics; that it gets so far is the answer, which is kept until
    the host, qemu or the kernel changes.
    """
    if not KVM.exists():
        return False
    program = shutil.which(PROGRAM)
    if program is None:
        raise LabError(f"{PROGRAM} is missing", hint="apt-get install qemu-system-x86")
    about = [str(kernel), kernel.stat().st_mtime_ns, Path(program).stat().st_mtime_ns]
    record = names.RUNTIME / ".kvm.json"
    try:
        known = state.read_json(record)
    except LabError:
        known = None  # damaged: it is tried again
    if not isinstance(known, dict) or known.get("about") != about:
        known = {"about": about, "works": _boots_on_kvm(kernel)}
        state.write_json(record, known)
    return bool(known["works"])


def probe(kernel: Path) -> list[str]:
    """The command that boots a kernel on KVM as far as it gets."""
    # `timeout` does not pass its own end on: a killed `up` must leave no qemu behind.
    argv = ["timeout", "-s", "KILL", str(_PROBE_SECONDS), "setpriv", "--pdeathsig", "KILL", "--"]
    argv += [PROGRAM, "-no-user-config", "-nodefaults", "-display", "none", "-no-reboot", "-machine", "q35"]
    argv += ["-accel", "kvm", "-cpu", "host", "-m", "512M", "-serial", "stdio", "-kernel", str(kernel)]
    return [*argv, "-append", "console=ttyS0 panic=-1"]


def _boots_on_kvm(kernel: Path) -> bool:
    tried = run(probe(kernel), timeout=_PROBE_SECONDS + 10, check=False)
    return "Linux version" in tried.stdout
