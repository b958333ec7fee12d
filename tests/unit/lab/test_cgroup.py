"""The three kinds of hosts are told apart by what is mounted."""

from pathlib import Path

import pytest

from rackwright.lab import cgroup
from rackwright.lab.cgroup import CONTROLLERS, Hierarchies, parse_mountinfo
from rackwright.lab.status import describe_limits

HYBRID = """\
29 26 0:25 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
30 29 0:26 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
34 29 0:30 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory
38 29 0:34 / /sys/fs/cgroup/systemd rw,relatime - cgroup cgroup rw,name=systemd
39 29 0:35 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
PURE = "30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n"


def test_hybrid_host():
    unified, v1 = parse_mountinfo(HYBRID)
    assert unified == Path("/sys/fs/cgroup/unified")
    assert v1 == {
        "cpu": Path("/sys/fs/cgroup/cpu,cpuacct"),
        "cpuacct": Path("/sys/fs/cgroup/cpu,cpuacct"),
        "memory": Path("/sys/fs/cgroup/memory"),
        "name=systemd": Path("/sys/fs/cgroup/systemd"),
    }


def test_pure_v2_host():
    assert parse_mountinfo(PURE) == (Path("/sys/fs/cgroup"), {})


def test_v1_host():
    unified, v1 = parse_mountinfo("\n".join(HYBRID.splitlines()[:-1]))
    assert unified is None
    assert set(v1) == {"cpu", "cpuacct", "memory", "name=systemd"}


@pytest.mark.parametrize(
    ("limits", "text"),
    [
        ({"cpu": True, "memory": True}, "enforced"),
        ({"cpu": True, "memory": False}, "memory not enforced"),
        ({"cpu": False, "memory": False}, "not enforced"),
        ({}, "not enforced"),
    ],
)
def test_limits_are_not_pretended(limits: dict[str, bool], text: str):
    assert describe_limits(limits) == text


def host(monkeypatch: pytest.MonkeyPatch, folder: Path, *v1: str, v2: str = "") -> Hierarchies:
    """A host whose hierarchies are folders: v1 ones by controller, and what v2 has."""
    mounts = {name: folder / name for name in v1}
    for path in (*mounts.values(), folder / "unified"):
        path.mkdir(parents=True)
    (folder / "unified" / "cgroup.controllers").write_text(v2)
    found = Hierarchies(
        folder / "unified", {name: mounts[name] for name in ("cpu", "memory") if name in v1}, mounts
    )
    monkeypatch.setattr(cgroup, "hierarchies", lambda: found)
    return found


def test_what_kubelet_needs_is_found_in_v1(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    host(monkeypatch, tmp_path, *CONTROLLERS, "name=systemd")
    assert cgroup.has_v1()
    assert cgroup.missing_controllers() == []


def test_a_v1_host_may_miss_controllers(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    host(monkeypatch, tmp_path, "cpu", "memory", "name=systemd")
    assert cgroup.missing_controllers() == ["cpuacct", "cpuset", "devices", "freezer", "blkio", "pids"]


def test_what_kubelet_needs_is_found_in_v2(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    host(monkeypatch, tmp_path, "name=systemd", v2="cpuset cpu io memory hugetlb pids\n")
    assert not cgroup.has_v1()
    assert cgroup.missing_controllers() == []
    host(monkeypatch, tmp_path / "other", v2="memory pids\n")
    assert cgroup.missing_controllers() == ["cpu", "cpuset"]


def test_a_group_is_made_where_it_is_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    found = host(monkeypatch, tmp_path, "cpu", "memory", "pids")
    monkeypatch.setattr(cgroup, "_delegate", lambda *_: None)
    assert cgroup.create("r", "n") == [root / "rackwright/r/n" for root in found.all()]
    assert not (tmp_path / "pids/rackwright").exists()
    assert cgroup.create("r", "n", everywhere=True) == [root / "rackwright/r/n" for root in found.every()]
    cgroup.remove("r")
    assert not any((root / "rackwright/r").exists() for root in found.every())


def test_every_level_of_a_cpuset_gets_the_hosts_cpus(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    found = host(monkeypatch, tmp_path, "cpuset")
    monkeypatch.setattr(cgroup, "_delegate", lambda *_: None)
    make = Path.mkdir

    def mkdir(path: Path, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        make(path, mode, parents, exist_ok)
        for level in (path, *path.parents):
            for name in ("cpuset.cpus", "cpuset.mems"):
                if level.is_relative_to(tmp_path / "cpuset") and not (level / name).exists():
                    (level / name).write_text("\n")  # as the kernel makes them

    (tmp_path / "cpuset/cpuset.cpus").write_text("0-3\n")
    (tmp_path / "cpuset/cpuset.mems").write_text("0\n")
    monkeypatch.setattr(Path, "mkdir", mkdir)
    cgroup.create("r", "n", everywhere=True)
    for level in ("rackwright", "rackwright/r", "rackwright/r/n"):
        assert (found.every_v1["cpuset"] / level / "cpuset.cpus").read_text() == "0-3\n"
        assert (found.every_v1["cpuset"] / level / "cpuset.mems").read_text() == "0\n"
