"""Cases of rackwright.alerts.mounts."""

from __future__ import annotations

from tests.unit.alerts.case import Case
from tests.unit.alerts.series import GPU1, NODE, declared, node

CASES = (
    Case(
        alert="MountMissing",
        series={
            declared("mount", mountpoint="/scratch"): "1*15",
            node("up"): "1*15",
            node(
                "node_filesystem_device_error", device="/dev/md0", fstype="xfs", mountpoint="/scratch"
            ): "0*2 stale _*8 0*4",
        },
        fires=420,
        labels={**GPU1, "mountpoint": "/scratch"},
        severity="critical",
        summary="gpu1: /scratch is not mounted",
        description="/scratch is declared for gpu1 and is not mounted there. Jobs write into the empty folder below it and fill the root disk, or fail. Mount it: systemctl status, then start, its mount unit.",
        heals=660,
        under=(
            {
                node(
                    "node_filesystem_device_error", device="/dev/md0", fstype="xfs", mountpoint="/scratch"
                ): "0*2 1*13"
            },
            {node("up"): "0*15"},
        ),
    ),
    Case(
        alert="MountStale",
        series={
            node(
                "node_filesystem_device_error",
                device="10.0.0.10:/srv/home",
                fstype="nfs4",
                mountpoint="/home",
            ): "0*2 1*5 0*3"
        },
        fires=240,
        labels={**GPU1, "device": "10.0.0.10:/srv/home", "fstype": "nfs4", "mountpoint": "/home"},
        severity="critical",
        summary="gpu1: /home does not answer",
        description="/home (10.0.0.10:/srv/home) is mounted on gpu1 and does not answer. Processes that touch it hang and cannot be killed. Check the server first, then the path to it from this node.",
        heals=420,
        under=(
            {
                node(
                    "node_filesystem_device_error",
                    device="10.0.0.10:/srv/home",
                    fstype="nfs4",
                    mountpoint="/home",
                ): "0*10",
                node(
                    "node_filesystem_device_error", device="/dev/md0", fstype="xfs", mountpoint="/scratch"
                ): "1*10",
            },
            {
                node(
                    "node_filesystem_device_error",
                    device="10.0.0.10:/srv/home",
                    fstype="nfs4",
                    mountpoint="/home",
                ): "0*2 1*2 0*6"
            },
            {
                node(
                    "node_filesystem_device_error",
                    device="10.0.0.10:/srv/home",
                    fstype="nfs4",
                    mountpoint="/home",
                ): "0*10",
                node(
                    "node_filesystem_device_error",
                    device="ada@store:/data",
                    fstype="fuse.sshfs",
                    mountpoint="/home/ada/mnt",
                ): "1*10",
            },
        ),
    ),
    Case(
        alert="NfsSlow",
        series={
            node(
                "node_mountstats_nfs_operations_request_time_seconds_total",
                export="10.0.0.10:/srv/home",
                mountaddr="10.0.0.10",
                operation="READ",
                protocol="tcp",
            ): "0+36*25 864+1*10",
            node(
                "node_mountstats_nfs_operations_requests_total",
                export="10.0.0.10:/srv/home",
                mountaddr="10.0.0.10",
                operation="READ",
                protocol="tcp",
            ): "0+60*35",
        },
        fires=960,
        labels={**GPU1, "export": "10.0.0.10:/srv/home"},
        severity="warning",
        summary="gpu1: 10.0.0.10:/srv/home takes 600ms per request",
        description="Requests of gpu1 to 10.0.0.10:/srv/home have taken 600ms on average for 15 minutes. Jobs wait for files. See whether all nodes are slow (the server) or this one (its link).",
        heals=1500,
        under=(
            {
                node(
                    "node_mountstats_nfs_operations_request_time_seconds_total",
                    export="10.0.0.10:/srv/home",
                    mountaddr="10.0.0.10",
                    operation="READ",
                    protocol="tcp",
                ): "0+29*35"
            },
        ),
    ),
    Case(
        alert="NfsRetransmits",
        series={
            node("node_nfs_rpc_retransmissions_total"): "0+1.1*25 26.4*10",
            node("node_nfs_rpcs_total"): "0+100*35",
        },
        fires=960,
        labels=NODE,
        severity="warning",
        summary="gpu1: 1.1 % of NFS requests are sent again",
        description='gpu1 sends 1.1 % of its NFS requests again: the server does not answer in time, or packets are lost. Look at dmesg for "not responding" and at the network to the server.',
        heals=1800,
        under=({node("node_nfs_rpc_retransmissions_total"): "0+0.9*35"},),
    ),
    Case(
        alert="RaidDegraded",
        series={
            node("node_md_disks_required", device="md0"): "2*10",
            node("node_md_disks", device="md0", state="active"): "2*2 1*5 2*3",
            node("node_md_disks", device="md0", state="failed"): "0*10",
        },
        fires=180,
        labels={**NODE, "device": "md0"},
        severity="critical",
        summary="gpu1: array md0 has lost a drive",
        description="The array md0 of gpu1 lacks 1 of its drives. It works without redundancy; the next failure loses its data. Find the drive, mdadm --detail /dev/md0, and replace it.",
        heals=420,
        under=({node("node_md_disks", device="md0", state="active"): "2*10"},),
    ),
    Case(
        alert="RaidDegraded",
        series={
            node("node_md_disks_required", device="md0"): "2*10",
            node("node_md_disks", device="md0", state="active"): "2*10",
            node("node_md_disks", device="md0", state="failed"): "0*2 1*5 0*3",
        },
        fires=180,
        labels={**NODE, "device": "md0"},
        severity="critical",
        summary="gpu1: array md0 has lost a drive",
        description="The array md0 of gpu1 lacks 1 of its drives. It works without redundancy; the next failure loses its data. Find the drive, mdadm --detail /dev/md0, and replace it.",
        heals=420,
        under=({node("node_md_disks", device="md0", state="failed"): "0*10"},),
    ),
)
