"""What the lab puts on a node so that a kubelet runs in a container."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from rackwright.errors import LabError
from rackwright.lab import cgroup, container, kubelet_node
from rackwright.lab.cgroup import CONTROLLERS, Hierarchies
from rackwright.lab.seed import Seed, write_apt
from rackwright.lab.spec import NodeSpec
from tests.unit.lab.specs import node, rack

SCRIPT = "usr/local/libexec/rackwright-lab-kubelet"
JOURNALD = "etc/systemd/system/systemd-journald.service.d/rackwright-lab-kubelet.conf"


def seeded(folder: Path, one: NodeSpec) -> Path:
    (folder / "base").mkdir()
    kubelet_node.write_seed(Seed(folder / "seed", folder / "base"), one)
    return folder / "seed"


def test_the_script_is_run_at_each_boot(tmp_path: Path):
    seed = seeded(tmp_path, node(1, kubelet=True))
    unit = seed / "etc/systemd/system/rackwright-lab-kubelet.service"
    assert f"ExecStart=/{SCRIPT}\n" in unit.read_text()
    wanted = seed / "etc/systemd/system/sysinit.target.wants/rackwright-lab-kubelet.service"
    assert wanted.resolve() == unit
    assert (seed / SCRIPT).stat().st_mode & 0o777 == 0o755
    assert subprocess.run(["sh", "-n", seed / SCRIPT], check=False).returncode == 0
    assert not (seed / JOURNALD).exists()


def test_no_setting_of_the_machine_is_written(tmp_path: Path):
    script = (seeded(tmp_path, node(1, kubelet=True)) / SCRIPT).read_text()
    targets = re.findall(r">\s*(\S+)", script)
    assert [one for one in targets if not one.startswith(("/run/rackwright-lab-kubelet/", "/dev/kmsg"))] == []
    assert "sysctl -w" not in script
    for name, value in kubelet_node.SYSCTLS.items():
        file = f"/run/rackwright-lab-kubelet/{name.replace('/', '.')}"
        assert f"echo {value} >{file}\nmount --bind {file} /proc/sys/{name}\n" in script


def test_journald_of_a_node_with_gpus_finds_the_pipe_again(tmp_path: Path):
    seed = seeded(tmp_path, node(1, kubelet=True, gpus="{}"))
    assert "BindPaths=-/run/rackwright-lab-kubelet/kernel-log:/dev/kmsg\n" in (seed / JOURNALD).read_text()


def test_folders_are_on_the_node_s_own_disk(tmp_path: Path):
    kubelet_node.folders(tmp_path)
    assert (tmp_path / "etcd").stat().st_mode & 0o777 == 0o700
    assert kubelet_node.binds(Path("/d")) == [
        "--bind=/d/containerd:/var/lib/containerd",
        "--bind=/d/kubelet:/var/lib/kubelet",
        "--bind=/d/etcd:/var/lib/etcd",
        "--bind=/d/pods:/var/log/pods",
    ]


def hierarchies(monkeypatch: pytest.MonkeyPatch, *v1: str) -> None:
    mounts = {name: Path("/cg", name) for name in v1}
    monkeypatch.setattr(cgroup, "hierarchies", lambda: Hierarchies(Path("/cg/unified"), {}, mounts))


def test_a_node_on_a_v1_host_has_a_group_in_each_hierarchy(monkeypatch: pytest.MonkeyPatch):
    hierarchies(monkeypatch, *CONTROLLERS, "name=systemd")
    assert kubelet_node.legacy()
    boxes = container._boxes("r", "n", legacy=True).split()
    assert boxes == [f"/cg/{name}/rackwright/r/n/box" for name in ("unified", *CONTROLLERS, "name=systemd")]
    assert container._boxes("r", "n", legacy=False) == "/sys/fs/cgroup/rackwright/r/n/box"


def test_a_host_without_the_controllers_is_refused(monkeypatch: pytest.MonkeyPatch):
    hierarchies(monkeypatch, "cpu", "cpuacct", "cpuset", "memory", "devices")
    with pytest.raises(LabError) as caught:
        kubelet_node.legacy()
    assert caught.value.message == (
        "kubelet needs the control group controllers freezer, blkio, pids, which this host does not have"
    )


def test_apt_reaches_the_rack_s_packages_past_the_proxy(tmp_path: Path):
    seed = Seed(tmp_path / "seed", tmp_path)
    write_apt(seed, rack(tmp_path, kubernetes=True))
    direct = tmp_path / "seed/etc/apt/apt.conf.d/00lab-direct"
    assert direct.read_text() == 'Acquire::http::Proxy::10.0.0.1 "DIRECT";\n'
    direct.unlink()
    write_apt(seed, rack(tmp_path))
    assert not direct.exists()
