"""One node: a virtual machine with its own kernel, on KVM where that works and in software where not."""

import os
import shlex
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rackwright.command import CommandResult
from rackwright.errors import LabError
from rackwright.lab import cgroup, names, network, qemu, state
from rackwright.lab.boot_disk import DISK, KERNEL
from rackwright.lab.netns import ssh_answers
from rackwright.lab.process import launch, require, run, wait_until
from rackwright.lab.qemu_socket import NotAnswering, StillRunning, agent, guest_exec, monitor
from rackwright.lab.seed import Identity, make_seed
from rackwright.lab.serial_line import attach_to
from rackwright.lab.spec import NodeSpec, RackSpec

READY_TIMEOUT = 900.0
"""Emulated on a busy host; on KVM a machine is ready in seconds."""
_SSH_SECONDS = 10.0
"""A machine that has just booted on a busy host takes more than two to greet."""
PROGRAMS = (qemu.PROGRAM, "qemu-img")
_GB = 10**9
_ATTACHED_SECONDS = 86_400.0
"""Of a program whose end a user waits for."""
_SEED_BLOCK = 1 << 20
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_ENVIRONMENT = (f"PATH={_PATH}", "HOME=/root", "USER=root", "LOGNAME=root", "LANG=C.UTF-8")


def require_host() -> None:
    """Refuse a host without qemu and its firmware."""
    require(PROGRAMS)
    if not qemu.FIRMWARE.exists():
        raise LabError(f"{qemu.FIRMWARE} is missing", hint="apt-get install ovmf")


def prepare(spec: RackSpec, node: NodeSpec, base: Path, admin_key: str) -> Identity:
    """Make the disks of a node on top of a boot image, with a new identity beside them."""
    folder = disk_folder(spec.name, node.name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.parent.chmod(0o700)  # the disks hold the nodes' private keys
    shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f".{node.name}.", dir=folder.parent) as staging:
        unfinished = Path(staging, "disks")
        unfinished.mkdir()
        packed, identity = make_seed(spec, node, base, admin_key, Path(staging))
        pad(packed, unfinished / "seed.raw")
        shutil.copyfile(qemu.FIRMWARE_VARIABLES, unfinished / "variables.fd")
        _overlay(base / DISK, unfinished / "root.qcow2")
        for number, size in enumerate(node.vm.data_disks_gb if node.vm else ()):
            blank(unfinished / f"data{number}.qcow2", size * _GB)
        unfinished.rename(folder)
    return identity


def disks(rack: str, node: NodeSpec) -> qemu.Disks:
    """The files of a node's disks."""
    folder = disk_folder(rack, node.name)
    data = tuple(
        folder / f"data{number}.qcow2" for number in range(len(node.vm.data_disks_gb if node.vm else ()))
    )
    return qemu.Disks(folder / "root.qcow2", folder / "seed.raw", folder / "variables.fd", data)


def disk_folder(rack: str, node: str) -> Path:
    """The folder of a node's disks."""
    return names.rack_disks(rack) / f"{node}.vm"


def start(spec: RackSpec, node: NodeSpec) -> None:
    """Boot a node whose disks are ready; does not wait for it."""
    record = state.node_record(spec.name, node.name)
    if record is None:
        raise LabError(f"node {node.name} has no disk", hint="rackwright lab up makes it")
    folder = names.node_state(spec.name, node.name)
    cgroup.create(spec.name, node.name)
    limits = cgroup.limit(node.cpus, node.memory_mib + qemu.OVERHEAD_MIB, spec.name, node.name)
    network.make_machine(spec, node)
    state.save_node_record(spec.name, node.name, replace(record, limits=limits))
    for name in (qemu.MONITOR, qemu.AGENT, qemu.SERIAL):
        (folder / name).unlink(missing_ok=True)
    kvm = qemu.kvm_works(Path(record.base) / KERNEL)
    argv = qemu.command(spec, node, disks(spec.name, node), kvm)
    inside = network.inside(names.namespace(spec.name), ["env", f"--chdir={folder}", *argv])
    launch(inside, cgroup.create(spec.name, node.name, "qemu"), folder / "qemu.log")


def ready(spec: RackSpec, node: NodeSpec) -> bool:
    """Whether sshd answers and the node is past the point where it turns users away."""
    if not ssh_answers(spec.name, node.address, spec.ssh_port, _SSH_SECONDS):
        return False
    try:
        return ask(spec.name, node, ["test", "-e", "/run/nologin"], 20).exit_status == 1
    except LabError:
        return False


def ask(rack: str, node: NodeSpec, argv: Sequence[str], timeout: float) -> CommandResult:
    """Run a program as root on a node through its guest agent, without its sshd and its network."""
    socket = _socket(rack, node, qemu.AGENT)
    try:
        return guest_exec(socket, ["/usr/bin/env", *argv], _ENVIRONMENT, timeout)
    except StillRunning:
        raise StillRunning(f"on {node.name}: {shlex.join(argv)} took more than {timeout:g} s") from None
    except NotAnswering as error:
        raise NotAnswering(
            f"on {node.name}: {shlex.join(argv)}: no answer from its guest agent within {timeout:g} s "
            f"({error.message})",
            hint=f"rackwright lab console {node.name} opens its serial line",
        ) from None
    except LabError as error:
        raise LabError(f"on {node.name}: {shlex.join(argv)}: {error.message}", hint=error.hint) from None


def start_inside(rack: str, node: NodeSpec, script: str) -> None:
    """Start a shell script on a node that may not live to report its end."""
    with agent(_socket(rack, node, qemu.AGENT), 30) as connection:
        connection.ask("guest-exec", path="/bin/sh", arg=["-c", script])


def run_inside(rack: str, node: NodeSpec, argv: Sequence[str], timeout: float = 60) -> str:
    """Run a program as root on a node and return its output; failure is a LabError which shows it."""
    done = ask(rack, node, argv, timeout)
    if done.exit_status != 0:
        reply = (done.stderr.strip() or done.stdout.strip())[-2000:]
        raise LabError(
            f"on {node.name}: {shlex.join(argv)} failed with exit code {done.exit_status}"
            + (f"\n{reply}" if reply else "")
        )
    return done.stdout


def attach(rack: str, node: NodeSpec, argv: Sequence[str]) -> int:
    """Run a program as root on a node, print what it printed once it has ended, and return its exit code."""
    done = ask(rack, node, argv, _ATTACHED_SECONDS)
    os.write(1, done.stdout.encode())
    os.write(2, done.stderr.encode())
    return done.exit_status


def console(rack: str, node: NodeSpec) -> int:
    """The serial line of a node on this terminal."""
    return attach_to(_socket(rack, node, qemu.SERIAL))


def monitor_ask(rack: str, node: NodeSpec, execute: str, **arguments: object) -> object:
    """One command to the monitor of a node's qemu."""
    with monitor(_socket(rack, node, qemu.MONITOR)) as connection:
        answer: object = connection.ask(execute, **arguments)
        return answer


def shut_down(rack: str, node: NodeSpec, timeout: float) -> None:
    """Press the power button and wait until the machine is off."""
    monitor_ask(rack, node, "system_powerdown")
    wait_until(lambda: not cgroup.populated(rack, node.name), f"{node.name} to shut down", timeout)


def remove_disks(rack: str, node: str) -> None:
    """Remove the disks of a node that does not run."""
    shutil.rmtree(disk_folder(rack, node), ignore_errors=True)


def _socket(rack: str, node: NodeSpec, name: str) -> Path:
    if not cgroup.populated(rack, node.name):
        raise LabError(
            f"node {node.name} is not running", hint=f"rackwright lab status; rackwright lab heal {node.name}"
        )
    return names.node_state(rack, node.name) / name


def pad(packed: Path, target: Path) -> None:
    """A tar as a disk: whole blocks of what a disk is counted in."""
    shutil.copyfile(packed, target)
    os.truncate(target, -(-packed.stat().st_size // _SEED_BLOCK) * _SEED_BLOCK)


def _overlay(base: Path, target: Path) -> None:
    run(["qemu-img", "create", "-q", "-f", "qcow2", "-F", "qcow2", "-b", str(base), str(target)], timeout=60)


def blank(target: Path, size: int) -> None:
    """An empty disk of this many bytes, which takes up what is written to it."""
    run(["qemu-img", "create", "-q", "-f", "qcow2", str(target), str(size)], timeout=60)
