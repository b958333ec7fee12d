"""Cases of rackwright.alerts.filesystems."""

from __future__ import annotations

from tests.unit.alerts.case import Case
from tests.unit.alerts.series import NODE, node

CASES = (
    Case(
        alert="FilesystemFull",
        series={
            node(
                "node_filesystem_avail_bytes", device="/dev/sda2", fstype="ext4", mountpoint="/var"
            ): "50*2 4.9*8 50*3",
            node(
                "node_filesystem_size_bytes", device="/dev/sda2", fstype="ext4", mountpoint="/var"
            ): "100*13",
            node("node_filesystem_readonly", device="/dev/sda2", fstype="ext4", mountpoint="/var"): "0*13",
        },
        fires=420,
        labels={**NODE, "device": "/dev/sda2", "fstype": "ext4", "mountpoint": "/var"},
        severity="critical",
        summary="gpu1: /var is full, 4.9 % left",
        description="/var on gpu1 has 4.9 % left. Daemons that cannot write stop, and a head can lose state. Make room now: du -xhd1 /var | sort -h | tail.",
        heals=600,
        under=(
            {
                node(
                    "node_filesystem_avail_bytes", device="/dev/sda2", fstype="ext4", mountpoint="/var"
                ): "50*2 5*11"
            },
            {node("node_filesystem_readonly", device="/dev/sda2", fstype="ext4", mountpoint="/var"): "1*13"},
        ),
    ),
    Case(
        alert="FilesystemAlmostFull",
        series={
            node(
                "node_filesystem_avail_bytes", device="/dev/sda2", fstype="ext4", mountpoint="/var"
            ): "50*2 9.9*33 50*3",
            node(
                "node_filesystem_size_bytes", device="/dev/sda2", fstype="ext4", mountpoint="/var"
            ): "100*38",
            node("node_filesystem_readonly", device="/dev/sda2", fstype="ext4", mountpoint="/var"): "0*38",
        },
        fires=1920,
        labels={**NODE, "device": "/dev/sda2", "fstype": "ext4", "mountpoint": "/var"},
        severity="warning",
        summary="gpu1: /var has 9.9 % left",
        description="/var on gpu1 has had less than 10 % left for 30 minutes, now 9.9 %. Make room before it is full: du -xhd1 /var | sort -h | tail.",
        heals=2100,
        under=(
            {
                node(
                    "node_filesystem_avail_bytes", device="/dev/sda2", fstype="ext4", mountpoint="/var"
                ): "50*2 10*36"
            },
        ),
    ),
    Case(
        alert="FilesystemFillingUp",
        series={
            node(
                "node_filesystem_avail_bytes", device="/dev/sda2", fstype="ext4", mountpoint="/var"
            ): "39-0.03*90 60*10",
            node(
                "node_filesystem_size_bytes", device="/dev/sda2", fstype="ext4", mountpoint="/var"
            ): "100*100",
            node("node_filesystem_readonly", device="/dev/sda2", fstype="ext4", mountpoint="/var"): "0*100",
        },
        fires=3660,
        labels={**NODE, "device": "/dev/sda2", "fstype": "ext4", "mountpoint": "/var"},
        severity="warning",
        summary="gpu1: /var will be full within 24 hours",
        description="/var on gpu1 has 37.2 % left and, at the rate of the last 6 hours, will be full within 24 hours. Find what writes there.",
        heals=5400,
        under=(
            {
                node(
                    "node_filesystem_avail_bytes", device="/dev/sda2", fstype="ext4", mountpoint="/var"
                ): "39-0.025*100"
            },
            {
                node(
                    "node_filesystem_avail_bytes", device="/dev/sda2", fstype="ext4", mountpoint="/var"
                ): "44.9-0.045*100"
            },
        ),
    ),
    Case(
        alert="InodesLow",
        series={
            node(
                "node_filesystem_files_free", device="/dev/sda2", fstype="ext4", mountpoint="/var"
            ): "50*2 4.9*18 50*3",
            node("node_filesystem_files", device="/dev/sda2", fstype="ext4", mountpoint="/var"): "100*23",
            node("node_filesystem_readonly", device="/dev/sda2", fstype="ext4", mountpoint="/var"): "0*23",
        },
        fires=1020,
        labels={**NODE, "device": "/dev/sda2", "fstype": "ext4", "mountpoint": "/var"},
        severity="warning",
        summary="gpu1: /var has 4.9 % of its inodes left",
        description="/var on gpu1 has 4.9 % of its inodes left. Once they are gone no file can be created, although there is space. Find the folder with too many files.",
        heals=1200,
        under=(
            {
                node(
                    "node_filesystem_files_free", device="/dev/sda2", fstype="ext4", mountpoint="/var"
                ): "50*2 5*21"
            },
        ),
    ),
    Case(
        alert="FilesystemReadOnly",
        series={
            node(
                "node_filesystem_readonly", device="/dev/sda2", fstype="ext4", mountpoint="/var"
            ): "0*2 1*4 0*3"
        },
        fires=180,
        labels={**NODE, "device": "/dev/sda2", "fstype": "ext4", "mountpoint": "/var"},
        severity="critical",
        summary="gpu1: /var is read-only",
        description="/var (/dev/sda2) on gpu1 is mounted read-only. The kernel does that when it finds the filesystem damaged or the drive failing. Drain the node and read dmesg.",
        heals=360,
        under=(
            {
                node("node_filesystem_readonly", device="/dev/sda2", fstype="ext4", mountpoint="/var"): "0*9",
                node(
                    "node_filesystem_readonly", device="/dev/loop0", fstype="squashfs", mountpoint="/snap"
                ): "1*9",
            },
            {
                node(
                    "node_filesystem_readonly", device="/dev/sda2", fstype="ext4", mountpoint="/var"
                ): "0*2 1*1 0*6"
            },
        ),
    ),
    Case(
        alert="SharedFilesystemFull",
        series={
            node(
                "node_filesystem_avail_bytes",
                node="gpu1",
                device="10.0.0.10:/srv/home",
                fstype="nfs4",
                mountpoint="/home",
            ): "50*2 4.9*14 50*4",
            node(
                "node_filesystem_size_bytes",
                node="gpu1",
                device="10.0.0.10:/srv/home",
                fstype="nfs4",
                mountpoint="/home",
            ): "100*20",
            node(
                "node_filesystem_avail_bytes",
                node="gpu2",
                device="10.0.0.10:/srv/home",
                fstype="nfs4",
                mountpoint="/home",
            ): "50*2 4.9*14 50*4",
            node(
                "node_filesystem_size_bytes",
                node="gpu2",
                device="10.0.0.10:/srv/home",
                fstype="nfs4",
                mountpoint="/home",
            ): "100*20",
        },
        fires=720,
        labels={"device": "10.0.0.10:/srv/home", "fstype": "nfs4", "mountpoint": "/home"},
        severity="critical",
        summary="/home is full for all nodes, 4.9 % left",
        description="The shared filesystem /home (10.0.0.10:/srv/home) has 4.9 % left. Checkpoints of all jobs are about to fail. Find the largest users and ask them to make room now.",
        heals=960,
        under=(
            {
                node(
                    "node_filesystem_avail_bytes",
                    node="gpu1",
                    device="10.0.0.10:/srv/home",
                    fstype="nfs4",
                    mountpoint="/home",
                ): "50*2 5*18",
                node(
                    "node_filesystem_size_bytes",
                    node="gpu1",
                    device="10.0.0.10:/srv/home",
                    fstype="nfs4",
                    mountpoint="/home",
                ): "100*20",
                node(
                    "node_filesystem_avail_bytes",
                    node="gpu2",
                    device="10.0.0.10:/srv/home",
                    fstype="nfs4",
                    mountpoint="/home",
                ): "50*2 5*18",
                node(
                    "node_filesystem_size_bytes",
                    node="gpu2",
                    device="10.0.0.10:/srv/home",
                    fstype="nfs4",
                    mountpoint="/home",
                ): "100*20",
            },
            {
                node(
                    "node_filesystem_readonly",
                    node=name,
                    device="10.0.0.10:/srv/home",
                    fstype="nfs4",
                    mountpoint="/home",
                ): "1*20"
                for name in ("gpu1", "gpu2")
            },
        ),
    ),
)
