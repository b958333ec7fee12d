"""One machine of libvirt's: a blank disk, a port, firmware with Secure Boot, and no power."""

from __future__ import annotations

from pathlib import Path

from tests.racks.sushy.private_site import BOOT_BRIDGE, PrivateSite

NAME = "machine1"
UUID = "87000000-0a0b-4c0d-8e0f-000000000011"
SERIAL, DISK = "SN-machine1", "DISK-machine1"
MAC = "52:54:00:87:00:11"
MEMORY_MIB = 2048
SECURE_FIRMWARE = Path("/usr/share/OVMF/OVMF_CODE_4M.ms.fd")
MICROSOFT_VARIABLES = Path("/usr/share/OVMF/OVMF_VARS_4M.ms.fd")
VARIABLES = Path("/usr/share/OVMF/OVMF_VARS_4M.fd")

# Without a ROM the port cannot boot from the network; the smaller buffer of translated code keeps qemu near the
# machine's own memory.
_DOMAIN = """\
<domain type='qemu'>
  <name>{name}</name><uuid>{uuid}</uuid>
  <memory unit='MiB'>{memory}</memory><vcpu>2</vcpu>
  <sysinfo type='smbios'><system>
    <entry name='manufacturer'>Example</entry><entry name='product'>VM-1U</entry>
    <entry name='serial'>{serial}</entry><entry name='uuid'>{uuid}</entry>
  </system></sysinfo>
  <os>
    <type arch='x86_64' machine='q35'>hvm</type>
    <loader readonly='yes' secure='yes' type='pflash'>{firmware}</loader>
    <nvram template='{variables}'>{folder}/{name}.fd</nvram>
    <smbios mode='sysinfo'/>
  </os>
  <features><acpi/><apic/><smm state='on'/><tcg><tb-cache unit='MiB'>128</tb-cache></tcg></features>
  <cpu mode='maximum' check='none'/>
  <on_poweroff>destroy</on_poweroff><on_reboot>restart</on_reboot><on_crash>destroy</on_crash>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <disk type='file' device='disk'>
      <driver name='qemu' type='qcow2' cache='unsafe'/><source file='{folder}/{name}.qcow2'/>
      <target dev='vda' bus='virtio'/><serial>{disk}</serial><boot order='1'/>
    </disk>
    <interface type='bridge'>
      <mac address='{mac}'/><source bridge='{bridge}'/><model type='virtio'/><rom enabled='no'/>
    </interface>
    <serial type='pty'><log file='{folder}/console.log' append='on'/><target port='0'/></serial>
    <rng model='virtio'><backend model='random'>/dev/urandom</backend></rng>
    <memballoon model='none'/><video><model type='none'/></video>
  </devices>
</domain>
"""


def rack(site: PrivateSite) -> None:
    """Define the machine; it is off."""
    folder = site.folder / "machine"
    folder.mkdir()
    done = site.run(
        ["qemu-img", "create", "-q", "-f", "qcow2", str(folder / f"{NAME}.qcow2"), "6G"], timeout=60
    )
    assert done.status == 0, done
    (folder / "domain.xml").write_text(
        _DOMAIN.format(
            name=NAME,
            uuid=UUID,
            memory=MEMORY_MIB,
            serial=SERIAL,
            disk=DISK,
            mac=MAC,
            bridge=BOOT_BRIDGE,
            folder=folder,
            firmware=SECURE_FIRMWARE,
            variables=MICROSOFT_VARIABLES,
        )
    )
    site.virsh("define", str(folder / "domain.xml"))


def runs(site: PrivateSite) -> bool:
    """Whether it is running according to libvirt, independent of its BMCs."""
    return site.virsh("domstate", NAME).out.strip() == "running"


def console(site: PrivateSite) -> str:
    """What it wrote to its serial line."""
    log = site.folder / "machine" / "console.log"
    return log.read_text(errors="replace") if log.exists() else ""


def peak_mib(site: PrivateSite) -> int:
    """The most memory that its qemu has used."""
    for pid in site.processes():
        status = Path("/proc", pid, "status").read_text()
        if status.startswith("Name:\tqemu-system"):
            return int(status.partition("VmHWM:")[2].split()[0]) // 1024
    raise AssertionError("the machine has no process")
