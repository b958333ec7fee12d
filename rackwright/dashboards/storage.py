"""Filesystems, file servers and disks."""

from __future__ import annotations

from rackwright.dashboards.model import Colour, Dashboard, Row, Thresholds, Unit
from rackwright.dashboards.parts import ANY_IS_BAD, FULLNESS, RACK, counted, stat, table, time

_IN = '{rack=~"$rack"}'
_FULL = f"1 - node_filesystem_avail_bytes{_IN} / node_filesystem_size_bytes"
_DAYS_LEFT = f"predict_linear(node_filesystem_avail_bytes{_IN}[6h], 4 * 86400) < 0"

_NOW = Row(
    "Now",
    (
        stat(
            "Fullest filesystem",
            Unit.RATIO,
            "The fullest of all local filesystems.",
            (f"max({_FULL})", "full"),
            thresholds=FULLNESS,
        ),
        stat(
            "Full within four days",
            Unit.NUMBER,
            "Filesystems that are full within four days if they go on as in the last six hours.",
            (counted(_DAYS_LEFT, f"node_filesystem_avail_bytes{_IN}"), "filesystems"),
            thresholds=ANY_IS_BAD,
        ),
        stat(
            "Filesystems that do not answer",
            Unit.NUMBER,
            "Mounts whose size could not be read: a file server that is gone, or a disk that fails.",
            (f"sum(node_filesystem_device_error{_IN})", "filesystems"),
            thresholds=ANY_IS_BAD,
        ),
        stat(
            "Read-only",
            Unit.NUMBER,
            "Filesystems that are mounted read-only: meant so, or after an error of their disk.",
            (f"sum(node_filesystem_readonly{_IN})", "filesystems"),
        ),
        stat(
            "Read from disks",
            Unit.BYTES_PER_SECOND,
            "All local disks together; the panels below show which node reads so much.",
            (f"sum(rate(node_disk_read_bytes_total{_IN}[$__rate_interval]))", "read"),
        ),
        stat(
            "Written to disks",
            Unit.BYTES_PER_SECOND,
            "All local disks together; regular peaks are checkpoints.",
            (f"sum(rate(node_disk_written_bytes_total{_IN}[$__rate_interval]))", "written"),
        ),
    ),
)
_SPACE = Row(
    "Space",
    (
        table(
            "Fullest filesystems",
            "The twenty fullest. Nodes of one kind should be alike; one that is not keeps logs or left-over data of jobs.",
            ("node", "mountpoint"),
            (
                f"topk(20, max by (node, mountpoint) ({_FULL}))",
                "full",
                Unit.RATIO,
            ),
            thresholds=FULLNESS,
            height=10,
        ),
        time(
            "Fullest filesystem of each node",
            Unit.RATIO,
            "Lines that climb together are a job that writes on all its nodes; one that climbs alone is a log.",
            (f"max by (node) ({_FULL})", "{{node}}"),
            low=0,
            high=1,
            height=10,
            leads_to=("node",),
        ),
    ),
)
_DISKS = Row(
    "Disks",
    (
        time(
            "Disks in use",
            Unit.RATIO,
            "Share of time in which the busiest disk of each node had something to do. Near 1 with little throughput: small, "
            "scattered accesses, or a disk that fails.",
            (f"max by (node) (rate(node_disk_io_time_seconds_total{_IN}[$__rate_interval]))", "{{node}}"),
            low=0,
            high=1,
            leads_to=("node",),
        ),
        time(
            "Time of an access",
            Unit.SECONDS,
            "Mean time of a read or write. Some milliseconds on rotating disks, well below one on NVMe.",
            (
                (
                    f"sum by (node) (rate(node_disk_read_time_seconds_total{_IN}[$__rate_interval])"
                    f" + rate(node_disk_write_time_seconds_total{_IN}[$__rate_interval]))"
                    f" / (sum by (node) (rate(node_disk_reads_completed_total{_IN}[$__rate_interval])"
                    f" + rate(node_disk_writes_completed_total{_IN}[$__rate_interval])) > 0)"
                ),
                "{{node}}",
            ),
            low=0,
            leads_to=("node",),
        ),
        time(
            "Throughput of disks",
            Unit.BYTES_PER_SECOND,
            "Read and, below zero, written, by node.",
            (f"sum by (node) (rate(node_disk_read_bytes_total{_IN}[$__rate_interval]))", "{{node}} read"),
            (
                f"-sum by (node) (rate(node_disk_written_bytes_total{_IN}[$__rate_interval]))",
                "{{node}} written",
            ),
            leads_to=("node",),
        ),
        table(
            "Degraded arrays",
            "Software RAID with fewer disks than it should have. Replace the disk; the array works on without a spare.",
            ("node", "device"),
            (
                (
                    f"sum by (node, device) (node_md_disks_required{_IN})"
                    f' - sum by (node, device) (node_md_disks{{rack=~"$rack",state="active"}}) > 0'
                ),
                "missing",
                Unit.NUMBER,
            ),
            empty="No array is degraded.",
        ),
    ),
)
_CLIENTS = Row(
    "File servers, as nodes see them",
    (
        time(
            "Read from file servers",
            Unit.BYTES_PER_SECOND,
            "By node, all NFS mounts. One node that reads far more than the others of its job reads for them.",
            (
                f"sum by (node) (rate(node_mountstats_nfs_total_read_bytes_total{_IN}[$__rate_interval]))",
                "{{node}}",
            ),
            low=0,
            leads_to=("node",),
        ),
        time(
            "Written to file servers",
            Unit.BYTES_PER_SECOND,
            "By node, all NFS mounts. Regular peaks are checkpoints.",
            (
                f"sum by (node) (rate(node_mountstats_nfs_total_write_bytes_total{_IN}[$__rate_interval]))",
                "{{node}}",
            ),
            low=0,
            leads_to=("node",),
        ),
        time(
            "Time of a request",
            Unit.SECONDS,
            "Mean time from a request to its answer, by what is mounted. All nodes together: the server; one: its network.",
            (
                (
                    f"sum by (export) (rate(node_mountstats_nfs_operations_response_time_seconds_total{_IN}[$__rate_interval]))"
                    f" / (sum by (export) (rate(node_mountstats_nfs_operations_requests_total{_IN}[$__rate_interval])) > 0)"
                ),
                "{{export}}",
            ),
            low=0,
        ),
        time(
            "Requests",
            Unit.PER_SECOND,
            "By operation. Many GETATTR and LOOKUP: a program that opens a great many small files.",
            (
                (
                    "topk(8, sum by (operation) "
                    f"(rate(node_mountstats_nfs_operations_requests_total{_IN}[$__rate_interval])))"
                ),
                "{{operation}}",
            ),
            low=0,
        ),
        time(
            "Requests sent again",
            Unit.PER_SECOND,
            "Requests without an answer in time, by node. Above zero: packets are lost, or the server is overloaded.",
            (f"sum by (node) (rate(node_nfs_rpc_retransmissions_total{_IN}[$__rate_interval]))", "{{node}}"),
            thresholds=Thresholds(((0.1, Colour.WARN),)),
            low=0,
            leads_to=("node",),
        ),
        time(
            "Served by file servers",
            Unit.BYTES_PER_SECOND,
            "Read from and, below zero, written to the NFS servers of this cluster, by server.",
            ("sum by (node) (rate(node_nfsd_disk_bytes_read_total[$__rate_interval]))", "{{node}} read"),
            (
                "-sum by (node) (rate(node_nfsd_disk_bytes_written_total[$__rate_interval]))",
                "{{node}} written",
            ),
        ),
    ),
)
STORAGE = Dashboard(
    "storage",
    "Storage",
    "Which filesystem is full or soon will be, which disk is slow, and how the file servers answer.",
    (_NOW, _SPACE, _DISKS, _CLIENTS),
    (RACK,),
    since="6h",
)
