"""Drills of alerts about a node: its units, filesystems, network and processes."""

from __future__ import annotations

from rackwright.drill.choose import other_worker, worker
from rackwright.drill.model import Choice, Drill, LabFault, Shell
from rackwright.lab.dcgm_stand_in import STATE

_MOUNT = "/mnt/rackwright-drill"
_UNIT = "rackwright-drill"
_RUN = "/run/rackwright-drill-node"
_TABLE = "inet rackwright_drill_pings"
_TUNNEL, _NOWHERE, _BEYOND = "drill0", "203.0.113.1", "198.51.100.2"
"""Addresses for documentation (RFC 5737), which no site has."""


def _stopped(alert: str, unit: str, on: Choice) -> Drill:
    return Drill(alert, f"{unit} is stopped", on, Shell(f"systemctl stop {unit}", f"systemctl start {unit}"))


def _filesystem(alert: str, fault: str, options: str, fill: str, mountpoint: str = _MOUNT) -> Drill:
    """A small, separate filesystem in memory: no disk of the lab has to run full."""
    shell = Shell(
        f"mkdir -p {mountpoint} && mount -t tmpfs -o {options} rackwright-drill {mountpoint} && cd {mountpoint} && {fill}",
        _unmount(mountpoint),
    )
    return Drill(alert, fault, worker, shell, labels={"mountpoint": mountpoint})


def _unmount(mountpoint: str) -> str:
    return f"umount -l {mountpoint} 2>/dev/null || :; rmdir {mountpoint} 2>/dev/null || :"


def _read_only() -> Shell:
    """What the lab has bound into the node is on the host's disk, and the node may not write there."""
    mountpoint = f"{_MOUNT}-read-only"
    return Shell(
        f"mkdir -p {mountpoint} && mount --bind {STATE.parent} {mountpoint}",
        _unmount(mountpoint),
    )


# A process that has started another waits in state D until that one has executed its program. Here it never does: first
# it has to open a pipe without a writer.
_BLOCKED = f"""\
import os
for _ in range(25):
    if os.fork() == 0:
        opened = (os.POSIX_SPAWN_OPEN, 0, "{_RUN}/pipe", os.O_RDONLY, 0)
        os.posix_spawn("/bin/true", ["true"], {{}}, file_actions=[opened])
        os._exit(0)
os.wait()
"""
# 85 % of what the table holds, anew before it forgets them after 30 s.
_CONNECTIONS = """\
import socket, time
most = int(open("/proc/sys/net/netfilter/nf_conntrack_max").read()) * 85 // 100
while True:
    for number in range(0, most, 50000):
        one = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        one.bind(("127.0.0.1", 20000 + number // 50000))
        for port in range(10000, 10000 + min(50000, most - number)):
            one.sendto(b"", ("127.0.0.2", port))
        one.close()
    time.sleep(10)
"""


def _python(program: str, before: str = "true") -> Shell:
    """A program that runs until the fault is healed; it may have to be killed."""
    return Shell(
        f"mkdir -p {_RUN} && cat > {_RUN}/program <<'PROGRAM'\n{program}PROGRAM\n"
        f"{before} && systemd-run --quiet --collect --unit={_UNIT} python3 -IS {_RUN}/program",
        f"systemctl kill -s KILL {_UNIT} 2>/dev/null; systemctl reset-failed {_UNIT} 2>/dev/null; rm -rf {_RUN}",
    )


def _damaged_packets() -> Shell:
    """A tunnel whose far end cannot be reached: the kernel counts each packet as an error."""
    return Shell(
        f"ip route replace unreachable {_NOWHERE} && "
        f"ip link add {_TUNNEL} type vxlan id 9 remote {_NOWHERE} dstport 4789 && "
        f"ip addr add 198.51.100.1/24 dev {_TUNNEL} && ip link set {_TUNNEL} up && "
        f"ip neigh replace {_BEYOND} lladdr 02:00:00:00:00:01 dev {_TUNNEL} && "
        f"systemd-run --quiet --collect --unit={_UNIT}-ping ping -q -i 0.01 {_BEYOND}",
        f"systemctl stop {_UNIT}-ping 2>/dev/null; ip link del {_TUNNEL} 2>/dev/null; "
        f"ip route del unreachable {_NOWHERE} 2>/dev/null || :",
    )


def _deaf_to_pings() -> Shell:
    chain = f"{_TABLE} input"
    return Shell(
        f"nft add table {_TABLE} && nft add chain {chain} '{{ type filter hook input priority -300; }}' && "
        f"nft add rule {chain} icmp type echo-request drop",
        f"nft delete table {_TABLE} 2>/dev/null || :",
    )


_UNITS = (
    _stopped("SlurmdDown", "slurmd", worker),
    _stopped("FirewallDown", "rackwright-firewall", worker),
    Drill(
        "UnitFailed",
        "chronyd is killed",
        worker,
        Shell("systemctl kill -s KILL chrony", "systemctl reset-failed chrony; systemctl start chrony"),
        labels={"name": "chrony.service"},
    ),
    Drill(
        "OtherUnitsFailed",
        "a unit of no role has failed",
        worker,
        Shell(
            f"systemd-run --quiet --unit={_UNIT}-fails false; sleep 1; systemctl is-failed --quiet {_UNIT}-fails",
            f"systemctl reset-failed {_UNIT}-fails 2>/dev/null || :",
        ),
    ),
)
_FILESYSTEMS = (
    _filesystem(
        "FilesystemFull",
        "a filesystem with 2 % free space",
        "size=10m",
        "head -c 10276044 /dev/zero > full",
    ),
    _filesystem(
        "FilesystemAlmostFull",
        "a filesystem with 8 % free space",
        "size=10m",
        "head -c 9646899 /dev/zero > full",
    ),
    _filesystem(
        "InodesLow", "a filesystem without free inodes", "size=10m,nr_inodes=100", "touch $(seq 99) || :"
    ),
    _filesystem(
        "FilesystemFillingUp",
        "70 % of a filesystem is written within seconds",
        "size=10m",
        "sleep 8 && head -c 7340032 /dev/zero > growing",
        f"{_MOUNT}-growing",
    ),
    Drill(
        "FilesystemReadOnly",
        "a filesystem is mounted read-only",
        worker,
        _read_only(),
        labels={"mountpoint": f"{_MOUNT}-read-only"},
    ),
)
_NETWORK = (
    Drill(
        "NetworkLinkFlapping",
        "the management port goes down five times",
        worker,
        Shell(
            "for time in 1 2 3 4 5; do ip link set eth0 down; sleep 0.3; ip link set eth0 up; sleep 0.3; done",
            "true",
        ),
        labels={"device": "eth0"},
    ),
    Drill(
        "NetworkErrors",
        "packets into a tunnel to nowhere",
        other_worker,
        _damaged_packets(),
        labels={"device": _TUNNEL},
    ),
    Drill("NetworkPathLossy", "pings are dropped", other_worker, _deaf_to_pings()),
    Drill(
        "ConntrackNearlyFull",
        "85 % of the connection table is in use",
        other_worker,
        _python(_CONNECTIONS),
    ),
    Drill(
        "ProbeFailed", "sshd does not answer", other_worker, LabFault("sshd-down"), labels={"probe": "ssh"}
    ),
)
_WHOLE = (
    Drill(
        "ProcessesBlocked",
        "25 processes are blocked in the kernel",
        other_worker,
        _python(_BLOCKED, before=f"mkfifo {_RUN}/pipe"),
    ),
    Drill("NodeDown", "a node's cable is pulled", other_worker, LabFault("cut"), alone=True),
    Drill(
        "RackDown",
        "the cables of all nodes of a rack are pulled",
        worker,
        LabFault("cut"),
        names_node=False,
        alone=True,
        also=other_worker,
    ),
)
NODE_DRILLS: tuple[Drill, ...] = (*_UNITS, *_FILESYSTEMS, *_NETWORK, *_WHOLE)
