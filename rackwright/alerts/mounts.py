"""Mounts that are missing or do not answer, slow file servers, and degraded arrays."""

from __future__ import annotations

from rackwright.alerts import sources, steps
from rackwright.alerts.promql import NETWORK_FILESYSTEMS, NODE_UP, PLACE
from rackwright.alerts.prose import listed, prose
from rackwright.alerts.rule import Alert, RuleGroup, Severity, Threshold

_NODE = frozenset({"node"})

_MISSING = Alert(
    name="MountMissing",
    expr=f"""
(rackwright_declared_mount unless on (node, mountpoint) node_filesystem_device_error{{job="node"}}) and on (node) {NODE_UP}
""",
    hold_seconds=300,
    severity=Severity.CRITICAL,
    summary="{{ $labels.node }}: {{ $labels.mountpoint }} is not mounted",
    description=prose("""
        {{ $labels.mountpoint }} is declared for {{ $labels.node }} and is not mounted there. Jobs write into the empty folder below
        it and fill the root disk, or fail. Mount it: systemctl status, then start, its mount unit.
    """),
    means=prose("""
        Declared filesystems that are mounted all the time are compared with what is mounted. One with `automount` may be
        unmounted until first use and is not judged here. A mount that does not answer raises MountStale.
    """),
    steps=listed(f"""
        - {steps.DRAIN}
        - `systemctl status "$(systemd-escape -p --suffix=mount MOUNTPOINT)"` on the node, and its journal.
        - Did jobs write into the folder below? `ls MOUNTPOINT`; move that aside before anything is mounted over it.
        - Start the unit. It fails for a server: can the node reach it (`ping SERVER`, `showmount -e SERVER`)?
        - A local one: is the drive there (`lsblk`, `nvme list`)? Is the array assembled (`cat /proc/mdstat`)?
        - `rackwright plan FILE --limit NODE` shows whether the mount unit is as declared.
        - {steps.RESUME}
    """),
    jobs=_NODE,
)

_STALE = Alert(
    name="MountStale",
    expr=f"""
max by ({PLACE}, device, fstype, mountpoint) (
  node_filesystem_device_error{{job="node",fstype=~"{NETWORK_FILESYSTEMS}",fstype!~"fuse[.].+"}}
) == 1
""",
    hold_seconds=120,
    severity=Severity.CRITICAL,
    summary="{{ $labels.node }}: {{ $labels.mountpoint }} does not answer",
    description=prose("""
        {{ $labels.mountpoint }} ({{ $labels.device }}) is mounted on {{ $labels.node }} and does not answer. Processes that touch it hang and cannot be killed. Check the server first, then the path to it from this node.
    """),
    means=prose("""
        statfs on the mount fails or hangs. Jobs that use it stand still, and even `df` and logins can hang. FUSE mounts are left
        out: node_exporter may not look into those of users.
    """),
    steps=listed(f"""
        - How many nodes? All of them: the server. Ping it, look at its console and its own alerts.
        - This node alone: `ping SERVER`, `ss -tn dst SERVER`, `dmesg -T | grep -i -e nfs -e lustre -e beegfs | tail`.
        - Never run `df` or `ls` there to see; use `timeout -s KILL 5 stat -f MOUNTPOINT`.
        - The server is back and the mount still hangs: `umount -f -l MOUNTPOINT`, then start its mount unit again.
        - Processes stay in state D: {steps.then(steps.REBOOT)}
        - Whose jobs were hit: {steps.then(steps.JOBS)}
    """),
    jobs=_NODE,
)

_OPERATIONS = 'node_mountstats_nfs_operations_{}_total{{job="node",operation=~"GETATTR|LOOKUP|READ|WRITE"}}'
_BY_MOUNT = f"sum by ({PLACE}, export) (rate({_OPERATIONS}[5m]))"

_SLOW = Alert(
    name="NfsSlow",
    expr=f"{_BY_MOUNT.format('request_time_seconds')} / {_BY_MOUNT.format('requests')} > <seconds>",
    hold_seconds=900,
    severity=Severity.WARNING,
    summary="{{ $labels.node }}: {{ $labels.export }} takes {{ $value | humanizeDuration }} per request",
    description=prose("""
        Requests of {{ $labels.node }} to {{ $labels.export }} have taken {{ $value | humanizeDuration }} on average for 15 minutes.
        Jobs wait for files. See whether all nodes are slow (the server) or this one (its link).
    """),
    means="The file server is overloaded or has a failing drive, or the network between them loses packets.",
    steps=listed("""
        - `nfsiostat 5 2` on the node: many operations, or few and slow ones?
        - Which nodes are affected, and which job reads or writes most? The storage dashboard shows both.
        - Server: `iostat -x 5 3`, `nfsstat -s`, `cat /proc/fs/nfsd/pool_stats`. A drive at 100 % with little throughput fails.
        - One node: NetworkErrors, NfsRetransmits, NetworkPathLossy?
        - A job that opens millions of small files: ask its user to pack them.
    """),
    jobs=_NODE,
    thresholds={
        "seconds": Threshold(
            0.5,
            "seconds",
            "Mean time of a request.",
            "rackwright: a hundred times that of a loaded server with drives (2026-11-27)",
        )
    },
)

_RETRANSMITS = Alert(
    name="NfsRetransmits",
    expr="""
rate(node_nfs_rpc_retransmissions_total{job="node"}[5m]) / rate(node_nfs_rpcs_total{job="node"}[5m]) * 100 > <percent>
""",
    hold_seconds=900,
    severity=Severity.WARNING,
    summary='{{ $labels.node }}: {{ $value | printf "%.1f" }} % of NFS requests are sent again',
    description=prose("""
        {{ $labels.node }} sends {{ $value | printf "%.1f" }} % of its NFS requests again: the server does not answer in time, or packets
        are lost. Look at dmesg for "not responding" and at the network to the server.
    """),
    means="NFS over TCP repeats a request only after a minute without an answer, so that each repeat is a job that stood still.",
    steps=listed("""
        - `dmesg -T | grep -i 'nfs: server' | tail` on the node: which server, since when?
        - Other nodes too: the server is overloaded. See NfsSlow.
        - This node alone: NetworkErrors, NetworkLinkFlapping or NetworkPathLossy?
    """),
    jobs=_NODE,
    thresholds={
        "percent": Threshold(
            1,
            "percent",
            "Requests that are sent again.",
            "rackwright: over TCP there are next to none (2026-11-27)",
        )
    },
)

_RAID = Alert(
    name="RaidDegraded",
    expr="""

node_md_disks_required{job="node"} - ignoring (state) node_md_disks{job="node",state="active"} > 0
or max without (state) (node_md_disks{job="node",state="failed"}) > 0

""",
    hold_seconds=60,
    severity=Severity.CRITICAL,
    summary="{{ $labels.node }}: array {{ $labels.device }} has lost a drive",
    description=prose("""
        The array {{ $labels.device }} of {{ $labels.node }} lacks {{ $value }} of its drives. It works without redundancy; the next failure
        loses its data. Find the drive, mdadm --detail /dev/{{ $labels.device }}, and replace it.
    """),
    means="A drive of a software RAID failed or vanished. RAID 0 has lost its data already.",
    steps=listed("""
        - `cat /proc/mdstat` and `mdadm --detail /dev/DEVICE` on the node: which member is faulty or removed?
        - `dmesg -T | grep -e MEMBER -e nvme -e ata | tail -40`; `smartctl -a /dev/MEMBER` or `nvme smart-log /dev/MEMBER`.
        - A rebuild runs already (a spare took over): wait for it, and order a new spare.
        - A backup of what is on it, now: `systemctl start rackwright-backup` on a head.
        - `mdadm /dev/DEVICE --fail /dev/MEMBER --remove /dev/MEMBER`, swap the drive, `mdadm /dev/DEVICE --add /dev/NEW`.
        - `watch cat /proc/mdstat` until it is whole.
    """),
    jobs=_NODE,
    source=sources.MIXIN,
)

GROUP = RuleGroup("mounts", (_MISSING, _STALE, _SLOW, _RETRANSMITS, _RAID))
