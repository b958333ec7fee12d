"""All drills: for each alert that a lab rack can have for real, the fault that makes it fire."""

from __future__ import annotations

from rackwright.drill.choose import head, other_worker, worker
from rackwright.drill.gpu_drills import GPU_DRILLS
from rackwright.drill.model import Choice, Drill, LabFault, Shell
from rackwright.drill.slurm_drills import SLURM_DRILLS

_MOUNT = "/mnt/rackwright-drill"
_FAILS = "rackwright-drill-fails"


def _stopped(alert: str, unit: str, on: Choice) -> Drill:
    return Drill(alert, f"{unit} is stopped", on, Shell(f"systemctl stop {unit}", f"systemctl start {unit}"))


def _filesystem(alert: str, fault: str, options: str, fill: str) -> Drill:
    """A small filesystem of its own, in memory: no disk of the lab has to run full."""
    shell = Shell(
        f"mkdir -p {_MOUNT} && mount -t tmpfs -o {options} rackwright-drill {_MOUNT} && cd {_MOUNT} && {fill}",
        f"umount -l {_MOUNT} 2>/dev/null || :; rmdir {_MOUNT} 2>/dev/null || :",
    )
    return Drill(alert, fault, worker, shell, labels={"mountpoint": _MOUNT})


NODE_DRILLS = (
    _stopped("SlurmdDown", "slurmd", worker),
    _stopped("FirewallDown", "rackwright-firewall", worker),
    _filesystem(
        "FilesystemFull",
        "a filesystem of which 2 % are free",
        "size=10m",
        "head -c 10276044 /dev/zero > full",
    ),
    _filesystem(
        "FilesystemAlmostFull",
        "a filesystem of which 8 % are free",
        "size=10m",
        "head -c 9646899 /dev/zero > full",
    ),
    _filesystem(
        "InodesLow", "a filesystem with no inode left", "size=10m,nr_inodes=100", "touch $(seq 99) || :"
    ),
    Drill(
        "OtherUnitsFailed",
        "a unit of no role has failed",
        worker,
        Shell(
            f"systemd-run --quiet --unit={_FAILS} false; sleep 1; systemctl is-failed --quiet {_FAILS}",
            f"systemctl reset-failed {_FAILS} 2>/dev/null || :",
        ),
    ),
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
    _stopped("MungeDown", "munge", other_worker),
    Drill(
        "ProbeFailed", "sshd does not answer", other_worker, LabFault("sshd-down"), labels={"probe": "ssh"}
    ),
    Drill(
        "MariadbConnectionsNearlyFull",
        "nine of ten connections are taken",
        head,
        Shell(
            "mariadb -e 'SET GLOBAL max_connections = 10' && for number in 1 2 3 4 5 6 7; do systemd-run --quiet --collect "
            f"--unit={_FAILS}-$number mariadb -e 'SELECT SLEEP(600)'; done",
            f"systemctl stop '{_FAILS}-*' 2>/dev/null; mariadb -e 'SET GLOBAL max_connections = 151' || "
            "systemctl restart mariadb",
        ),
        lane="slurm",
    ),
    Drill("NodeDown", "a node's cable is pulled", other_worker, LabFault("cut"), alone=True),
)

DRILLS: tuple[Drill, ...] = (*NODE_DRILLS, *SLURM_DRILLS, *GPU_DRILLS)
