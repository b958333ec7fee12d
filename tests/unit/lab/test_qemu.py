"""qemu's command line, and whether KVM is tried before it is used."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

from rackwright.catalog.read import catalogue
from rackwright.errors import LabError
from rackwright.lab import names, process, qemu
from rackwright.lab.qemu import Disks, Start, command, data_slot, kvm_works
from rackwright.lab.spec import VmSpec
from tests.unit.lab.specs import node, rack

DISKS = Disks(Path("/d/root.qcow2"), Path("/d/seed.raw"), Path("/d/variables.fd"), ())
PLAIN = VmSpec(sockets=1, cores=2, threads=1, numa_nodes=1)
BEGIN = (
    "qemu-system-x86_64 -name unit.node1 -no-user-config -nodefaults -display none"
    " -sandbox on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"
    " -machine q35"
)
CLOCK_AND_FIRMWARE = (
    " -rtc base=utc,clock=host -device virtio-rng-pci"
    " -drive if=pflash,unit=0,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd"
)
END = (
    " -chardev socket,id=serial,path=serial,server=on,wait=off,logfile=console.log,logappend=on"
    " -serial chardev:serial"
    " -chardev socket,id=agent,path=agent,server=on,wait=off -device virtio-serial-pci"
    " -device virtserialport,chardev=agent,name=org.qemu.guest_agent.0"
    " -qmp unix:monitor,server=on,wait=off"
)


def test_a_small_machine_without_kvm(tmp_path: Path):
    spec = rack(tmp_path, nodes=(node(1, vm=PLAIN),))
    assert shlex.join(command(spec, spec.nodes[0], DISKS, kvm=False)) == (
        f"{BEGIN} -accel tcg,thread=multi,tb-size=256 -cpu max,la57=off"
        " -smp 2,sockets=1,cores=2,threads=1 -m 1024M"
        f"{CLOCK_AND_FIRMWARE}"
        " -drive if=pflash,unit=1,format=raw,file=/d/variables.fd"
        " -drive if=none,id=root,format=qcow2,cache=unsafe,file=/d/root.qcow2"
        " -device virtio-blk-pci,drive=root,serial=root,bootindex=0"
        " -drive if=none,id=seed,format=raw,readonly=on,file=/d/seed.raw"
        " -device virtio-blk-pci,drive=seed,serial=rackwright-seed"
        " -netdev tap,id=port0,ifname=v-node1,script=no,downscript=no"
        f" -device virtio-net-pci,id=nic0,netdev=port0,mac={names.mac('unit', 'node1', 'node')},romfile="
        f"{END}"
    )


def test_the_lab_sku_declares_the_slots_of_its_drives():
    (drives,) = catalogue()["lab-vm-worker"].nvme
    assert drives.slots == tuple(data_slot(number) for number in range(drives.count))


def test_numa_nodes_drives_ports_and_long_frames_on_kvm(tmp_path: Path):
    one = node(
        1,
        name="worker-of-rack-12",
        cpus=5,
        memory_mib=2049,
        mtu=9000,
        extra_addresses=("10.9.0.11/24", "10.9.1.11/24"),
        vm=VmSpec(sockets=5, cores=1, threads=1, numa_nodes=2, data_disks_gb=(4, 8)),
    )
    folder = Path("/a,b")
    disks = Disks(
        *(folder / name for name in ("root", "seed", "variables")), (folder / "data0", folder / "data1")
    )
    spec = rack(tmp_path, nodes=(one,))
    macs = [names.mac("unit", one.name, side) for side in ("node", "node1", "node2")]
    assert len(set(macs)) == 3
    assert shlex.join(command(spec, one, disks, kvm=True)) == (
        f"{BEGIN.replace('node1', one.name)} -accel kvm -cpu host"
        " -smp 5,sockets=5,cores=1,threads=1 -m 2049M"
        " -object memory-backend-ram,id=memory0,size=1024M -numa node,nodeid=0,memdev=memory0,cpus=0-1"
        " -object memory-backend-ram,id=memory1,size=1025M -numa node,nodeid=1,memdev=memory1,cpus=2-4"
        f"{CLOCK_AND_FIRMWARE}"
        " -drive if=pflash,unit=1,format=raw,file=/a,,b/variables"
        " -drive if=none,id=root,format=qcow2,cache=unsafe,file=/a,,b/root"
        " -device virtio-blk-pci,drive=root,serial=root,bootindex=0"
        " -drive if=none,id=seed,format=raw,readonly=on,file=/a,,b/seed"
        " -device virtio-blk-pci,drive=seed,serial=rackwright-seed"
        " -drive if=none,id=data0,format=qcow2,cache=unsafe,file=/a,,b/data0"
        " -device nvme,drive=data0,addr=0x4,serial=worker-of-ra-data0"
        " -drive if=none,id=data1,format=qcow2,cache=unsafe,file=/a,,b/data1"
        " -device nvme,drive=data1,addr=0x5,serial=worker-of-ra-data1"
        f" -netdev tap,id=port0,ifname={names.interface('v', one.name)},script=no,downscript=no"
        f" -device virtio-net-pci,id=nic0,netdev=port0,mac={macs[0]},romfile=,host_mtu=9000"
        f" -netdev tap,id=port1,ifname={names.interface('e1', one.name)},script=no,downscript=no"
        f" -device virtio-net-pci,id=nic1,netdev=port1,mac={macs[1]},romfile=,host_mtu=9000"
        f" -netdev tap,id=port2,ifname={names.interface('e2', one.name)},script=no,downscript=no"
        f" -device virtio-net-pci,id=nic2,netdev=port2,mac={macs[2]},romfile=,host_mtu=9000"
        f"{END}"
    )


def test_the_serial_number_of_a_drive_is_as_long_as_nvme_allows(tmp_path: Path):
    long = node(1, name="n" * 63, vm=PLAIN)
    disks = Disks(DISKS.root, DISKS.seed, DISKS.variables, tuple(Path(f"/d/{i}") for i in range(24)))
    words = command(rack(tmp_path, nodes=(long,)), long, disks, kvm=False)
    serials = [word.partition("serial=")[2] for word in words if word.startswith("nvme,")]
    assert len(set(serials)) == 24
    assert max(map(len, serials)) <= 20  # NVM Express base specification, Identify Controller, SN


def racked_words(tmp_path: Path, start: Start) -> list[str]:
    one = node(1, vm=VmSpec(sockets=1, cores=2, threads=1, numa_nodes=1, data_disks_gb=(4,)))
    disks = Disks(DISKS.root, None, DISKS.variables, (Path("/d/data0"),))
    return command(rack(tmp_path, nodes=(one,)), one, disks, kvm=False, start=start)


def test_a_racked_machine_boots_its_disks_and_says_who_it_is(tmp_path: Path):
    words = racked_words(tmp_path, Start(("disk",), None, secure_boot=False, bios_version="1.0.0"))
    text = shlex.join(words)
    assert "seed" not in text
    assert "smm" not in text
    devices = [word for word in words if re.match(r"(virtio-blk-pci|nvme|ide-cd|virtio-net-pci)", word)]
    mac = names.port_mac("unit", "node1", 0)
    assert devices == [
        "virtio-blk-pci,drive=root,addr=0x2,serial=node1-root,bootindex=0",
        "nvme,drive=data0,addr=0x4,serial=node1-data0,bootindex=1",
        "ide-cd,id=cd0,drive=cd,bus=ide.0",
        f"virtio-net-pci,id=nic0,netdev=port0,mac={mac},romfile=",
    ]
    assert "if=none,id=cd,media=cdrom,readonly=on" in words
    uuid = names.machine_uuid("unit", "node1")
    assert f"type=1,manufacturer=rackwright,product=lab,serial=RW-unit-node1,uuid={uuid}" in words
    assert "type=0,vendor=rackwright,version=1.0.0,uefi=on" in words


@pytest.mark.parametrize(
    ("order", "indexes"),
    [
        (("cd", "disk"), {"cd0": 0, "root": 100, "data0": 101}),
        (("network", "disk"), {"nic0": 0, "root": 100, "data0": 101}),
        (("disk",), {"root": 0, "data0": 1}),
    ],
)
def test_only_what_is_to_be_booted_has_a_place_in_the_firmwares_order(
    tmp_path: Path, order: tuple[str, ...], indexes: dict[str, int]
):
    words = racked_words(tmp_path, Start(order, None, secure_boot=False, bios_version="1"))
    found = {
        match[1]: int(match[2])
        for word in words
        if (match := re.search(r"(?:id|drive)=(cd0|nic0|root|data0)\b.*bootindex=(\d+)", word))
    }
    assert found == indexes


def test_http_boot_is_asked_for_alone(tmp_path: Path):
    off = [f"name=opt/org.tianocore/IPv{version}PXESupport,string=no" for version in (4, 6)]
    for by_http in (True, False):
        start = Start(("network", "disk"), None, secure_boot=False, bios_version="1", by_http=by_http)
        words = racked_words(tmp_path, start)
        assert [word for word in words if "PXESupport" in word] == (off if by_http else [])


def test_secure_boot_is_another_firmware_whose_variables_only_it_writes(tmp_path: Path):
    medium = Path("/d,e/medium.iso")
    words = racked_words(tmp_path, Start(("cd", "disk"), medium, secure_boot=True, bios_version="1"))
    assert "q35,smm=on" in words
    assert "driver=cfi.pflash01,property=secure,value=on" in words
    assert "if=pflash,unit=0,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.ms.fd" in words
    assert "if=none,id=cd,media=cdrom,readonly=on,format=raw,file=/d,,e/medium.iso" in words


class Host:
    """A host whose qemu is a script that prints something when it is asked to boot."""

    def __init__(self, folder: Path) -> None:
        self.kernel = folder / "vmlinuz"
        self.kernel.write_text("a kernel")
        self.program = folder / "qemu-system-x86_64"
        self.asked = folder / "asked"
        self.says("Linux version 6.12.1")

    def says(self, text: str) -> None:
        self.program.write_text(f'#!/bin/sh\necho "$*" >>{self.asked}\necho "{text}"\nexit 1\n')
        self.program.chmod(0o755)

    def times(self) -> int:
        return len(self.asked.read_text().splitlines()) if self.asked.exists() else 0


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    """A host with /dev/kvm; setpriv, which needs root, only runs what it is given."""
    monkeypatch.setattr(names, "RUNTIME", tmp_path / "run")
    monkeypatch.setattr(process, "_UNTIL_PARENT_ENDS", ())
    (tmp_path / "run").mkdir()
    programs = tmp_path / "bin"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    monkeypatch.setattr(qemu, "KVM", tmp_path / "kvm")
    (tmp_path / "kvm").touch()
    return Host(programs)


def test_a_host_without_the_device_is_not_tried(host: Host):
    qemu.KVM.unlink()
    assert kvm_works(host.kernel) is False
    assert host.times() == 0


@pytest.mark.parametrize(
    ("says", "works"),
    [("Linux version 6.12.1", True), ("KVM internal error. Suberror: 1", False), ("", False)],
)
def test_kvm_works_where_the_kernel_prints_its_version(host: Host, says: str, works: bool):
    host.says(says)
    assert kvm_works(host.kernel) is works
    asked = host.asked.read_text()
    assert "-accel kvm -cpu host" in asked
    assert f"-kernel {host.kernel}" in asked


def test_the_answer_is_kept_until_qemu_or_the_kernel_changes(host: Host):
    assert [kvm_works(host.kernel) for _ in range(3)] == [True, True, True]
    assert host.times() == 1
    os.utime(host.kernel, (1, 1))  # another kernel at the same place
    assert kvm_works(host.kernel) is True
    assert host.times() == 2
    host.says("nothing")
    os.utime(host.program, (1, 1))
    assert kvm_works(host.kernel) is False
    assert host.times() == 3
    other = host.kernel.with_name("vmlinuz-2")
    other.write_text("")
    kvm_works(other)
    assert host.times() == 4


@pytest.mark.parametrize("kept", ["{", "[]", '{"works": true}', "null"])
def test_a_damaged_answer_is_asked_again(host: Host, kept: str):
    (names.RUNTIME / ".kvm.json").write_text(kept)
    host.says("nothing")
    assert kvm_works(host.kernel) is False
    assert json.loads((names.RUNTIME / ".kvm.json").read_text())["works"] is False


def test_a_probe_ends_with_its_caller(host: Host):
    """Without a word from its caller: `timeout` alone would leave a qemu that hangs when `up` is killed."""
    pid = host.program.with_name("pid")
    host.program.write_text(f"#!/bin/sh\necho $$ >{pid}\nexec sleep 600\n")
    with subprocess.Popen(qemu.probe(host.kernel), env=process.environment()) as timeout:
        process.wait_until(lambda: pid.exists() and pid.read_text() != "", "the probe", 20)
        timeout.kill()
    probed = Path(f"/proc/{pid.read_text().strip()}/stat")
    process.wait_until(lambda: not probed.exists() or ") Z " in probed.read_text(), "its end", 20)


def test_kvm_without_qemu_names_its_package(host: Host, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError) as caught:
        kvm_works(host.kernel)
    assert (caught.value.message, caught.value.hint) == (
        "qemu-system-x86_64 is missing",
        "apt-get install qemu-system-x86",
    )
