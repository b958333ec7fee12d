"""The three kinds of hosts are told apart by what is mounted."""

from pathlib import Path

import pytest

from rackwright.lab.cgroup import parse_mountinfo
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
    assert v1 == {"cpu": Path("/sys/fs/cgroup/cpu,cpuacct"), "memory": Path("/sys/fs/cgroup/memory")}


def test_pure_v2_host():
    assert parse_mountinfo(PURE) == (Path("/sys/fs/cgroup"), {})


def test_v1_host():
    unified, v1 = parse_mountinfo("\n".join(HYBRID.splitlines()[:-1]))
    assert unified is None
    assert set(v1) == {"cpu", "memory"}


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
