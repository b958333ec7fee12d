"""One node: a racked machine, which has blank disks, no power, and a BMC that switches it on.

A virtual machine as those of rackwright.lab.vm, but nothing of the lab's is on it: no boot image, identity or
administrator. What is installed on it decides whether it answers ssh, or has a guest agent.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rackwright.errors import LabError
from rackwright.lab import cgroup, names, network, qemu, state, vm
from rackwright.lab.bmc import settings
from rackwright.lab.bmc.choice import CD, NETWORK, Choice, choose
from rackwright.lab.process import launch, require, wait_until
from rackwright.lab.qemu_socket import NotAnswering
from rackwright.lab.seed import Identity
from rackwright.lab.spec import NodeSpec, RackSpec

READY_TIMEOUT = 60.0
BIOS_VERSION = "1.0.0"
_GB = 10**9
ROOT_BYTES = 16 << 30
"""As the boot disk of the lab's other virtual machines."""
_MONITOR_SECONDS = 60.0
_NOT_BOOTED = -1
"""qemu's bootindex of a device that the firmware is not to boot from."""


def require_host() -> None:
    """Refuse a host without qemu and its firmware."""
    require(vm.PROGRAMS)
    for path in (qemu.FIRMWARE, qemu.SECURE_FIRMWARE, qemu.SECURE_VARIABLES):
        if not path.exists():
            raise LabError(f"{path} is missing", hint="apt-get install ovmf")


def prepare(spec: RackSpec, node: NodeSpec, base: Path, admin_key: str) -> Identity:
    """Make the blank disks of a machine and the settings of its BMC; it has no identity yet."""
    assert node.bmc is not None
    folder = vm.disk_folder(spec.name, node.name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.parent.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f".{node.name}.", dir=folder.parent) as staging:
        unfinished = Path(staging, "disks")
        unfinished.mkdir(mode=0o700)
        _deliver_firmware(unfinished / "variables.fd", secure_boot=node.bmc.secure_boot)
        vm.blank(unfinished / "root.qcow2", ROOT_BYTES)
        for number, size in enumerate(node.vm.data_disks_gb if node.vm else ()):
            vm.blank(unfinished / f"data{number}.qcow2", size * _GB)
        unfinished.rename(folder)
    settings.deliver(spec, node.name, secure_boot=node.bmc.secure_boot)
    return Identity(host_key="", machine_id="")


def disks(rack: str, node: NodeSpec) -> qemu.Disks:
    """The files of a machine's disks."""
    return replace(vm.disks(rack, node), seed=None)


def medium(rack: str, node: str) -> Path:
    """The image in its virtual CD drive, as its BMC downloaded it."""
    return vm.disk_folder(rack, node) / "medium.iso"


def start(spec: RackSpec, node: NodeSpec) -> None:
    """Switch a machine on, with what its BMC has been set to; does not wait for it."""
    record = state.node_record(spec.name, node.name)
    if record is None:
        raise LabError(f"node {node.name} has no disk", hint="rackwright lab up makes it")
    with state.lock(f"power {spec.name}.{node.name}", wait=60):
        if cgroup.populated(spec.name, node.name):
            return
        started, chosen = _apply_settings(spec, node)
        folder = names.node_state(spec.name, node.name)
        cgroup.create(spec.name, node.name)
        limits = cgroup.limit(node.cpus, node.memory_mib + qemu.OVERHEAD_MIB, spec.name, node.name)
        network.make_machine(spec, node)
        state.save_node_record(spec.name, node.name, replace(record, limits=limits))
        for name in (qemu.MONITOR, qemu.AGENT, qemu.SERIAL):
            (folder / name).unlink(missing_ok=True)
        argv = qemu.command(spec, node, disks(spec.name, node), _kvm(), started)
        inside = network.inside(names.namespace(spec.name), ["env", f"--chdir={folder}", *argv])
        launch(inside, cgroup.create(spec.name, node.name, "qemu"), folder / "qemu.log")
        _boot_differently_later(spec, node, chosen)


def _apply_settings(spec: RackSpec, node: NodeSpec) -> tuple[qemu.Start, Choice]:
    """What was to change with the next start changes now; an override for one boot is used up."""
    with settings.changing(spec.name, node.name) as kept:
        chosen = choose(kept.override)
        kept.override = chosen.left
        kept.bios |= kept.bios_wanted
        kept.bios_wanted = {}
        if kept.secure_boot != kept.secure_boot_wanted:
            # The two firmwares keep their variables differently: boot entries and keys of the other are lost.
            _deliver_firmware(disks(spec.name, node).variables, secure_boot=kept.secure_boot_wanted)
            kept.secure_boot = kept.secure_boot_wanted
        image = medium(spec.name, node.name) if kept.medium is not None else None
        started = qemu.Start(chosen.order, image, kept.secure_boot, BIOS_VERSION, chosen.by_http)
        return started, chosen


def _deliver_firmware(variables: Path, *, secure_boot: bool) -> None:
    shutil.copyfile(qemu.SECURE_VARIABLES if secure_boot else qemu.FIRMWARE_VARIABLES, variables)


def _boot_differently_later(spec: RackSpec, node: NodeSpec, chosen: Choice) -> None:
    """Take what was for one boot out of the order: qemu gives the firmware the new one at the next reset."""
    wait_until(lambda: _monitor_answers(spec, node), f"the monitor of {node.name}", _MONITOR_SECONDS)
    for device, name in ((CD, qemu.CD_DEVICE), (NETWORK, qemu.BOOT_PORT)):
        if device in chosen.order and device not in chosen.later:
            arguments = {"path": f"/machine/peripheral/{name}", "property": "bootindex", "value": _NOT_BOOTED}
            vm.monitor_ask(spec.name, node, "qom-set", **arguments)


def _monitor_answers(spec: RackSpec, node: NodeSpec) -> bool:
    if not cgroup.populated(spec.name, node.name):
        log = names.node_state(spec.name, node.name) / "qemu.log"
        output = "\n".join(log.read_text(errors="replace").splitlines()[-3:])
        raise LabError(f"qemu of {node.name} ended at once\n{output}", hint=f"see {log}")
    try:
        vm.monitor_ask(spec.name, node, "query-status")
    except NotAnswering:
        return False
    return True


def _kvm() -> bool:
    """Whether this host's own kernel runs on KVM: what will be installed is not known yet."""
    kernel = Path(f"/boot/vmlinuz-{os.uname().release}")
    return kernel.exists() and qemu.kvm_works(kernel)


def ready(spec: RackSpec, node: NodeSpec) -> bool:
    """Nothing is demanded of a racked machine, which may have no operating system."""
    return True


def run_inside(rack: str, node: NodeSpec, argv: Sequence[str], timeout: float = 60) -> str:
    """Run a program as root on a machine whose installed system has a guest agent."""
    return vm.run_inside(rack, node, argv, timeout)


def attach(rack: str, node: NodeSpec, argv: Sequence[str]) -> int:
    """Run a program as root on a machine whose installed system has a guest agent."""
    return vm.attach(rack, node, argv)


def console(rack: str, node: NodeSpec) -> int:
    """The serial line of a machine on this terminal."""
    return vm.console(rack, node)


def shut_down(rack: str, node: NodeSpec, timeout: float) -> None:
    """Press the power button and wait until the machine is off."""
    vm.shut_down(rack, node, timeout)


def remove_disks(rack: str, node: str) -> None:
    """Remove the disks of a machine that does not run."""
    vm.remove_disks(rack, node)
