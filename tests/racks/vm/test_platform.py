"""What a separate kernel brings: soft-RoCE, NFS, drives, values that a container could not set."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.racks.site import Site
from tests.racks.vm.conftest import WORKERS

pytestmark = [pytest.mark.lab, pytest.mark.proof]
RAIL = "10.79.0.0/25"
_PORT = f"$(ip -o -4 addr show to {RAIL} | awk '{{print $2; exit}}')"


def test_the_kernel_has_the_declared_values(rack: Site) -> None:
    for worker in WORKERS:
        assert "[madvise]" in rack.on(worker, "cat /sys/kernel/mm/transparent_hugepage/enabled")
        assert rack.on(worker, "tail -n +2 /proc/swaps") == ""
        values = rack.on(
            worker, "sysctl -n kernel.numa_balancing vm.max_map_count kernel.dmesg_restrict"
        ).split()
        assert values == ["0", "1048576", "1"]
        limits = rack.on(worker, "runuser -u ada -- sh -c 'ulimit -Hl; ulimit -Hn'").split()
        assert limits == ["unlimited", "1048576"]
        assert "rackwright" in rack.on(worker, "tuned-adm active", 120)


def test_the_clocks_follow_the_head(rack: Site) -> None:
    for worker in WORKERS:
        fields = rack.on(worker, "chronyc -c -n tracking").split(",")
        assert fields[1] == "10.78.0.10"
        assert fields[13].strip() == "Normal"
    assert rack.on("head1", "chronyc -c -n tracking").split(",")[2] == "10"


def test_the_declared_drives_are_there_and_their_health_can_be_read(rack: Site) -> None:
    for worker in WORKERS:
        sizes = rack.on(worker, "lsblk -bdno SIZE /dev/nvme0n1 /dev/nvme1n1").split()
        assert [int(size) // 10**9 for size in sizes] == [4, 4]
        assert "critical_warning" in rack.on(worker, "nvme smart-log /dev/nvme0 -o json")


@pytest.fixture
def rdma(rack: Site) -> Site:
    """Both workers with soft-RoCE on their first rail; gone with the next boot."""
    for worker in WORKERS:
        rack.on(
            worker,
            f"modprobe rdma_rxe; rdma link show rxe0/1 2>/dev/null || rdma link add rxe0 type rxe netdev {_PORT}",
            180,
        )
    return rack


def test_soft_roce_carries_data_between_two_machines(
    rdma: Site, record_property: Callable[[str, object], None]
) -> None:
    for worker in WORKERS:
        assert "PORT_ACTIVE" in rdma.on(worker, "ibv_devinfo -d rxe0", 120)
    # A retry after 2 s (4 µs x 2^19), not 67 ms: eight of those are over before an emulated machine answers.
    test = "timeout 300 ib_write_bw -d rxe0 -F -n 100 -s 65536 -u 19 -p 18515"
    rdma.on("worker1", f"systemd-run -q --collect --unit=bandwidth {test}", 120)
    deadline = time.monotonic() + 120
    while "18515" not in rdma.on("worker1", "ss -Hltn sport = :18515"):
        assert time.monotonic() < deadline, "ib_write_bw does not listen"
        time.sleep(2)
    said = rdma.on("worker2", f"{test} 10.79.0.11", 400)
    row = [line.split() for line in said.splitlines() if line.split()[:1] == ["65536"]]
    assert row, said
    assert float(row[0][3]) > 0, said
    record_property("soft-RoCE in messages of 64 KiB", f"{row[0][3]} MiB/s")


def test_nfs_4_2_between_two_machines(rack: Site) -> None:
    rack.on(
        "head1",
        "mkdir -p /srv/shared /etc/exports.d; echo '/srv/shared 10.78.0.0/24(rw,no_root_squash,no_subtree_check)' "
        ">/etc/exports.d/test.exports; systemctl start nfs-server; exportfs -ra",
        300,
    )
    try:
        rack.on(
            "worker1", "mkdir -p /mnt/shared; mount -t nfs -o vers=4.2 head1:/srv/shared /mnt/shared", 300
        )
        assert "vers=4.2" in rack.on("worker1", "findmnt -no OPTIONS /mnt/shared")
        rack.on("worker1", "echo written on worker1 >/mnt/shared/file; sync")
        assert rack.on("head1", "cat /srv/shared/file") == "written on worker1\n"
    finally:
        rack.on("worker1", "umount /mnt/shared || :; rmdir /mnt/shared", 300)
        rack.on("head1", "rm -r /etc/exports.d/test.exports /srv/shared; exportfs -ra", 300)
