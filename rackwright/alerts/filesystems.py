"""Filesystems that fill up or turn read-only."""

from __future__ import annotations

from rackwright.alerts import sources, steps
from rackwright.alerts.promql import NETWORK_FILESYSTEMS
from rackwright.alerts.prose import listed, prose
from rackwright.alerts.rule import Alert, RuleGroup, Severity, Threshold

_NODE = frozenset({"node"})
_LOCAL = f'job="node",fstype!~"{NETWORK_FILESYSTEMS}"'
_SHARED = f'job="node",fstype=~"{NETWORK_FILESYSTEMS}"'
_WRITABLE = f"node_filesystem_readonly{{{_LOCAL}}} == 0"
_AVAILABLE = f"node_filesystem_avail_bytes{{{_LOCAL}}} / node_filesystem_size_bytes{{{_LOCAL}}} * 100"
_CLEAN = """
    - What grew: `du -xhd1 MOUNTPOINT | sort -h | tail`, one level at a time. Deleted files that a process still holds:
      `lsof +L1`.
    - `/var/log`: `journalctl --disk-usage`, then `journalctl --vacuum-size=1G`.
    - `/var/lib/prometheus`: lower `prometheus.retention_gb` and apply.
    - Packages: `apt-get clean` or `dnf clean all`.
    - Local scratch on a worker: files of jobs that have ended. `squeue -w NODE` first; then remove what belongs to none.
"""

_FULL = Alert(
    name="FilesystemFull",
    expr=f"{_AVAILABLE} < <percent> and {_WRITABLE}",
    hold_seconds=300,
    severity=Severity.CRITICAL,
    summary='{{ $labels.node }}: {{ $labels.mountpoint }} is full, {{ $value | printf "%.1f" }} % left',
    description=prose("""
        {{ $labels.mountpoint }} on {{ $labels.node }} has {{ $value | printf "%.1f" }} % left. Daemons that cannot write stop, and a
        head can lose state. Make room now: du -xhd1 {{ $labels.mountpoint }} | sort -h | tail.
    """),
    means="Writes are about to fail. On a head that is slurmctld's state and the accounting database; on a worker, jobs and logs.",
    steps=listed(_CLEAN),
    jobs=_NODE,
    thresholds={
        "percent": Threshold(
            5, "percent", "Space available.", "imbue cluster-health: 95 % is an error (read 2026-11-20)"
        )
    },
)

_ALMOST = Alert(
    name="FilesystemAlmostFull",
    expr=f"{_AVAILABLE} < <percent> and {_WRITABLE}",
    hold_seconds=1800,
    severity=Severity.WARNING,
    summary='{{ $labels.node }}: {{ $labels.mountpoint }} has {{ $value | printf "%.1f" }} % left',
    description=prose("""
        {{ $labels.mountpoint }} on {{ $labels.node }} has had less than <percent> % left for 30 minutes, now
        {{ $value | printf "%.1f" }} %. Make room before it is full: du -xhd1 {{ $labels.mountpoint }} | sort -h | tail.
    """),
    means="There is still room. FilesystemFull follows when there is none.",
    steps=listed(_CLEAN),
    jobs=_NODE,
    thresholds={
        "percent": Threshold(
            10, "percent", "Space available.", "Verda's acceptance: / below 90 % (read 2026-11-20)"
        )
    },
)

_FILLING = Alert(
    name="FilesystemFillingUp",
    expr=f"""
{_AVAILABLE} < <percent>
and predict_linear(node_filesystem_avail_bytes{{{_LOCAL}}}[6h], <hours> * 3600) < 0
and {_WRITABLE}
""",
    hold_seconds=3600,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: {{ $labels.mountpoint }} will be full within <hours> hours",
    description=prose("""
        {{ $labels.mountpoint }} on {{ $labels.node }} has {{ $value | printf "%.1f" }} % left and, at the rate of the last 6 hours,
        will be full within <hours> hours. Find what writes there.
    """),
    means="Something writes faster than usual: a log that runs away, a job on local scratch, a backup in the wrong place.",
    steps=listed(f"""
        - Which files grow: `find MOUNTPOINT -xdev -mmin -60 -size +100M -exec ls -lh {{}} +`.
        - Who writes: `iotop -obn1`, or `lsof MOUNTPOINT | sort -k7 -n | tail`.
        {_CLEAN}
    """),
    jobs=_NODE,
    thresholds={
        "percent": Threshold(40, "percent", "Free space above which a trend is ignored.", sources.MIXIN),
        "hours": Threshold(24, "hours", "Time until it is full.", sources.MIXIN),
    },
)

_INODES = Alert(
    name="InodesLow",
    expr=f"""
node_filesystem_files_free{{{_LOCAL}}} / node_filesystem_files{{{_LOCAL}}} * 100 < <percent> and {_WRITABLE}
""",
    hold_seconds=900,
    severity=Severity.WARNING,
    summary='{{ $labels.node }}: {{ $labels.mountpoint }} has {{ $value | printf "%.1f" }} % of its inodes left',
    description=prose("""
        {{ $labels.mountpoint }} on {{ $labels.node }} has {{ $value | printf "%.1f" }} % of its inodes left. Once they are gone no file
        can be created, although there is space. Find the folder with too many files.
    """),
    means="Millions of small files: a mail queue, a session folder, an unpacked data set.",
    steps=listed("""
        - `du --inodes -xd1 MOUNTPOINT | sort -n | tail`, one level at a time.
        - A data set of small files on local scratch: ask its user to pack it (tar, WebDataset, SquashFS).
        - A folder of a service: read that service's log for what does not clean up.
    """),
    jobs=_NODE,
    thresholds={
        "percent": Threshold(
            5, "percent", "Inodes left.", f"{sources.MIXIN}; NHC, check_fs_inodes, as sites set it"
        )
    },
)

_READ_ONLY = Alert(
    name="FilesystemReadOnly",
    expr='node_filesystem_readonly{job="node",fstype=~"btrfs|ext[234]|xfs"} == 1',
    hold_seconds=60,
    severity=Severity.CRITICAL,
    summary="{{ $labels.node }}: {{ $labels.mountpoint }} is read-only",
    description=prose("""
        {{ $labels.mountpoint }} ({{ $labels.device }}) on {{ $labels.node }} is mounted read-only. The kernel does that when it finds
        the filesystem damaged or the drive failing. Drain the node and read dmesg.
    """),
    means="Nothing can be written there. Jobs and daemons fail one by one, and the drive behind it may be dying.",
    steps=listed(f"""
        - `dmesg -T | grep -i -e 'remount' -e 'I/O error' -e nvme -e ext4 -e xfs | tail -40` on the node.
        - {steps.DRAIN}
        - Drive: `nvme smart-log /dev/nvmeN` or `smartctl -a /dev/sdX`. Media errors or a spent spare: replace the drive.
        - Drive healthy: boot a rescue system, `fsck -f DEVICE` (xfs: `xfs_repair`), then reboot. Do not remount it writable.
        - The same node again: replace the drive, or the board behind it.
        - {steps.RESUME}
    """),
    jobs=_NODE,
)

_SHARED_FULL = Alert(
    name="SharedFilesystemFull",
    expr=f"""
min by (device, fstype, mountpoint) (
  node_filesystem_avail_bytes{{{_SHARED}}} / node_filesystem_size_bytes{{{_SHARED}}} * 100
  unless node_filesystem_readonly{{{_SHARED}}} == 1
) < <percent>
""",
    hold_seconds=600,
    severity=Severity.CRITICAL,
    summary='{{ $labels.mountpoint }} is full for all nodes, {{ $value | printf "%.1f" }} % left',
    description=prose("""
        The shared filesystem {{ $labels.mountpoint }} ({{ $labels.device }}) has {{ $value | printf "%.1f" }} % left. Checkpoints of all
        jobs are about to fail. Find the largest users and ask them to make room now.
    """),
    means=prose("""
        One alert for all nodes that mount it writable. When it is full, every job that writes there fails, usually in the middle of a
        checkpoint.
    """),
    steps=listed("""
        - Who: `lfs quota -h -u USER MOUNTPOINT`, `beegfs-ctl --getquota`, `repquota -s`, or `du -hd1` on an idle node.
        - Write to the largest users with a deadline; meanwhile stop new jobs of theirs: `scontrol hold JOB`.
        - Old checkpoints and caches by age: `find MOUNTPOINT -atime +90 -size +1G`.
        - Quotas are missing: declare them (`storage.NAME.quota`) and apply.
        - Lustre or BeeGFS: a single full target stops writes although the total has room. `lfs df -h`, `beegfs-df`.
    """),
    jobs=_NODE,
    thresholds={
        "percent": Threshold(
            5,
            "percent",
            "Space available.",
            "rackwright's declared filesystems: min_free_percent (2026-11-20)",
        )
    },
)

GROUP = RuleGroup("filesystems", (_FULL, _ALMOST, _FILLING, _INODES, _READ_ONLY, _SHARED_FULL))
