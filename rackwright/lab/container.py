"""One node: a container with Debian's own systemd as its first process, native speed, no emulation.

Each node's mounts (its disk, the overlay, a v2-only /sys/fs/cgroup) are made in a mount namespace which
only the node's processes hold. Nothing has to unmount them: they vanish with the last process, and the
kernel frees the loop device. The rest of the machine never sees them.
"""

import os
import shlex
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from rackwright.errors import LabError
from rackwright.lab import cgroup, container_disk, gpu_node, gpus, kubelet_node, names, network, state
from rackwright.lab.netns import ssh_answers
from rackwright.lab.process import attach as attach_process
from rackwright.lab.process import launch, require, run, wait_until
from rackwright.lab.seed import Identity
from rackwright.lab.spec import NodeSpec, RackSpec

READY_TIMEOUT = 120.0
PROGRAMS = ("systemd-nspawn", "mmdebstrap", "mke2fs")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

_KEEPER, _BOX = "keeper", "box"

# So that containers run on a node. runc makes a session keyring and a device filter (bpf), which nspawn forbids
# by default; pasta wants tun. An overlay cannot be the upper layer of an overlay: /scratch is the node's ext4 itself.
_NESTED = ["--system-call-filter=add_key keyctl bpf", "--bind=/dev/net/tun"]

_ENVIRONMENT = {
    # Locks against a second user of a tree would stay behind after a kill; the rack's own lock does it.
    "SYSTEMD_NSPAWN_LOCK": "0",
    # In /sys a node sees only the interfaces of its network (not this machine's), and its sysctls are separate.
    "SYSTEMD_NSPAWN_API_VFS_WRITABLE": "network",
}

# Arguments: state folder, disk image, base image, whether v1 stays visible, the container's group in each of
# its hierarchies, then the container command.
# The v1 controllers of a hybrid host are hidden: systemd inside refuses a mixture of v1 and v2.
# The pipe that is a node's kernel log is held open here: who opens it before journald does must not hang.
# systemd-nspawn leaves a reboot to who started it (exit code 133), and wants a group without history.
_START = f"""\
state=$1 disk=$2 base=$3 legacy=$4 boxes=$5; shift 5
mount -t ext4 -o loop,noatime,nobarrier,noinit_itable "$disk" "$state/disk"
rm -f "$state/disk/{container_disk.FILL}"
mount -t overlay overlay "$state/root" \
    -o "lowerdir=$base,upperdir=$state/disk/{container_disk.UPPER},workdir=$state/disk/{container_disk.WORK}"
if [ "$legacy" = no ] && [ "$(stat -f -c %T /sys/fs/cgroup)" != cgroup2fs ]; then
    umount -R /sys/fs/cgroup 2>/dev/null || umount -R -l /sys/fs/cgroup
    mount -t cgroup2 none /sys/fs/cgroup
fi
mkdir -p /run/systemd/nspawn
mount -t tmpfs -o mode=755 tmpfs /run/systemd/nspawn
kmsg=$state/gpus/{gpu_node.KMSG}
if [ -p "$kmsg" ]; then exec 9<>"$kmsg"; fi
code=133
while [ $code -eq 133 ]; do
    if [ -p "$kmsg" ]; then
        echo 1 >"$state/gpus/{gpu_node.NEXT}"
        echo '5,0,0,-;{gpus.BOOT}' >&9
    fi
    for box in $boxes; do
        if [ -d "$box" ]; then find "$box" -depth -type d -exec rmdir '{{}}' ';'; fi
        mkdir "$box"
        for file in {" ".join(cgroup.CPUSET)}; do
            if [ "$legacy" = yes ] && [ -e "$box/$file" ]; then cat "$box/../$file" >"$box/$file"; fi
        done
    done
    code=0
    sh -c 'for box in $0; do echo $$ >"$box/cgroup.procs"; done; exec "$@"' "$boxes" "$@" 9>&- || code=$?
done
exit $code
"""


def require_host() -> None:
    """Refuse a host without what containers need."""
    require(PROGRAMS)


def prepare(spec: RackSpec, node: NodeSpec, base: Path, admin_key: str) -> Identity:
    """Make the disk of a node, with a new identity on it."""
    return container_disk.make_disk(spec, node, base, admin_key)


def start(spec: RackSpec, node: NodeSpec) -> None:
    """Boot a node whose disk is ready; does not wait for it."""
    record = state.node_record(spec.name, node.name)
    if record is None:
        raise LabError(f"node {node.name} has no disk", hint="rackwright lab up makes it")
    folder = names.node_state(spec.name, node.name)
    for mount_point in ("disk", "root"):
        (folder / mount_point).mkdir(exist_ok=True)
    legacy = node.kubelet and kubelet_node.legacy()
    cgroup.create(spec.name, node.name, everywhere=node.kubelet)
    limits = cgroup.limit(node.cpus, node.memory_mib, spec.name, node.name)
    network.make_node(spec, node)
    container_disk.wait_released(spec.name, node.name)
    state.save_node_record(spec.name, node.name, replace(record, limits=limits))
    argv = ["unshare", "--mount", "--", "sh", "-ec", _START, "start", str(folder)]
    argv += [str(container_disk.disk_path(spec.name, node.name)), record.base]
    argv += ["yes" if legacy else "no", _boxes(spec.name, node.name, legacy=legacy)]
    argv += _container(spec.name, node.name, folder / "root", record.machine_id)
    argv += gpu_node.make(spec.name, node) if node.gpus else []
    argv += _NESTED if node.containers or node.kubelet else []
    argv += [f"--bind={folder / 'disk' / container_disk.SCRATCH}:/scratch"] if node.containers else []
    argv += kubelet_node.binds(folder / "disk") if node.kubelet else []
    # It cannot know that the namespace it is handed is the node's own: /proc/sys/net may be written there.
    keeper = cgroup.create(spec.name, node.name, _KEEPER, everywhere=node.kubelet)
    env = _ENVIRONMENT | (kubelet_node.LEGACY if legacy else {})
    launch(argv, keeper, folder / "console.log", env=env)


def _boxes(rack: str, node: str, *, legacy: bool) -> str:
    """The container's group in each hierarchy that it sees, as the start script sees them."""
    if not legacy:
        return f"/sys/fs/cgroup/{cgroup.relative(rack, node, _BOX)}"
    return " ".join(str(root / cgroup.relative(rack, node, _BOX)) for root in cgroup.hierarchies().every())


def ready(spec: RackSpec, node: NodeSpec) -> bool:
    """Whether sshd answers and the node is past the point where it turns users away."""
    leader = leader_pid(spec.name, node.name)
    if leader is None or Path(f"/proc/{leader}/root/run/nologin").exists():
        return False
    return ssh_answers(spec.name, node.address, spec.ssh_port)


def leader_pid(rack: str, node: str) -> int | None:
    """The node's own first process, None while there is none."""
    depth = len(_namespace_pids("self")) + 1
    payload = cgroup.group(rack, node, _BOX, "payload")
    for folder in (payload / "init.scope", payload):
        for pid in cgroup.pids(folder):
            with suppress(OSError):
                inner = _namespace_pids(str(pid))
                if len(inner) == depth and inner[-1] == "1":
                    return pid
    return None


def host_view(rack: str, node: str, path: Path) -> Path:
    """A path as the node's mounts show it to the host side of the container."""
    for pid in cgroup.pids(cgroup.group(rack, node, _KEEPER)):
        return Path(f"/proc/{pid}/root") / path.relative_to("/")
    raise LabError(f"node {node} is not running", hint=f"rackwright lab heal {node}")


def entering(rack: str, node: str, argv: Sequence[str]) -> list[str]:
    """The command which runs `argv` as root on a node, without its sshd and without its systemd."""
    leader = leader_pid(rack, node)
    if leader is None:
        raise LabError(
            f"node {node} is not running", hint=f"rackwright lab status; rackwright lab heal {node}"
        )
    # Root on a node has no power over the machine's clock, modules and devices; neither has who enters it.
    enter = [
        "setpriv",
        f"--bounding-set=-all{_capabilities(leader)}",
        "nsenter",
        f"--target={leader}",
        "--mount",
        "--uts",
        "--ipc",
        "--net",
        "--pid",
        "--cgroup",
    ]
    variables = [f"PATH={_PATH}", "HOME=/root", "USER=root", "LOGNAME=root", "LANG=C.UTF-8"]
    terminal = f"TERM={os.environ.get('TERM', 'dumb')}"
    return [*enter, "--root", "--wd", "--", "/usr/bin/env", "-i", *variables, terminal, *argv]


def run_inside(rack: str, node: NodeSpec, argv: Sequence[str], timeout: float = 60) -> str:
    """Run a program as root on a node and return its output; failure is a LabError which shows it."""
    command = entering(rack, node.name, argv)
    return run(command, timeout=timeout, shown=f"on {node.name}: {shlex.join(argv)}").stdout


def attach(rack: str, node: NodeSpec, argv: Sequence[str]) -> int:
    """Run a program as root on a node, on this terminal, and return its exit code."""
    return attach_process(entering(rack, node.name, argv))


def console(rack: str, node: NodeSpec) -> int:
    """A root shell on a node, with or without its sshd."""
    # The terminal outside means nothing inside; `script` gives the shell one of the node's own.
    return attach(rack, node, ["script", "-qec", "exec /bin/bash -l", "/dev/null"])


def shut_down(rack: str, node: NodeSpec, timeout: float) -> None:
    """Let the node's systemd stop everything, and wait until it has ended."""
    run_inside(rack, node, ["systemctl", "--no-block", "poweroff"])
    wait_until(lambda: not cgroup.populated(rack, node.name), f"{node.name} to shut down", timeout)


def remove_disks(rack: str, node: str) -> None:
    """Remove the disk of a node that does not run."""
    container_disk.wait_released(rack, node)
    container_disk.disk_path(rack, node).unlink(missing_ok=True)


def _container(rack: str, node: str, root: Path, machine_id: str) -> list[str]:
    return [
        "systemd-nspawn",
        "--quiet",
        "--boot",
        "--register=no",
        "--keep-unit",
        "--settings=no",
        "--console=read-only",
        "--link-journal=no",
        "--resolv-conf=off",
        "--timezone=off",
        f"--directory={root}",
        f"--machine={names.machine(rack, node)}",
        f"--hostname={node}",
        f"--uuid={machine_id}",
        f"--network-namespace-path={names.NETNS / names.namespace(rack, node)}",
        # The roles set routes, sysctls and limits; the namespace is the node's own.
        "--capability=CAP_NET_ADMIN,CAP_IPC_LOCK",
    ]


def _capabilities(pid: int) -> str:
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        raise LabError("the node has just ended", hint="rackwright lab status") from None
    mask = int(status.partition("CapBnd:")[2].split()[0], 16)
    return "".join(f",+cap_{number}" for number in range(mask.bit_length()) if mask >> number & 1)


def _namespace_pids(pid: str) -> list[str]:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("NSpid:"):
            return line.split()[1:]
    return []
