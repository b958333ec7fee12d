"""Drills of the alerts about Slurm."""

from __future__ import annotations

from rackwright.drill.choose import head, other_worker
from rackwright.drill.model import Drill, Shell

_COLLECTOR = "rackwright-slurm-collector"
_LANE = "slurm"
"""One after the other: each stops something that the others need."""


def _unit(alert: str, unit: str) -> Drill:
    shell = Shell(f"systemctl stop {unit}", f"systemctl start {unit}")
    return Drill(alert, f"{unit} is stopped", head, shell, lane=_LANE)


def _of_other_worker(alert: str, fault: str, make: str, *, named: bool = True) -> Drill:
    """The worker asks for it itself, as root may; so the alert names the node that is broken."""
    shell = Shell(
        f"scontrol update nodename=$(hostname -s) {make} reason=drill",
        "scontrol update nodename=$(hostname -s) state=resume",
    )
    return Drill(alert, fault, other_worker, shell, names_node=named, lane=_LANE)


SLURM_DRILLS = (
    Drill(
        "SlurmUnreachable",
        "slurmctld hangs",
        head,
        Shell("systemctl kill -s STOP slurmctld", "systemctl kill -s CONT slurmctld"),
        names_node=False,
        lane=_LANE,
    ),
    _unit("SlurmctldDown", "slurmctld"),
    _unit("SlurmdbdDown", "slurmdbd"),
    Drill(
        "SlurmdbdQueueLong",
        "slurmdbd is stopped while jobs are submitted",
        head,
        Shell(
            "systemctl stop slurmdbd; for job in 1 2 3 4 5 6 7 8; do sbatch -Q -H -D / -o /dev/null --wrap true; done",
            "scancel --state=PENDING --name=wrap; systemctl start slurmdbd",
        ),
        names_node=False,
        lane=_LANE,
    ),
    Drill(
        "MariadbDown",
        "MariaDB is stopped",
        head,
        Shell("systemctl stop mariadb", "systemctl start mariadb; systemctl restart slurmdbd"),
        lane=_LANE,
    ),
    Drill(
        "SlurmMetricsStale",
        "the collector of Slurm's figures is stopped",
        head,
        Shell(f"systemctl stop {_COLLECTOR}", f"systemctl start {_COLLECTOR}"),
        names_node=False,
        lane=_LANE,
    ),
    _of_other_worker("SlurmNodeDown", "a node is set DOWN", "state=down"),
    _of_other_worker("SlurmNodeDrainedLong", "a node stays drained", "state=drain"),
    _of_other_worker("SlurmNodesUnavailable", "half of the nodes are drained", "state=drain", named=False),
)
