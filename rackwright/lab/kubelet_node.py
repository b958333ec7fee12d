"""A container in which a kubelet runs: control groups that it may divide, and the kernel settings that it asks for.

On a host whose controllers are in v1 hierarchies the node has a group in each of them and its systemd boots in
legacy mode, for that is where the controllers are. On a host with v2 it has them in its one group.
"""

from __future__ import annotations

from pathlib import Path

from rackwright.errors import LabError
from rackwright.lab import cgroup
from rackwright.lab.seed import Seed
from rackwright.lab.spec import NodeSpec
from rackwright.render import render

LEGACY = {"SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "0"}
"""What makes systemd-nspawn show the v1 hierarchies."""
FOLDERS = {
    "containerd": "/var/lib/containerd",
    "kubelet": "/var/lib/kubelet",
    "etcd": "/var/lib/etcd",
    "pods": "/var/log/pods",
}
"""Folders of the node's disk, by where they are on the node: an overlay cannot be the upper layer of an overlay, and
kubelet measures the file system below its folder."""
SYSCTLS = {
    "vm/overcommit_memory": 1,
    "vm/panic_on_oom": 0,
    "kernel/panic": 10,
    "kernel/panic_on_oops": 1,
    "kernel/keys/root_maxkeys": 1_000_000,
    "kernel/keys/root_maxbytes": 25_000_000,
}
"""Settings that kubelet sets where they differ (pkg/kubelet/cm/container_manager_linux.go, setupKernelTunables), below
/proc/sys. They are the machine's own."""

_UNIT = "rackwright-lab-kubelet.service"
_SCRIPT = "usr/local/libexec/rackwright-lab-kubelet"
_JOURNALD = "etc/systemd/system/systemd-journald.service.d/rackwright-lab-kubelet.conf"
RUN = "/run/rackwright-lab-kubelet"


def legacy() -> bool:
    """Whether such a node boots with cgroup v1; LabError where the host has not the controllers that it needs."""
    if missing := cgroup.missing_controllers():
        raise LabError(
            f"kubelet needs the control group controllers {', '.join(missing)}, which this host does not have",
            hint="`lab: {kubelet: true}` needs a host with cgroup v2, or with all of these in v1",
        )
    return cgroup.has_v1()


def binds(disk: Path) -> list[str]:
    """Options of systemd-nspawn: the folders on the node's own disk."""
    return [f"--bind={disk / name}:{target}" for name, target in FOLDERS.items()]


def folders(content: Path) -> None:
    """Make these folders in what a node's disk is filled with."""
    for name in FOLDERS:
        (content / name).mkdir(mode=0o700 if name == "etcd" else 0o755)


def write_seed(seed: Seed, node: NodeSpec) -> None:
    """What the node does at each boot, before any service starts."""
    script = render("lab/kubelet_node.sh.j2", sysctls=SYSCTLS, run=RUN, controllers=cgroup.CONTROLLERS)
    seed.write(_SCRIPT, script, 0o755)
    seed.write(f"etc/systemd/system/{_UNIT}", render("lab/kubelet_node.service.j2", script=f"/{_SCRIPT}"))
    seed.link(f"etc/systemd/system/sysinit.target.wants/{_UNIT}", f"../{_UNIT}")
    if node.gpus is not None:
        # Started again, it would find the file that is put over the pipe for kubelet.
        seed.write(_JOURNALD, f"[Service]\nBindPaths=-{RUN}/kernel-log:/dev/kmsg\n")
